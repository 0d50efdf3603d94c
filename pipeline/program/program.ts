/** Programs with commands, such as `npm run keys -- list`: finds, runs and explains a command. */
import { parseArgs, type ParseArgsConfig, type ParseArgsOptionDescriptor } from 'node:util'
import { EXIT_USAGE, note, print, wrap } from './terminal.ts'

/** A failure with a message that suffices for the operator; the process ends with its exit code. */
export abstract class ProgramError extends Error {
  abstract readonly exitCode: number
}

/** An option, a setting, or what they name is wrong or unavailable: the message names the remedy, and the code is 2. */
export class UsageError extends ProgramError {
  override readonly name = 'UsageError'
  readonly exitCode = EXIT_USAGE
}

/** The options of a command for node's parseArgs, with what its help lists: the name of the value, and the meaning. */
type Options = Readonly<
  Record<string, ParseArgsOptionDescriptor & { readonly value?: string; readonly help: string }>
>

/** An option with a text; `value` names it in the help. */
export function textOption(value: string, help: string) {
  return { type: 'string', value, help } as const
}

/** A command; `Dependencies` is what its work is handed. */
export type Command<Dependencies> = {
  /** The command with its arguments: `retract ID --reason TEXT [--json]`. */
  readonly usage: string
  /** Its purpose, without a full stop. */
  readonly summary: string
  readonly options?: Options
  /** Checks the arguments after the command's name, before anything is opened; returns the work. */
  readonly prepare: (args: string[]) => Work<Dependencies>
}

export type Work<Dependencies> = (dependencies: Dependencies) => Promise<void>

export type Program<Dependencies> = {
  /** Its command line: `npm run nightly`. */
  readonly call: string
  readonly summary: string
  readonly commands: Readonly<Record<string, Command<Dependencies>>>
  /** The command if the arguments name none. */
  readonly defaultCommand?: string
  /** The end of the help: settings and exit codes. */
  readonly notes: string
}

/** A program's input from its caller: arguments, environment, and outputs for data and messages. */
export type CommandLine = {
  readonly args: readonly string[]
  readonly environment: NodeJS.ProcessEnv
  readonly print: (text: string) => void
  readonly note: (text: string) => void
}

type Described<Dependencies, T extends Options> = Pick<Command<Dependencies>, 'usage' | 'summary'> & {
  readonly options: T
  /** How many arguments the command takes, and in words: `one snapshot`. Default: none. */
  readonly takes?: readonly [least: number, most: number, words: string]
  readonly prepare: (
    values: ReturnType<typeof parseArgs<{ args: string[]; options: T; allowPositionals: true }>>['values'],
    args: string[],
  ) => Work<Dependencies>
}

/** Makes commands from one table of their options each, which is parsed and explained by it. */
export function commandsOf<Dependencies>() {
  return <const T extends Options>(command: Described<Dependencies, T>): Command<Dependencies> => {
    const { usage, summary, options, takes: [least, most, words] = [0, 0, 'no arguments'] } = command
    const [name = ''] = usage.split(' ', 1)
    const prepare = (args: string[]) => {
      const config = { args, options, allowPositionals: true } as const
      const { values, positionals } = parseCommandLine(config, `${name} --help`)
      if (positionals.length >= least && positionals.length <= most)
        return command.prepare(values, positionals)
      const given = positionals.length === 0 ? '' : `, not "${positionals.join(' ')}"`
      throw new UsageError(`${name} takes ${words}${given}. See ${name} --help`)
    }
    return { usage, summary, options, prepare }
  }
}

/**
 * Options and positionals of a command.
 * @param usage usage line for the error about a wrong option.
 * @throws UsageError for an unknown option, or one without its value.
 */
export function parseCommandLine<const T extends ParseArgsConfig>(
  config: T,
  usage = '--help',
): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new UsageError(`${optionFault(message)}. See ${usage}`, { cause: error })
  }
}

/** What parseArgs says of an option, as one sentence: it adds advice on arguments that begin with a dash. */
function optionFault(message: string): string {
  const [, option] = /^Option '(--[\w-]+).* argument (?:missing|is ambiguous)/.exec(message) ?? []
  if (option === undefined) return message.replace(/\. .*/s, '')
  return `Option '${option}' needs a value; if that begins with a dash, write ${option}=VALUE`
}

