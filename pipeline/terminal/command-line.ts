/** What the entries of the pipeline share: reading options, saying something, and dying of a signal with a word. */
import { parseArgs } from 'node:util'
import type { ParseArgsConfig } from 'node:util'
import { UsageError, messageOf } from '../errors.ts'
import { printable } from './printable.ts'

// A message that nobody can read any more stops no work.
process.stderr.on('error', () => undefined)

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader has had enough, as `head` does.
  if (error.code === 'EPIPE') return
  note(`Cannot write to stdout: ${error.message}`)
  process.exitCode = 2
})

/** Data, on stdout (CONTRACT 9). Where it cannot be written the process exits with 2. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** A message, on stderr. */
export function note(text: string): void {
  process.stderr.write(`${printable(text)}\n`)
}

/** What a command is handed by its caller: arguments, environment, and where data and messages go. */
export type CommandLine = {
  readonly args: string[]
  readonly environment: NodeJS.ProcessEnv
  readonly print: (text: string) => void
  readonly note: (text: string) => void
}

/** Runs a command as this process, which ends with the exit code that it resolves to. */
export async function runAsProcess(command: (line: CommandLine) => Promise<number>): Promise<void> {
  const code = await command({ args: process.argv.slice(2), environment: process.env, print, note })
  // Data that could not be written has set a code already.
  if (code !== 0) process.exitCode = code
}

/** Whether help is asked for, anywhere on the command line. */
export function asksForHelp(args: readonly string[]): boolean {
  return args.includes('--help') || args.includes('-h')
}

/** Options and positionals of the command line; throws a UsageError for what is not known. */
export function parseCommandLine<const T extends ParseArgsConfig>(
  config: T,
): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config)
  } catch (error) {
    throw new UsageError(`${messageOf(error)}. See --help`, { cause: error })
  }
}

/** The command of this name; throws a UsageError that lists those there are. */
export function commandNamed<Command>(
  commands: Readonly<Record<string, Command>>,
  name: string | undefined,
): Command {
  const command = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command !== undefined) return command
  const fault = name === undefined ? 'No command' : `Unknown command "${name}"`
  throw new UsageError(`${fault}: expected ${Object.keys(commands).join(', ')}. See --help`)
}

/** On SIGTERM or SIGINT calls `lastWord`; the process then ends by that signal, so that its parent sees it. */
export function onStopSignal(lastWord: (signal: NodeJS.Signals) => void): void {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      lastWord(signal)
      process.kill(process.pid, signal)
    })
  }
}
