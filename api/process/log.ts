import { isatty } from 'node:tty'
import { pino, stdSerializers, type DestinationStream, type Logger } from 'pino'
import type { Settings } from '../config.ts'
import { hideKeys } from '../accounts/keys/credentials.ts'
import { LogLines } from './log-lines.ts'
import { plainLine } from './plain-line.ts'

export type Log = Logger

const STDERR = 2

/** The log on stderr, since stdout is for data (CONTRACT 9): a JSON object per line, or plain lines at a terminal. */
export function createLog(level: Settings['LOG_LEVEL'], destination: DestinationStream = logOnStderr()): Log {
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

function logOnStderr(): DestinationStream {
  const lines = new LogLines(STDERR)
  return isatty(STDERR) ? { write: (line) => lines.write(plainLine(line)) } : lines
}

// An error's text may quote client input, and that may contain a key.
function describeError(error: Error): unknown {
  return JSON.parse(hideKeys(JSON.stringify(stdSerializers.err(error))))
}
