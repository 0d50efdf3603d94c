/** Programs that consist of commands, such as `npm run keys -- list`: how a command is found, run and explained. */
import { parseArgs } from 'node:util'
import type { ParseArgsConfig } from 'node:util'
import { COMMAND_REFUSALS, findRefusal } from './refusals.ts'
import { EXIT_USAGE, note, print, wrap } from './terminal.ts'

/** A failure whose message alone tells the operator what to do; the process ends with its exit code. */
export abstract class ProgramError extends Error {
  abstract readonly exitCode: number
}

/** A command, an option or a setting is wrong; the message names the remedy. */
export class UsageError extends ProgramError {
  override readonly name: string = 'UsageError'
  readonly exitCode = EXIT_USAGE
}

/** A command; `Dependencies` is what it works with. */
export type Command<Dependencies> = {
  /** The command with its arguments: `diff A B [--json]`. */
  readonly usage: string
  /** What it does, without a full stop. */
  readonly summary: string
  /** What its options do, by their spelling: `--reason TEXT`. */
  readonly options?: Readonly<Record<string, string>>
  /** Checks the arguments after the command's name, before anything is opened, and returns the work. */
  readonly prepare: (args: string[]) => Work<Dependencies>
}

export type Work<Dependencies> = (dependencies: Dependencies) => Promise<void>

export type Program<Dependencies> = {
  /** How it is called: `npm run nightly`. */
  readonly call: string
  readonly summary: string
  readonly commands: Readonly<Record<string, Command<Dependencies>>>
  /** The command that runs when none is named. */
  readonly defaultCommand?: string
  /** What stands at the end of the help: settings and exit codes. */
  readonly notes: string
}

/** What a program is handed by its caller: arguments, environment, and where data and messages go. */
export type CommandLine = {
  readonly args: readonly string[]
  readonly environment: NodeJS.ProcessEnv
  readonly print: (text: string) => void
  readonly note: (text: string) => void
}

/** Runs a program as this process, which ends with the exit code that it resolves to. */
export async function runAsProcess(run: (line: CommandLine) => Promise<number>): Promise<void> {
  const code = await run({ args: process.argv.slice(2), environment: process.env, print, note })
  // If stdout could not be written, the exit code is set already.
  if (code !== 0) process.exitCode = code
}

/**
 * Runs the command that the arguments name to its end; resolves to the exit code (CONTRACT 9).
 * @param connect opens what the work needs, does the work, and closes it again.
 */
export async function runCommandLine<Dependencies>(
  program: Program<Dependencies>,
  line: CommandLine,
  connect: (work: Work<Dependencies>) => Promise<void>,
): Promise<number> {
  return await exitCodeOf(line, async () => {
    const asked = readCommand(program, line.args)
    if ('help' in asked) line.print(asked.help)
    else await connect(asked.work)
  })
}

/** Does the work, reports why it failed, and resolves to the exit code. */
export async function exitCodeOf(
  { note: report }: Pick<CommandLine, 'note'>,
  work: () => Promise<void>,
): Promise<number> {
  try {
    await work()
    return 0
  } catch (error) {
    report(failureText(error))
    return error instanceof ProgramError ? error.exitCode : EXIT_USAGE
  }
}

/**
 * The work that the arguments ask for, or the help.
 * @throws UsageError for an unknown command or wrong arguments.
 */
function readCommand<Dependencies>(
  program: Program<Dependencies>,
  args: readonly string[],
): { readonly help: string } | { readonly work: Work<Dependencies> } {
  const { commands, defaultCommand = '' } = program
  const [first = ''] = args
  const named = Object.hasOwn(commands, first) ? commands[first] : undefined
  if (asksForHelp(args)) return { help: named ? commandHelp(program, named) : programHelp(program) }
  if (named) return { work: named.prepare(args.slice(1)) }
  const isOption = first === '' || first.startsWith('-')
  const fallback = isOption ? commands[defaultCommand] : undefined
  if (fallback) return { work: fallback.prepare([...args]) }
  const expected = Object.keys(commands).join(', ')
  if (first === '') {
    throw new UsageError(`The command is missing: expected ${expected}.\n\n${programHelp(program)}`)
  }
  throw new UsageError(`Unknown command "${first}": expected ${expected}. See --help`)
}

/** Whether help is asked for, anywhere on the command line. */
export function asksForHelp(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h')
}

function programHelp<Dependencies>({
  call,
  summary,
  commands,
  defaultCommand,
  notes,
}: Program<Dependencies>): string {
  const name = defaultCommand === undefined ? 'COMMAND' : '[COMMAND]'
  const list = Object.values(commands).map(describe)
  return [
    `Usage: ${call} -- ${name} [OPTIONS]`,
    wrap(summary),
    list.join('\n'),
    `${call} -- COMMAND --help explains the options of a command.`,
    notes,
  ].join('\n\n')
}

function commandHelp<Dependencies>(
  { call }: Program<Dependencies>,
  { usage, summary, options = {} }: Command<Dependencies>,
): string {
  const lines = Object.entries(options).map(([option, text]) => `  ${option}\n${wrap(text, '      ')}`)
  return [
    wrap(`Usage: ${call} -- ${usage}`),
    wrap(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`),
    ...(lines.length > 0 ? [`Options:\n${lines.join('\n')}`] : []),
  ].join('\n\n')
}

function describe({ usage, summary }: { readonly usage: string; readonly summary: string }): string {
  return `${wrap(usage, '    ').replace('    ', '  ')}\n${wrap(summary, '      ')}`
}

/**
 * Options and positionals of a command.
 * @param usage what a wrong option is answered with.
 * @throws UsageError for an unknown option.
 */
export function parseCommandLine<const T extends ParseArgsConfig>(
  config: T,
  usage = '--help',
): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new UsageError(`${message}. See ${usage}`, { cause: error })
  }
}

/** What to print of a failure: a sentence if the operator can act on it, else the stack. */
export function failureText(error: unknown): string {
  if (error instanceof ProgramError) return error.message
  if (!(error instanceof Error)) return `Crashed: ${String(error)}`
  const refusal = findRefusal(error.message, COMMAND_REFUSALS)
  return refusal === undefined
    ? `Crashed: ${error.stack ?? error.message}`
    : `${refusal.remedy}: ${error.message}`
}
