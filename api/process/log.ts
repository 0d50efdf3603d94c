/** The log on stderr, since stdout is for data (CONTRACT 9): a JSON object per line. */
import { pino, stdSerializers, type DestinationStream, type LevelWithSilent, type Logger } from 'pino'
import sonicBoom from 'sonic-boom'

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
function openStderr(): DestinationStream {
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
  return target
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