/** What this process writes is private to its user, such as raw usage and keys; publishing opens the snapshots. */
export function keepFilesPrivate(): void {
  process.umask(0o077)
}

/** Runs a program as this process, with its exit code. */
export async function runAsProcess(run: (line: CommandLine) => Promise<number>): Promise<void> {
  keepFilesPrivate()
  const code = await run({ args: process.argv.slice(2), environment: process.env, print, note })
  // If stdout could not be written, the exit code is already set.
  if (code !== 0) process.exitCode = code
}

/** On SIGTERM or SIGINT calls `lastWord`; the process then ends by the same signal, so that its parent sees it. */
export function onStopSignal(lastWord: (signal: NodeJS.Signals) => void): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      lastWord(signal)
      process.kill(process.pid, signal)
    })
  }
}

/**
 * Runs the command of the arguments, or prints the help; resolves to the exit code (CONTRACT 9).
 * @param connect opens the dependencies, does the work, and closes them.
 */
export function runCommandLine<Dependencies>(
  program: Program<Dependencies>,
  { args, ...line }: CommandLine,
  connect: (work: Work<Dependencies>) => Promise<void>,
): Promise<number> {
  const { commands, defaultCommand = '' } = program
  const [first = ''] = args
  return exitCodeOf(line, async () => {
    const named = Object.hasOwn(commands, first) ? commands[first] : undefined
    if (wantsHelp(args)) return line.print(named ? commandHelp(program, named) : programHelp(program))
    if (named) return await connect(named.prepare(args.slice(1)))
    const isOption = first === '' || first.startsWith('-')
    const fallback = isOption ? commands[defaultCommand] : undefined
    if (fallback) return await connect(fallback.prepare([...args]))
    const expected = `expected ${Object.keys(commands).join(', ')}`
    if (first !== '') throw new UsageError(`Unknown command "${first}": ${expected}. See --help`)
    throw new UsageError(`The command is missing: ${expected}.\n\n${programHelp(program)}`)
  })
}

/** Does the work and reports a failure; resolves to the exit code. */
export async function exitCodeOf(
  { note: report }: Pick<CommandLine, 'note'>,
  work: () => Promise<void>,
): Promise<number> {
  try {
    await work()
    return 0
  } catch (error) {
    report(failureText(error, { withStack: true }))
    return error instanceof ProgramError ? error.exitCode : EXIT_USAGE
  }
}

/** Whether any argument is --help or -h. */
export function wantsHelp(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h')
}

function programHelp<Dependencies>(program: Program<Dependencies>): string {
  const { call, summary, commands, defaultCommand, notes } = program
  const name = defaultCommand === undefined ? 'COMMAND' : '[COMMAND]'
  const list = Object.values(commands).map((each) => explained(each.usage, each.summary))
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
  const lines = Object.entries(options).map(([name, { value, help }]) =>
    explained(`--${name}${value === undefined ? '' : ` ${value}`}`, help),
  )
  const sentence = `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`
  const parts = [wrap(`Usage: ${call} -- ${usage}`), wrap(sentence)]
  return [...parts, ...(lines.length > 0 ? [`Options:\n${lines.join('\n')}`] : [])].join('\n\n')
}

/** A term, and below it its explanation. */
function explained(term: string, text: string): string {
  return `${wrap(term, '  ')}\n${wrap(text, '      ')}`
}

/** The errors of Node, SQLite and DuckDB about files, rights, memory and locks. */
const SYSTEM_FAILURE = /^(?:IO|Out of Memory|Permission|Serialization|TransactionContext|FATAL) Error: /

/** The text of a failure for the operator, in every report of it; that of a crash may have its stack. */
export function failureText(error: unknown, { withStack = false } = {}): string {
  if (error instanceof ProgramError) return error.message
  if (!(error instanceof Error)) return `Crashed: ${String(error)}`
  const isOfSystem = 'syscall' in error || 'errcode' in error || SYSTEM_FAILURE.test(error.message)
  if (!isOfSystem) return `Crashed: ${(withStack ? error.stack : undefined) ?? error.message}`
  const line = error.message.split('\n', 1).join('')
  if (line.startsWith('Out of Memory'))
    return `${line.replace(/\.$/, '')}. Raise PIPELINE_MEMORY or PIPELINE_SPILL`
  if (!/no space left on device/i.test(line)) return line
  return `${line}. Free some; npm run nightly -- prune removes old snapshots`
}
