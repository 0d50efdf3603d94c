/** The pipeline's programs as child processes: the API never runs them in its own. */
import { spawn, type ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** How a child ended: its exit code, the signal that ended it, or why it never began. */
export type Ending = { readonly code: number } | { readonly signal: string } | { readonly fault: string }

/** A child process under way. */
export interface Child {
  /** Resolves when the process has ended, however it did. */
  readonly ended: Promise<Ending>
  /** Asks the process to end and waits until it has. */
  stop(): Promise<void>
}

/** Runs a TypeScript program of this package with our own Node; it shares our environment and our stderr. */
export function runProgram(program: URL, args: readonly string[]): Child {
  // What it prints are messages, and our stdout is for what was asked of us. The channel carries nothing: it
  // closes when we end, however we do, and so tells the program that it is alone.
  const child = spawn(process.execPath, [fileURLToPath(program), ...args], { stdio: ['ignore', 2, 2, 'ipc'] })
  const ended = endingOf(child)
  return {
    ended,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** As runProgram, and starts the program again `delayMs` after it ended by itself, each time told to `onEnd`. */
export function keepRunning(
  program: URL,
  args: readonly string[],
  { delayMs, onEnd }: { readonly delayMs: number; readonly onEnd: (ending: Ending) => void },
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  let child: Child

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      child = runProgram(program, args)
      const ending = await child.ended
      if (stopping.signal.aborted) return
      onEnd(ending)
      await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => undefined)
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

function endingOf(child: ChildProcess): Promise<Ending> {
  const { promise, resolve } = Promise.withResolvers<Ending>()
  child.once('error', (error) => resolve({ fault: error.message }))
  child.once('exit', (code, signal) => resolve(code === null ? { signal: signal ?? 'unknown' } : { code }))
  return promise
}
