/** Entry of `npm run directories`: connects accounts to their SCIM directories (CONTRACT 9). */
import { readSettings } from '../config.ts'
import {
  EXIT_USAGE,
  chooseCommand,
  failureText,
  onStopSignal,
  runAsProcess,
  type CommandLine,
} from '../process/entry.ts'
import { createLog } from '../process/log.ts'
import { openStore } from '../store/open-store.ts'
import { COMMANDS, HELP } from './directory-commands.ts'
import { FAILURES, SyncFailure } from '../scim/failures.ts'

const EXIT_FAILED = 1

/** Runs the command that the arguments name until `onStop` calls back; resolves to the exit code. */
export async function directories(line: CommandLine, onStop = onStopSignal): Promise<number> {
  try {
    await run(line, onStop)
    return 0
  } catch (error) {
    const isFailure = error instanceof SyncFailure
    line.note(isFailure ? `${FAILURES[error.failure]} (${error.message})` : failureText(error))
    return isFailure ? EXIT_FAILED : EXIT_USAGE
  }
}

async function run(line: CommandLine, onStop: typeof onStopSignal): Promise<void> {
  const chosen = chooseCommand(COMMANDS, HELP, line)
  if (chosen === undefined) return
  const work = chosen.command.prepare(chosen.args)
  const settings = readSettings(line.environment)
  const store = await openStore(settings, new Date())
  const stopping = new AbortController()
  onStop(() => stopping.abort(new SyncFailure('interrupted', 'Interrupted')))
  try {
    await work({
      store,
      settings,
      environment: line.environment,
      signal: stopping.signal,
      clock: () => new Date(),
      log: createLog(settings.LOG_LEVEL),
      print: line.print,
      note: line.note,
    })
  } finally {
    await store.close()
  }
}

if (import.meta.main) await runAsProcess((line) => directories(line))
