/** The log on stderr, since stdout is for data (CONTRACT 9): a JSON object per line, or plain lines at a terminal. */
import { isatty } from 'node:tty'
import { pino, stdSerializers, type DestinationStream, type Logger } from 'pino'
import sonicBoom from 'sonic-boom'
import type { Settings } from '../config.ts'
import { hideKeys } from '../accounts/keys/credentials.ts'
import { plainLine } from './plain-line.ts'

export type Log = Logger

const STDERR = 2

/** Bytes of lines that wait for a slow reader or a full disk. */
const WAITING_BYTES = 1024 * 1024

/** A log of lines from `level` on. */
export function createLog(
  level: Settings['LOG_LEVEL'],
  destination: DestinationStream = openDestination(STDERR),
): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    destination,
  )
}

/**
 * A destination for lines on the file descriptor `fd`. Simultaneous lines are written together, asynchronously. A failing
 * target (full disk, closed reader or terminal) neither ends the service nor delays its end: lines wait for the next one,
 * up to a MiB, and a later line counts the ones beyond.
 */
function openDestination(fd: number): DestinationStream & { flush(done: () => void): void } {
  // With a minimum of 1 its `flush` waits for the write. It is never flushed synchronously, which would loop for ever
  // while the target fails.
  const target = new sonicBoom.SonicBoom({ fd, sync: false, minLength: 1, maxLength: WAITING_BYTES })
  let dropped = 0
  target.on('error', () => undefined)
  target.on('drop', () => (dropped += 1))
  target.on('drain', () => {
    if (dropped === 0) return
    const lines = dropped
    dropped = 0
    target.write(lossLine(lines))
  })
  const format = isatty(fd) ? plainLine : (line: string) => line
  return {
    write: (line) => void target.write(format(line)),
    flush: (done) => target.flush(() => done()),
  }
}

function lossLine(lines: number): string {
  const [time, msg] = [new Date().toISOString(), 'lines of the log were dropped: stderr took them too slowly']
  return `${JSON.stringify({ level: 'warn', time, lines, msg })}\n`
}

// An error's text may quote client input, and that may contain a key.
function describeError(error: Error): unknown {
  return JSON.parse(hideKeys(JSON.stringify(stdSerializers.err(error))))
}
