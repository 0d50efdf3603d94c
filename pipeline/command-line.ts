/** What the entries of the pipeline share: reading options, and dying of a signal with a word. */
import { parseArgs } from 'node:util'
import type { ParseArgsConfig } from 'node:util'
import { UsageError, messageOf } from './errors.ts'

/** Options and positionals of the command line; throws a UsageError for what is not known. */
export function parseCommandLine<const T extends ParseArgsConfig>(
  config: T,
): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config)
  } catch (error) {
    throw new UsageError(`${messageOf(error)}. See --help`, { cause: error })
  }
}

/** On SIGTERM or SIGINT calls `lastWord`; the process then ends by that signal, so that its parent sees it. */
export function onStopSignal(lastWord: (signal: NodeJS.Signals) => void): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      lastWord(signal)
      process.kill(process.pid, signal)
    })
  }
}
