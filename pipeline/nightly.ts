/** Entry of `npm run nightly`: finds the command, runs it, sets the exit code (CONTRACT 9). */
import './program/runtime.js'
import { importCommand } from './commands/import.ts'
import { plan } from './commands/plan.ts'
import { prune } from './commands/prune.ts'
import { quarantine } from './commands/quarantine.ts'
import { rebuild } from './commands/rebuild.ts'
import { retract } from './commands/retract.ts'
import { run } from './commands/run.ts'
import { status } from './commands/status.ts'
import { verify } from './commands/verify.ts'
import { PIPELINE_SETTINGS, readConfig, refuseMissing } from './config.ts'
import { onStopSignal, runAsProcess, runCommandLine, type CommandLine } from './program/program.ts'
import { settingsHelp } from './program/settings.ts'
import { createProgress, type Progress } from './terminal/progress.ts'

const PROGRAM = {
  call: 'npm run nightly',
  summary:
    'Turns the raw usage under DATA_DIR/raw into rankings and publishes them as a snapshot. A run over unchanged ' +
    'input publishes nothing new. Data goes to stdout, messages to stderr; --json prints a result as JSON.',
  commands: { run, plan, import: importCommand, status, quarantine, retract, prune, verify, rebuild },
  defaultCommand: 'run',
  notes: `${settingsHelp(PIPELINE_SETTINGS)}

Exit codes: 0 published or unchanged, 1 a check failed or a gate blocked, and nothing was published,
2 wrong usage or a crash, 75 another run holds the lock`,
}

/** Runs the command that the arguments name to its end; resolves to the exit code (CONTRACT 9). */
export function nightly(line: CommandLine, progress: Progress): Promise<number> {
  const { args, environment, print } = line
  // An import and some runs make DATA_DIR; for the other commands a missing one would look like an empty one.
  const mustExist = /^(?!run$|import$)[a-z]/.test(args[0] ?? '')
  return runCommandLine(PROGRAM, { ...line, note: (text) => progress.note(text) }, async (work) => {
    const config = readConfig(environment)
    if (mustExist) refuseMissing(config)
    await work({ config, progress, now: () => new Date(), print })
  })
}

if (import.meta.main) {
  const progress = createProgress(process.stderr)
  onStopSignal((signal) =>
    progress.note(`Stopped by ${signal}. What is published stays; the next run starts over`),
  )
  await runAsProcess((line) => nightly(line, progress))
}
