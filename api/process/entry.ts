/** What the entry files share: how a process speaks and ends. */
import { isatty } from 'node:tty'
import { OperatorError } from '../http/errors.ts'

/** Exit code for wrong usage or a start that failed (CONTRACT 9). */
export const EXIT_USAGE = 2

const STDIN = 0
const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const
/** npm passes a signal on within milliseconds; a person takes longer to send a second one. */
const ECHO_MS = 1000

// A message that nobody can read any more stops no work.
process.stderr.on('error', () => undefined)

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader has had enough, as `head` does.
  if (error.code === 'EPIPE') return
  note(`Cannot write to stdout: ${error.message}`)
  process.exitCode = EXIT_USAGE
})

/** Data, on stdout (CONTRACT 9). Where it cannot be written the process exits with 2. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** A message, on stderr. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** What a command is handed by its caller: arguments, environment, and where data and messages go. */
export interface CommandLine {
  readonly args: readonly string[]
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

/**
 * For commands that take none: `--help` prints `usage` and ends the process.
 * @throws {OperatorError} for any other argument.
 */
export function takeNoArguments(usage: string): void {
  const [first] = process.argv.slice(2)
  if (first === undefined) return
  if (!isHelp(first)) {
    throw new OperatorError(`Unexpected argument "${first}": settings come from the environment\n\n${usage}`)
  }
  print(usage)
  process.exit()
}

/**
 * What the arguments of a program with commands ask for: the command they name, and the arguments that follow; undefined
 * where they ask for `help`, which is printed then.
 * @throws {OperatorError} with `help` when they name none.
 */
export function chooseCommand<Command>(
  commands: Readonly<Record<string, Command>>,
  help: string,
  { args: all, print: show }: CommandLine,
): { readonly command: Command; readonly args: readonly string[] } | undefined {
  const [name, ...args] = all
  if (all.some(isHelp)) {
    show(help)
    return undefined
  }
  const command = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command !== undefined) return { command, args }
  const fault = name === undefined ? 'No command' : `Unknown command "${name}"`
  throw new OperatorError(`${fault}\n\n${help}`)
}

function isHelp(argument: string): boolean {
  return argument === '--help' || argument === '-h'
}

/**
 * Calls `stop` on the first SIGTERM or SIGINT. A second one ends the process at once. Of what was sent to npm and to us
 * alike npm passes its own on, and under npm this echo does not count: that of a SIGINT, which a terminal sends to both,
 * and of a SIGTERM, which systemd sends to both, but who means npm alone does not, where it comes at once.
 */
export function onStopSignal(stop: () => void): void {
  let echoes = process.env['npm_lifecycle_event'] ? 1 : 0
  let stoppedAt: number | undefined
  const listener = (signal: NodeJS.Signals) => {
    if (stoppedAt === undefined) {
      stoppedAt = performance.now()
      return stop()
    }
    const mayBeEcho = signal === 'SIGINT' || performance.now() - stoppedAt < ECHO_MS
    if (mayBeEcho && echoes-- > 0) return
    for (const name of STOP_SIGNALS) process.off(name, listener)
    process.kill(process.pid, signal)
  }
  for (const signal of STOP_SIGNALS) process.on(signal, listener)
}

/** Calls `reload` on each SIGHUP, but for the one that tells that our terminal was closed: that one is a SIGTERM. */
export function onReloadSignal(reload: () => void): void {
  const inTerminal = isatty(STDIN)
  process.on('SIGHUP', () => {
    if (inTerminal && !isatty(STDIN)) process.kill(process.pid, 'SIGTERM')
    else reload()
  })
}

/** What to print of a failure: the sentence alone where the operator can put it right, all of it otherwise. */
export function failureText(error: unknown): string {
  if (error instanceof OperatorError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
