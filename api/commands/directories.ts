/** Entry point of `npm run directories`: connects accounts to their SCIM directories (CONTRACT 9). */
import '../../pipeline/program/runtime.js'
import {
  ProgramError,
  runAsProcess,
  runCommandLine,
  type CommandLine,
} from '../../pipeline/program/program.ts'
import { readSettings } from '../config.ts'
import { onStopSignal } from '../process/entry.ts'
import { createLog } from '../process/log.ts'
import { FAILURES, SyncFailure } from '../scim/failures.ts'
import { openStore } from '../store/open-store.ts'
import { COMMANDS } from './directory-commands.ts'

const PROGRAM = {
  call: 'npm run -s directories',
  summary:
    'Connects accounts to their SCIM directories. Tokens are read from the environment of the service, or from a ' +
    'file with mode 0600, at each sync. Data goes to stdout, messages to stderr.',
  commands: COMMANDS,
  notes: `The connections are in the folder DATA_DIR (default: data), or in the database of DATABASE_URL.

Exit codes: 0 done, 1 the sync or the test failed, 2 wrong usage or a crash`,
}

/** A failed sync or test. */
class FailedSync extends ProgramError {
  readonly exitCode = 1
}

/** Runs a command until `onStop` calls back; resolves to the exit code. */
export function directories(line: CommandLine, onStop = onStopSignal): Promise<number> {
  return runCommandLine(PROGRAM, line, async (work) => {
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
    } catch (error) {
      if (!(error instanceof SyncFailure)) throw error
      throw new FailedSync(`${FAILURES[error.failure]} (${error.message})`, { cause: error })
    } finally {
      await store.close()
    }
  })
}

if (import.meta.main) await runAsProcess((line) => directories(line))
