/** Programs with commands, such as `npm run keys -- list`: finds, checks, runs and explains a command. */
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { explainTable, faultsOf, valueOf, type Table, type Values } from './options.ts'
import { EXIT_USAGE, explained, note, print, wrap } from './terminal.ts'

/** A failure with a message that suffices for the operator; the process ends with its exit code. */
export abstract class ProgramError extends Error {
  abstract readonly exitCode: number
}

/** An option, a setting, or what they name is wrong or unavailable: the message names the remedy, and the code is 2. */
export class UsageError extends ProgramError {
  override readonly name = 'UsageError'
  readonly exitCode = EXIT_USAGE
}

/** A command; `Dependencies` is what its work is handed. */
export type Command<Dependencies, Options extends Table = Table> = {
  /** Its purpose, without a full stop. */
  readonly summary: string
  /** Its arguments, as the help shows them: `ID NAME`, `[TEXT]`, `FILE...`. Default: none. */
  readonly takes?: string
  readonly options: Options
  /** Throws for options and arguments that do not go together, before anything is opened. */
  check?(options: Values<Options>, args: string[]): void
  work(dependencies: Dependencies, options: Values<Options>, args: string[]): Promise<void>
}

/** Makes commands: gives check and work the types of the values of their options. */
export function commandsOf<Dependencies>() {
  return <Options extends Table>(command: Command<Dependencies, Options>): Command<Dependencies> => command
}

type Work<Dependencies> = (dependencies: Dependencies) => Promise<void>

/**
 * The checked values of a table, from the options or settings given by name.
 * @throws UsageError that lists every fault.
 */
export function checkedValues<Given extends Table>(
  table: Given,
  given: Readonly<Record<string, unknown>>,
  prefix = '',
) {
  const faults = faultsOf(table, given, prefix)
  if (faults.size > 0) throw new UsageError([...faults.values()].join('\n'))
  return z.object(table).parse(given)
}

/** @throws UsageError for an unknown option, or one without its value. */
function parse(call: string, table: Table, args: readonly string[]) {
  const entries = Object.entries(table).map(([name, schema]) => {
    const value = valueOf(schema)
    const type = value === undefined ? 'boolean' : 'string'
    return [name, { type, multiple: value?.endsWith('...') === true }] as const
  })
  try {
    const options = Object.fromEntries(entries)
    // `--no-catch-up` gives the flag `catch-up` the value false.
    return parseArgs({ args: [...args], options, allowPositionals: true, allowNegative: true })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    // No argument of a command begins with a dash.
    const fault = reason.replace(/\. To specify a positional argument .*/s, '')
    throw new UsageError(`${fault}\nSee ${call} --help`, { cause: error })
  }
}

/** A program's input from its caller: arguments, environment, and outputs for data and messages. */
export type CommandLine = {
  readonly args: readonly string[]
  readonly environment: NodeJS.ProcessEnv
  readonly print: (text: string) => void
  readonly note: (text: string) => void
}

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

/** A program that is one command: runs it, or prints its help; resolves to the exit code (CONTRACT 9). */
export function programOf<Options extends Table>(call: string, command: Command<CommandLine, Options>) {
  return (line: CommandLine): Promise<number> =>
    exitCodeOf(line, () => perform<CommandLine>(`${call} --`, command, line, (work) => work(line)))
}

/**
 * Runs the command of the arguments, or prints the help; resolves to the exit code (CONTRACT 9).
 * @param connect opens the dependencies, does the work, and closes them.
 */
export function runCommandLine<Dependencies>(
  program: Program<Dependencies>,
  line: CommandLine,
  connect: (work: Work<Dependencies>) => Promise<void>,
): Promise<number> {
  const { call, commands, defaultCommand = '' } = program
  const [first = '', ...rest] = line.args
  const name = first === '' || first.startsWith('-') ? defaultCommand : first
  return exitCodeOf(line, async () => {
    if (name !== first && wantsHelp(line.args)) return line.print(programHelp(program))
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (command === undefined) {
      const found = first === '' ? 'The command is missing' : `Unknown command "${first}"`
      throw new UsageError(`${found}: expected ${Object.keys(commands).join(', ')}. See ${call} -- --help`)
    }
    const args = name === first ? rest : line.args
    await perform(`${call} -- ${name}`, command, { ...line, args }, connect)
  })
}

/** Prints the help of a command, or checks its arguments, before `connect` opens anything, and does its work. */
async function perform<Dependencies>(
  call: string,
  { takes = '', options, ...command }: Command<Dependencies>,
  { args, print: write }: CommandLine,
  connect: (work: Work<Dependencies>) => Promise<void>,
): Promise<void> {
  if (wantsHelp(args)) {
    const hint = Object.keys(options).length === 0 ? '' : '[OPTIONS]'
    const summary = `${command.summary.charAt(0).toUpperCase()}${command.summary.slice(1)}.`
    const usage = `Usage: ${[call, takes, hint].filter(Boolean).join(' ')}`
    return write(helpOf(usage, summary, explainTable(options, '--')))
  }
  const { values, positionals } = parse(call, options, args)
  const words = takes.split(' ').filter(Boolean)
  const least = words.filter((word) => !word.startsWith('[')).length
  const most = takes.endsWith('...') ? Infinity : words.length
  if (positionals.length < least || positionals.length > most) {
    const given = positionals.length === 0 ? '' : `, not "${positionals.join(' ')}"`
    throw new UsageError(`Expected ${takes || 'no arguments'}${given}: see ${call} --help`)
  }
  const checked = checkedValues(options, values, '--')
  command.check?.(checked, positionals)
  await connect((dependencies) => command.work(dependencies, checked, positionals))
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

function programHelp<Dependencies>({ call, summary, notes, ...program }: Program<Dependencies>): string {
  const { commands, defaultCommand: usual = '' } = program
  const name = usual === '' ? 'COMMAND' : '[COMMAND]'
  const options = commands[usual] && `Options of ${usual}:\n${explainTable(commands[usual].options, '--')}`
  const list = Object.entries(commands).map(([each, command]) =>
    explained(`${each} ${command.takes ?? ''}`.trimEnd(), command.summary),
  )
  const more = `${call} -- COMMAND --help explains the options of a command.`
  return helpOf(`Usage: ${call} -- ${name} [OPTIONS]`, summary, list.join('\n'), more, options ?? '', notes)
}

function helpOf(usage: string, summary: string, ...parts: readonly string[]): string {
  return [usage, wrap(summary), ...parts].filter(Boolean).join('\n\n')
}

/** Runs a program as this process, with its exit code. */
export async function runAsProcess(run: (line: CommandLine) => Promise<number>): Promise<void> {
  // What it writes is private to its user, such as raw usage and keys; publishing opens the snapshots.
  process.umask(0o077)
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
