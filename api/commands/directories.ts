/** Entry of `npm run directories`: connects accounts to their SCIM directories (CONTRACT 9). */
import { readSettings } from '../config.ts'
import { EXIT_USAGE, chooseCommand, failureText, note, onStopSignal, print } from '../process/entry.ts'
import { createLog } from '../process/log.ts'
import { openStore } from '../store/open-store.ts'
import { COMMANDS, HELP } from './directory-commands.ts'
import { FAILURES, SyncFailure } from '../scim/failures.ts'

const EXIT_FAILED = 1

try {
  await main()
} catch (error) {
  note(error instanceof SyncFailure ? `${FAILURES[error.failure]} (${error.message})` : failureText(error))
  process.exitCode = error instanceof SyncFailure ? EXIT_FAILED : EXIT_USAGE
}

async function main(): Promise<void> {
  const chosen = chooseCommand(COMMANDS, HELP)
  if (chosen === undefined) return
  const run = chosen.command.prepare(chosen.args)
  const settings = readSettings(process.env)
  const store = await openStore(settings, new Date())
  const stopping = new AbortController()
  onStopSignal(() => stopping.abort(new SyncFailure('interrupted', 'Interrupted')))
  try {
    await run({
      store,
      settings,
      environment: process.env,
      signal: stopping.signal,
      clock: () => new Date(),
      log: createLog(settings.LOG_LEVEL),
      print,
      note,
    })
  } finally {
    await store.close()
  }
}
