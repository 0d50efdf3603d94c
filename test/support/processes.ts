/** Commands and their output: as processes, or in the test's own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CommandLine } from '../../pipeline/program/program.ts'
import { atEnd } from './folders.ts'

export const REPOSITORY = join(import.meta.dirname, '..', '..')

/** The text of a file of the repository. */
export const textOf = (name: string) => readFileSync(join(REPOSITORY, name), 'utf8')

type Environment = Readonly<Record<string, string>>

/** How a process ended, and its output. */
export type Ended = {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export type Started = ReturnType<typeof startProcess>

/**
 * Starts a command in the repository; `using`, or the end of the test file, kills it. `output` is its output so far; `stop`
 * signals it, and resolves to how it ended.
 */
export function startProcess(
  command: string,
  args: readonly string[],
  { environment = {}, detached = false }: { environment?: Environment; detached?: boolean } = {},
) {
  const child = spawn(command, args, {
    cwd: REPOSITORY,
    // As leader of a process group, to which a terminal sends its signals.
    detached,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  // A test that failed may have left it running.
  atEnd(kill)
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  const ended = once(child, 'close').then((): Ended => ({
    code: child.exitCode,
    signal: child.signalCode,
    ...output,
  }))
  const stop = (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    return ended
  }
  return { child, output, ended, stop, [Symbol.asyncDispose]: kill }
}

/**
 * Starts one of our programs.
 * @param program its path in the repository.
 * @param through a command that starts another one with a limit or redirection: `['sh', '-c', 'exec "$0" "$@" 2>/dev/full']`.
 */
export function startProgram(
  program: string,
  args: readonly string[],
  environment: Environment,
  through: readonly string[] = [],
): Started {
  const [command = '', ...rest] = [...through, process.execPath, join(REPOSITORY, program), ...args]
  return startProcess(command, rest, { environment })
}

/** For `through`: without root's privileges, so that file rights apply. */
export const UNPRIVILEGED =
  process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : []

/** A program's entry function, which resolves to the exit code. */
export type Command = (line: CommandLine) => Promise<number>

/** Runs a command in the test's process, with the result of a process. */
export async function runCommandLine(
  command: Command,
  args: readonly string[],
  environment: Environment,
): Promise<Ended> {
  const output = { stdout: '', stderr: '' }
  const code = await command({
    args,
    environment: { ...process.env, ...environment },
    print: (text) => (output.stdout += `${text}\n`),
    note: (text) => (output.stderr += `${text}\n`),
  })
  return { code, signal: null, ...output }
}
