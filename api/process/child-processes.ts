/** Runs the pipeline's programs as child processes, never in the API's own. */
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** The end of a child: its exit code and signal, one of them null, or why it never started. */
export type Ending = Readonly<Record<string, unknown>>

/** Runs a TypeScript program of this package with the same Node, environment and stderr, until it ends or `signal` ends it. */
export async function runProgram(
  program: URL,
  args: readonly string[],
  signal: AbortSignal,
): Promise<Ending> {
  const { promise, resolve } = Promise.withResolvers<Ending>()
  // Its output are messages, and stdout belongs to this process. The IPC channel carries nothing: it closes when this
  // process ends in any way, which the program detects.
  const stdio = ['ignore', 2, 2, 'ipc'] as const
  const child = spawn(process.execPath, [fileURLToPath(program), ...args], { stdio: [...stdio], signal })
  child.once('exit', (code, name) => resolve({ code, signal: name }))
  child.on('error', (error) => {
    // The signal is an error too, before the end.
    if (child.pid === undefined) resolve({ err: error })
  })
  return await promise
}

/** Runs a program until `signal` ends it, again `delayMs` after it ended by itself, and calls `onEnd` each time. */
export async function keepRunning(
  program: URL,
  args: readonly string[],
  options: {
    readonly delayMs: number
    readonly onEnd: (ending: Ending) => void
    readonly signal: AbortSignal
  },
): Promise<void> {
  const { delayMs, onEnd, signal } = options
  while (!signal.aborted) {
    const ending = await runProgram(program, args, signal)
    if (signal.aborted) return
    onEnd(ending)
    await sleep(delayMs, undefined, { signal }).catch(() => undefined)
  }
}
