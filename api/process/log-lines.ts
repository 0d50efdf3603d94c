/**
 * Where the lines of the log go. Handing a line to the system costs more than making it, so those of a moment go out
 * together, behind the event loop. A place that takes none (its disk is full, its reader or terminal is gone) neither
 * ends the service nor holds up its end.
 */
import { write, writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

/** How long a line waits for others, in ms, and how many bytes go out without waiting. */
const GATHERING_MS = 10
const GATHERED_BYTES = 65_536

/** How long to wait after a failure, in ms, and how many bytes wait for a place that takes none. */
const RETRY_MS = 1000
const WAITING_BYTES = 1024 * 1024

/** The calls to the system, which tests replace. */
export interface WriteCalls {
  write(fd: number, bytes: Uint8Array, done: (error: Error | null, written: number) => void): void
  writeSync(fd: number, bytes: Uint8Array): number
}

/**
 * A destination for whole lines on the file descriptor `fd`. Lines that could not be written are tried again with
 * the next; beyond a MiB of them new ones are dropped, and a line tells how many once there is room.
 */
export class LogLines implements DestinationStream {
  readonly #fd: number
  readonly #calls: WriteCalls
  /** Lines that wait, as bytes: texts would be moved around with each clearing of memory, and take longer. */
  #waiting = Buffer.allocUnsafeSlow(WAITING_BYTES)
  #waitingBytes = 0
  /** Where lines wait while those in the other place are on their way. */
  #spare = Buffer.allocUnsafeSlow(WAITING_BYTES)
  #dropped = 0
  /** What the system has not taken of the lines that are on their way. */
  #unwritten = Buffer.alloc(0)
  #writing = false
  #timer: NodeJS.Timeout | undefined

  constructor(fd: number, calls: WriteCalls = { write, writeSync }) {
    this.#fd = fd
    this.#calls = calls
    process.once('exit', () => this.finish())
  }

  write(line: string): void {
    if (!this.#keep(line)) {
      this.#dropped += 1
      return
    }
    // Lines that failed already wait for their timer.
    if (this.#unwritten.length === 0) this.#sendSoon()
  }

  /** The process ends: what is left goes out now, or not at all. What is being written already will be. */
  finish(): void {
    if (this.#writing) {
      this.#unwritten = Buffer.alloc(0)
      this.#spare = Buffer.allocUnsafeSlow(WAITING_BYTES)
    }
    try {
      for (this.#take(); this.#unwritten.length > 0; this.#take()) {
        this.#unwritten = this.#unwritten.subarray(this.#calls.writeSync(this.#fd, this.#unwritten))
      }
    } catch {
      // There is no place left to tell it.
    }
  }

  /** Whether there was room for the line. */
  #keep(line: string): boolean {
    // No character takes more than three bytes.
    const fits =
      this.#waitingBytes + 3 * line.length <= WAITING_BYTES ||
      this.#waitingBytes + Buffer.byteLength(line) <= WAITING_BYTES
    if (fits) this.#waitingBytes += this.#waiting.write(line, this.#waitingBytes)
    return fits
  }

  #sendSoon(): void {
    if (this.#waitingBytes >= GATHERED_BYTES) this.#send()
    else if (this.#waitingBytes > 0) this.#sendIn(GATHERING_MS)
  }

  #sendIn(ms: number): void {
    this.#timer ??= setTimeout(() => this.#send(), ms).unref()
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#take()
    this.#writing = true
    this.#calls.write(this.#fd, this.#unwritten, (error, written) => {
      this.#writing = false
      if (error !== null) return this.#sendIn(RETRY_MS)
      this.#unwritten = this.#unwritten.subarray(written)
      if (this.#unwritten.length > 0) this.#send()
      else this.#sendSoon()
    })
  }

  #take(): void {
    if (this.#unwritten.length > 0) return
    this.#unwritten = this.#waiting.subarray(0, this.#waitingBytes)
    ;[this.#waiting, this.#spare] = [this.#spare, this.#waiting]
    this.#waitingBytes = 0
    if (this.#dropped > 0) this.#keep(lossLine(this.#dropped))
    this.#dropped = 0
  }
}

function lossLine(lines: number): string {
  const time = new Date().toISOString()
  return `${JSON.stringify({ level: 'warn', time, lines, msg: 'the log could not be written; lines are lost' })}\n`
}
