import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { StoreSettings } from '../../store/open-store.ts'
import { SyncFailure } from '../failures.ts'
import { UNOBSERVED, type SyncObserver } from '../observer.ts'
import type { SyncOptions } from '../sync/sync.ts'
import { fromChildSchema, type FromChild, type ToChild } from './child-messages.ts'
import type { RunSync, SyncReport } from './run-in-process.ts'

const PROGRAM = fileURLToPath(new URL('sync-child.ts', import.meta.url))

const MIB = 1024 * 1024
/** The share of the memory for groups and members; the rest is for reading and writing them. */
const MEMORY_SHARE = 3
/** Characters of a child's last output that are logged. */
const LAST_WORDS = 4000

interface ChildOptions {
  readonly store: StoreSettings
  readonly environment: NodeJS.ProcessEnv
  /** Memory of one child, in MiB. */
  readonly memoryMib: number
}

/** Runs each sync in a process of its own. If that runs out of memory, the directory is too large. */
export function runInChild({ store, environment, memoryMib }: ChildOptions): RunSync {
  return async (task, options, { observer = UNOBSERVED }) => {
    options.signal.throwIfAborted()
    const child = fork(PROGRAM, [], {
      env: environment,
      execArgv: [`--max-old-space-size=${memoryMib}`],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    const lastWords = keepLastWords(child)
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('close', (code, signal) => resolve(`it ended with ${signal ?? code}. ${lastWords()}`))
    })
    const kill = () => child.kill('SIGKILL')
    options.signal.addEventListener('abort', kill)
    try {
      const report = converse(child, options, observer)
      const { DATA_DIR, DATABASE_URL } = store
      send(child, {
        kind: 'task',
        store: DATABASE_URL === undefined ? { DATA_DIR } : { DATA_DIR, DATABASE_URL },
        task,
        allowDeletions: options.allowDeletions,
        memoryBytes: (memoryMib * MIB) / MEMORY_SHARE,
      })
      return await Promise.race([report, ended.then((how) => Promise.reject(endOf(how, memoryMib)))])
    } catch (error) {
      throw options.signal.aborted ? options.signal.reason : error
    } finally {
      options.signal.removeEventListener('abort', kill)
      kill()
      await ended
    }
  }
}

/** Answers the child until it reports the end of the sync. */
function converse(child: ChildProcess, options: SyncOptions, observer: SyncObserver): Promise<SyncReport> {
  const pauses = new Map<number, () => void>()
  const { whilePausing = (pause) => pause() } = options
  return new Promise((resolve, reject) => {
    const answer = (message: FromChild): void => {
      switch (message.kind) {
        case 'pause': {
          const { pause } = message
          const over = new Promise<void>((end) => pauses.set(pause, end))
          void whilePausing(() => over).then(() => send(child, { kind: 'go_on', pause }))
          return
        }
        case 'paused':
          pauses.get(message.pause)?.()
          pauses.delete(message.pause)
          return
        case 'requested':
          return observer.requestFinished(message.outcome)
        case 'done':
          return resolve(message.report)
        case 'failed':
          return reject(new SyncFailure(message.failure, message.detail))
      }
    }
    child.on('message', (message) => answer(fromChildSchema.parse(message)))
    // A pause of a dead child returns its slot.
    child.once('close', () => pauses.forEach((end) => end()))
  })
}

function send(child: ChildProcess, message: ToChild): void {
  // The close event reports a child that has just ended.
  if (child.connected) child.send(message, () => undefined)
}

function keepLastWords(child: ChildProcess): () => string {
  let words = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (words = (words + text).slice(-LAST_WORDS)))
  return () => words
}

// V8 prints this before it aborts; the operating system kills silently.
const WITHOUT_MEMORY = /out of memory|Allocation failed|SIGKILL/i

function endOf(how: string, memoryMib: number): SyncFailure {
  if (WITHOUT_MEMORY.test(how)) {
    return new SyncFailure('directory_too_large', `the sync needs more than ${memoryMib} MiB of memory`)
  }
  return new SyncFailure('internal', `the process of the sync is gone: ${how}`)
}
