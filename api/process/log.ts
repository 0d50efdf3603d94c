/** The log on stderr, since stdout is for data (CONTRACT 9): a JSON object per line, or plain lines at a terminal. */
import { isatty } from 'node:tty'
import { pino, stdSerializers, type DestinationStream, type LevelWithSilent, type Logger } from 'pino'
import sonicBoom from 'sonic-boom'
import { z } from 'zod'
import { printable } from '../../pipeline/program/terminal.ts'

export type Log = Logger

const STDERR = 2

/** Bytes of lines that wait for a slow reader or a full disk. */
const WAITING_BYTES = 1024 * 1024

/** A log of lines from `level` on. */
export function createLog(level: LevelWithSilent, destination: DestinationStream = openStderr()): Log {
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
 * A destination for lines on stderr. Simultaneous lines are written together, asynchronously. A failing target (full disk,
 * closed reader or terminal) neither ends the service nor delays its end: lines wait for the next one, up to a MiB, and a
 * later line counts the ones beyond.
 */
function openStderr(): DestinationStream & { flush(done: () => void): void } {
  // With a minimum of 1 its `flush` waits for the write. It is never flushed synchronously, which would loop for ever
  // while the target fails.
  const target = new sonicBoom.SonicBoom({ fd: STDERR, sync: false, minLength: 1, maxLength: WAITING_BYTES })
  let dropped = 0
  target.on('error', () => undefined)
  target.on('drop', () => (dropped += 1))
  target.on('drain', () => {
    if (dropped === 0) return
    const msg = 'lines of the log were dropped: stderr took them too slowly'
    target.write(`${JSON.stringify({ level: 'warn', time: new Date(), lines: dropped, msg })}\n`)
    dropped = 0
  })
  const isTerminal = isatty(STDERR)
  return {
    write: (line) => void target.write(isTerminal ? plainLine(line) : line),
    flush: (done) => target.flush(() => done()),
  }
}

/** The text with every key replaced, of this service or of a provider. */
export function hideKeys(text: string): string {
  // A fast path, since nearly all texts hold no key. A client may have encoded any character of a key in a path.
  if (!/(?:s|%73)(?:k|%6b)(?:-|%2d)/i.test(text)) return text
  const plain = text.replaceAll(/%[2-7][\da-f]/gi, (code) => decodeURIComponent(code))
  const hidden = plain.replaceAll(/(sk-[a-z]+)-[\w-]+/g, '$1-[hidden]')
  return hidden === plain ? text : hidden
}

// An error's text may quote client input, and that may contain a key.
function describeError(error: Error): unknown {
  return JSON.parse(hideKeys(JSON.stringify(stdSerializers.err(error))))
}

const lineSchema = z.looseObject({
  level: z.string(),
  time: z.string(),
  msg: z.string().default(''),
  err: z.looseObject({ stack: z.string() }).optional(),
})

/** A line of the log for people: `12:58:30 info  listening origin=http://127.0.0.1:3000`. */
export function plainLine(line: string): string {
  const { level, time, msg, err, ...facts } = lineSchema.parse(JSON.parse(line))
  const named = Object.entries(facts).map(
    ([name, value]) => ` ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const words = `${time.slice(11, 19)} ${level.padEnd(5)} ${msg}${named.join('')}`
  return `${printable(err === undefined ? words : `${words}\n  ${err.stack}`)}\n`
}
