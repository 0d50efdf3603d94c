/**
 * Writes the lines of the log. A system call costs more than a line, so simultaneous lines are written together,
 * asynchronously. A failing target (full disk, closed reader or terminal) neither ends the service nor delays its end.
 */
import { write, writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

/** How long a line waits for others, in ms, and the bytes that are written without waiting. */
const GATHERING_MS = 10
const GATHERED_BYTES = 65_536

/** The pause after a failure, in ms, and the bytes that wait during a failure. */
const RETRY_MS = 1000
const WAITING_BYTES = 1024 * 1024

/** The system calls, which tests replace. */
export interface WriteCalls {
  write(fd: number, bytes: Uint8Array, done: (error: Error | null, written: number) => void): void
  writeSync(fd: number, bytes: Uint8Array): number
}

/**
 * A destination for whole lines on the file descriptor `fd`. Failed lines are retried with the next. Beyond a MiB of
 * them new lines are dropped, and a later line counts them.
 */
export class LogLines implements DestinationStream {
  readonly #fd: number
  readonly #calls: WriteCalls
  /** Waiting lines, as bytes: the garbage collector would move strings, which is slower. */
  #waiting = Buffer.allocUnsafeSlow(WAITING_BYTES)
  #waitingBytes = 0
  /** The buffer for new lines while the other one is written. */
  #spare = Buffer.allocUnsafeSlow(WAITING_BYTES)
  #dropped = 0
  /** The unwritten rest of the current lines. */
  #unwritten = Buffer.alloc(0)
  #writing = false
  #timer: NodeJS.Timeout | undefined
  /** Called once no line waits. */
  #whenWritten: (() => void)[] = []

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
    // Failed lines wait for their timer.
    if (this.#unwritten.length === 0) this.#sendSoon()
  }

  /** Calls `done` once the operating system has all lines; pino's `flush` leads here. */
  flush(done: () => void): void {
    this.#whenWritten.push(done)
    if (!this.#writing) this.#send()
  }

  /** The process ends: the rest is written synchronously or lost. An asynchronous write in progress completes. */
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
      // There is no place left to report it.
    }
  }

  /** Whether there was space for the line. */
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
      if (this.#unwritten.length > 0) return this.#send()
      if (this.#waitingBytes > 0) return this.#sendSoon()
      for (const done of this.#whenWritten.splice(0)) done()
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
