/** Entry of `npm run apps`: the app registry, shown and decided about (CONTRACT 9). */
import { alias, hide, rename, show, tag } from './registry/decisions.ts'
import { history, list } from './registry/show-registry.ts'
import type { AppsWorld } from './registry/world.ts'
import type { Command } from './commands/command.ts'
import { asksForHelp, commandNamed, runAsProcess, type CommandLine } from './terminal/command-line.ts'
import { readConfig } from './config.ts'
import { explained, isExpected, stackOf } from './errors.ts'

const COMMANDS: Readonly<Record<string, Command<AppsWorld>>> = {
  list,
  history,
  rename,
  hide,
  show,
  tag,
  alias,
}

const HELP = `Usage: npm run -s apps -- COMMAND

${Object.values(COMMANDS)
  .map(({ usage, summary }) => `  ${usage}\n      ${summary}`)
  .join('\n')}

A decision is appended to DATA_DIR/raw/apps, with its reason and its time, and counts from the next nightly run
on. It also outranks what chat requests say of the app from then on. Data goes to stdout, messages to stderr.

Settings (environment): DATA_DIR, PIPELINE_MEMORY; see README.md
Exit codes: 0 done, 1 the registry cannot be read or written, 2 wrong usage or a crash, 75 another decision is under way
`

function findCommand({ args, environment, print, note }: CommandLine): () => Promise<void> {
  const [name, ...rest] = args
  const work = commandNamed(COMMANDS, name).prepare(rest)
  const config = readConfig(environment)
  return () =>
    work({ config, now: () => new Date(), print, note }).catch((error: unknown) => {
      throw explained(error, config.dataDir)
    })
}

/** Runs the command that the arguments name; resolves to the exit code (CONTRACT 9). */
export async function apps(line: CommandLine): Promise<number> {
  try {
    if (asksForHelp(line.args)) line.print(HELP.trimEnd())
    else await findCommand(line)()
    return 0
  } catch (error) {
    line.note(isExpected(error) ? error.message : `The command crashed: ${stackOf(error)}`)
    return isExpected(error) ? error.exitCode : 2
  }
}

if (import.meta.main) await runAsProcess(apps)
