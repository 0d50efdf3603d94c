import { pino, stdSerializers, type DestinationStream, type Logger } from 'pino'
import type { Settings } from '../config.ts'
import { hideKeys } from '../accounts/keys/credentials.ts'
import { LogLines } from './log-lines.ts'

export type Log = Logger

const STDERR = 2

/** The log: one JSON object per line on stderr, since stdout belongs to data (CONTRACT 9). */
export function createLog(
  level: Settings['LOG_LEVEL'],
  destination: DestinationStream = new LogLines(STDERR),
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

// An error's text may quote what a client sent, and a client may send its key anywhere.
function describeError(error: Error): unknown {
  return JSON.parse(hideKeys(JSON.stringify(stdSerializers.err(error))))
}
