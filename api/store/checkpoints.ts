/**
 * Keeps the log of an SQLite file short. To move its pages to their place in the file, and to wait until the disk has
 * them, takes milliseconds in which nothing else could be answered, so a thread of its own does it.
 */
import { Worker } from 'node:worker_threads'

/** Writes after which the log is moved: a few milliseconds' work. */
const WRITES = 500

const THREAD = new URL('checkpoint-thread.ts', import.meta.url)

/** The checkpoints of the file at `path`; the thread starts when there is something to do. */
export class Checkpoints {
  readonly #path: string
  #writes = 0
  #thread: Worker | undefined
  #isBusy = false

  constructor(path: string) {
    this.#path = path
  }

  /** Notes that so many statements have written. */
  note(writes: number): void {
    this.#writes += writes
    if (this.#writes < WRITES || this.#isBusy) return
    this.#writes = 0
    this.#isBusy = true
    this.#thread ??= this.#start()
    this.#thread.postMessage('checkpoint')
  }

  /** Ends the thread, once it has done what it is at. */
  async close(): Promise<void> {
    const thread = this.#thread
    if (thread === undefined) return
    const { promise: ended, resolve } = Promise.withResolvers<number>()
    thread.once('exit', resolve)
    thread.ref()
    thread.postMessage('end')
    await ended
  }

  #start(): Worker {
    const thread = new Worker(THREAD, { workerData: this.#path })
    thread.on('message', () => (this.#isBusy = false))
    // It stays busy then: SQLite itself makes checkpoints, once the log is long (sqlite-store.ts).
    thread.on('error', () => undefined)
    thread.on('exit', () => (this.#thread = undefined))
    thread.unref()
    return thread
  }
}
