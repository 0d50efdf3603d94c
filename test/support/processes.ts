/** Processes and their output. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

export const REPOSITORY = join(import.meta.dirname, '..', '..')

/** How a process ended, and its output. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

interface Surroundings {
  readonly environment: Readonly<Record<string, string>>
  /** As leader of a process group, to which a terminal sends its signals. */
  readonly detached?: boolean
}

/** Starts a command in the repository; `output` is its output so far. */
export function startProcess(
  command: string,
  args: readonly string[],
  { environment, detached = false }: Surroundings,
) {
  const child = spawn(command, args, {
    cwd: REPOSITORY,
    detached,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  const ended = once(child, 'close').then((): Ended => ({
    code: child.exitCode,
    signal: child.signalCode,
    ...output,
  }))
  return { child, output, ended }
}

/** Arguments of a program's entry function. */
interface CommandLine {
  readonly args: string[]
  readonly environment: NodeJS.ProcessEnv
  readonly print: (text: string) => void
  readonly note: (text: string) => void
}

/** A program's entry function, which resolves to the exit code. */
export type Command = (line: CommandLine) => Promise<number>

/** Runs a command in the test's process, with the result of a process. */
export async function runCommandLine(
  command: Command,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Ended> {
  const output = { stdout: '', stderr: '' }
  const code = await command({
    args: [...args],
    environment: { ...process.env, ...environment },
    print: (text) => (output.stdout += `${text}\n`),
    note: (text) => (output.stderr += `${text}\n`),
  })
  return { code, signal: null, ...output }
}

/** Starts one of our programs in a shell that redirects its output: `2>/dev/full`, say. */
export function startRedirected(
  redirection: string,
  [program, ...args]: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
) {
  const command = ['-c', `exec "$0" "$@" ${redirection}`, process.execPath, join(REPOSITORY, program)]
  return startProcess('sh', [...command, ...args], { environment })
}

/** Starts one of our programs without root's privileges, so that file rights apply to it. */
export function startWithoutPrivilege(
  [program, ...args]: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
) {
  const command = [process.execPath, join(REPOSITORY, program), ...args] as const
  if (process.getuid?.() !== 0) return startProcess(command[0], command.slice(1), { environment })
  return startProcess('setpriv', ['--bounding-set=-dac_override,-dac_read_search', ...command], {
    environment,
  })
}
