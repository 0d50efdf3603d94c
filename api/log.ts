import { pino, stdSerializers, type DestinationStream, type Logger } from 'pino'
import type { Settings } from './config.ts'
import { hideKeys } from './accounts/credentials.ts'

export type Log = Logger

const STDERR = 2

/** How long a line waits for others, and how many characters are written without waiting. */
const GATHERING_MS = 10
const GATHERED_CHARACTERS = 8192

/** The log: one JSON object per line on stderr, since stdout belongs to data (CONTRACT 9). */
export function createLog(level: Settings['LOG_LEVEL'], destination: DestinationStream = gatherLines()): Log {
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

// Handing over a line to be written costs more than making it, so those of a moment go out together. The last ones
// are written at the exit of the process.
function gatherLines(): DestinationStream {
  const stderr = pino.destination({ dest: STDERR, sync: false, minLength: GATHERED_CHARACTERS })
  let waiting: NodeJS.Timeout | undefined
  const flush = () => {
    waiting = undefined
    stderr.flush()
  }
  return {
    write(line) {
      stderr.write(line)
      waiting ??= setTimeout(flush, GATHERING_MS).unref()
    },
  }
}

// An error's text may quote what a client sent, and a client may send its key anywhere.
function describeError(error: Error): unknown {
  return JSON.parse(hideKeys(JSON.stringify(stdSerializers.err(error))))
}
