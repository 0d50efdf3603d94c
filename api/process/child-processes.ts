/** Runs the pipeline's programs as child processes, never in the API's own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** The end of a child: its exit code and signal, one of them null, or why it never started. */
export type Ending = Readonly<Record<string, unknown>>

export interface Child {
  /** Resolves when the process has ended, in any way. */
  readonly ended: Promise<Ending>
  /** Signals the process to end and waits until it has. */
  stop(): Promise<void>
}

/** Runs a TypeScript program of this package with the same Node, environment and stderr. */
export function runProgram(program: URL, args: readonly string[]): Child {
  // Its output are messages, and stdout belongs to this process. The IPC channel carries nothing: it closes when this
  // process ends in any way, which the program detects.
  const child = spawn(process.execPath, [fileURLToPath(program), ...args], { stdio: ['ignore', 2, 2, 'ipc'] })
  const ended = once(child, 'exit').then(
    ([code, signal]: unknown[]) => ({ code, signal }),
    (error: unknown) => ({ err: error }),
  )
  return {
    ended,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** Like runProgram, but restarts the program `delayMs` after it ended by itself, and calls `onEnd` each time. */
export function keepRunning(
  program: URL,
  args: readonly string[],
  { delayMs, onEnd }: { readonly delayMs: number; readonly onEnd: (ending: Ending) => void },
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  let child = runProgram(program, args)

  async function loop(): Promise<void> {
    for (;;) {
      const ending = await child.ended
      if (stopping.signal.aborted) return
      onEnd(ending)
      await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (stopping.signal.aborted) return
      child = runProgram(program, args)
    }
  }

  const looping = loop()
  return {
    async stop() {
      stopping.abort()
      await child.stop()
      await looping
    },
  }
}
