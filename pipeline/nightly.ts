/** Entry of `npm run nightly`: finds the command, runs it, sets the exit code (CONTRACT 9). */
import {
  asksForHelp,
  commandNamed,
  onStopSignal,
  runAsProcess,
  type CommandLine,
} from './terminal/command-line.ts'
import type { Command } from './commands/command.ts'
import { diff } from './commands/diff.ts'
import { planCommand } from './commands/plan.ts'
import { importCommand } from './commands/import.ts'
import { prune } from './commands/prune.ts'
import { quarantine } from './commands/quarantine.ts'
import { rebuild } from './commands/rebuild.ts'
import { retract } from './commands/retract.ts'
import { run } from './commands/run.ts'
import { ship } from './commands/ship.ts'
import { status } from './commands/status.ts'
import { pipelineSettings, readConfig } from './config.ts'
import { settingsHelp } from './contract/settings.ts'
import { explained, isExpected, stackOf } from './errors.ts'
import { sendOverHttp } from './notices.ts'
import { createProgress, type Progress } from './terminal/progress.ts'

const COMMANDS: Readonly<Record<string, Command>> = {
  run,
  plan: planCommand,
  import: importCommand,
  ship,
  status,
  quarantine,
  diff,
  retract,
  prune,
  rebuild,
}

const HELP = `Usage: npm run nightly -- [COMMAND] [OPTIONS]

Turns the raw usage under DATA_DIR/raw into rankings and publishes them as a snapshot. A run over unchanged
input publishes nothing new.

${Object.values(COMMANDS)
  .map(({ usage, summary }) => `  ${usage}\n      ${summary}`)
  .join('\n')}

Options:
  --from DAY, --to DAY
                  look at the days of this range alone (YYYY-MM-DD, both inclusive), and count each of them again
  --accept GATE   let a gate through once: volume, rows or apps; may be repeated
  --as-of TIME    run as if it were TIME (ISO 8601, such as 2026-11-20T02:00:00Z): days up to the one before
                  count as completed, and the snapshot states this time; after a TIME to come, later runs are
                  refused until then
  --dry-run       say what would be done, and write nothing
  --with-sample   put the bundled sample in first, if DATA_DIR holds neither a snapshot nor anything raw
  --json          print the result as JSON; data goes to stdout, messages to stderr
  --help, -h      print this help

${settingsHelp(pipelineSettings.shape)}

Exit codes: 0 published or unchanged, 1 a check failed or a gate blocked, and nothing was published,
2 wrong usage or a crash, 75 another run is under way
`

/** The command and its arguments; without a command's name it is a run. */
function findCommand(args: string[]): { command: Command; rest: string[] } {
  const [name, ...rest] = args
  if (name === undefined || name.startsWith('-')) return { command: run, rest: args }
  return { command: commandNamed(COMMANDS, name), rest }
}

/** Runs the command that the arguments name to its end; resolves to the exit code (CONTRACT 9). */
export async function nightly(
  { args, environment, print }: CommandLine,
  progress: Progress,
): Promise<number> {
  try {
    if (asksForHelp(args)) {
      print(HELP.trimEnd())
      return 0
    }
    const { command, rest } = findCommand(args)
    const work = command.prepare(rest)
    const config = readConfig(environment)
    const world = { config, progress, now: () => new Date(), print, send: sendOverHttp }
    await work(world).catch((error: unknown) => {
      throw explained(error, config.dataDir)
    })
    return 0
  } catch (error) {
    progress.note(isExpected(error) ? error.message : `The run crashed: ${stackOf(error)}`)
    return isExpected(error) ? error.exitCode : 2
  }
}

if (import.meta.main) {
  const progress = createProgress(process.stderr)
  onStopSignal((signal) =>
    progress.note(`Stopped by ${signal}. What is published stays; the next run begins anew`),
  )
  await runAsProcess((line) => nightly(line, progress))
}
