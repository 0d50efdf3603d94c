/** Entry of `npm run apps`: shows the app registry and records decisions about apps (CONTRACT 9). */
import './program/runtime.js'
import { readConfig } from './config.ts'
import { runAsProcess, runCommandLine, type CommandLine } from './program/program.ts'
import { alias, hide, rename, show, tag } from './registry/decisions.ts'
import { history, list } from './registry/show-registry.ts'

const PROGRAM = {
  call: 'npm run -s apps',
  summary:
    'Shows the app registry and records decisions about apps. A decision is appended to DATA_DIR/raw/apps, with its ' +
    'reason and its time, and counts from the next nightly run on. It outranks what earlier rows and chat requests ' +
    'state about the app. Data goes to stdout, messages to stderr.',
  commands: { list, history, rename, hide, show, tag, alias },
  notes: `Settings (environment): DATA_DIR, PIPELINE_MEMORY; see data/deploy/README.md

Exit codes: 0 done, 1 the registry cannot be read or written, 2 wrong usage or a crash,
75 another decision holds the lock`,
}

/** Runs the command that the arguments name; resolves to the exit code (CONTRACT 9). */
export function apps(line: CommandLine): Promise<number> {
  const { environment, print, note } = line
  return runCommandLine(PROGRAM, line, async (work) => {
    await work({ config: readConfig(environment), now: () => new Date(), print, note })
  })
}

if (import.meta.main) await runAsProcess(apps)
