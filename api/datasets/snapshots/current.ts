/** The snapshots of the service: follows the pointer to the newest, and swaps it under running requests. */
import { existsSync, realpathSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { LRUCache } from 'lru-cache'
import { CURRENT_POINTER, SNAPSHOT_FILE, SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import { readRecord } from '../../../pipeline/contract/snapshot-record.ts'
import type { Log } from '../../process/log.ts'
import { createSerialQueue } from '../../process/serial-queue.ts'
import { unlessAbsent } from '../../process/system-errors.ts'
import { faultLog, refuseDamaged, type Catalogue, type Fault } from './catalogue.ts'
import { noSnapshot, retainedAt } from './choose.ts'
import { openDatabase, type AttachedFile, type Database, type PoolName } from './database.ts'
import { readFacts, type Snapshot, type SnapshotFacts } from './facts.ts'

export interface SnapshotOptions {
  readonly dataDir: string
  /** Memory of all open snapshots together, such as `1GB`. */
  readonly memory: string
  readonly catalogue: Catalogue
  readonly log: Log
  /** Prepares a snapshot while the one before is still served. */
  readonly prepare?: (snapshot: Snapshot) => Promise<void>
}

interface OpenSnapshot {
  readonly facts: SnapshotFacts
  readonly file: AttachedFile
}

/** The use of a snapshot, which stays open until it is disposed of, once. */
type HeldSnapshot = OpenSnapshot & Disposable

/** Snapshots of `as_of` that stay attached, so that the next page of the same one is fast. */
const KEPT_OPEN = 4

// A look is cheap, and a new snapshot should be visible soon.
const LOOK_EVERY_MS = 100
const PAUSE_AFTER_FAULT_MS = 1000

/** Opens the snapshots under `dataDir`; resolves after the first look at the pointer. */
export async function openSnapshots(options: SnapshotOptions): Promise<Snapshots> {
  const folder = join(resolve(options.dataDir), SNAPSHOTS_FOLDER)
  const snapshots = new Snapshots(options, folder, await openDatabase(folder, options.memory))
  await snapshots.look()
  return snapshots
}

export class Snapshots {
  readonly dataDir: string
  readonly catalogue: Catalogue
  readonly #options: SnapshotOptions
  readonly #folder: string
  readonly #database: Database
  readonly #logFault: (id: string, error: unknown, message: string) => void

  /** The open snapshots: a file is attached for its first user, and detached after its last. */
  readonly #open = new Map<string, { readonly opened: Promise<OpenSnapshot>; users: number }>()
  // A snapshot that is being closed is opened again only afterwards.
  readonly #inTurn = createSerialQueue()
  readonly #kept = new LRUCache<string, HeldSnapshot>({
    max: KEPT_OPEN,
    dispose: (held) => held[Symbol.dispose](),
  })
  #current: HeldSnapshot | undefined
  #fault: Fault | undefined
  #looking: Promise<void> | undefined
  #nextLook: NodeJS.Timeout | undefined

  constructor(options: SnapshotOptions, folder: string, database: Database) {
    this.dataDir = options.dataDir
    this.catalogue = options.catalogue
    this.#options = options
    this.#folder = folder
    this.#database = database
    this.#logFault = faultLog(options.log)
  }

  /** The facts of the served snapshot; undefined if none is published, or none can be opened. */
  current(): SnapshotFacts | undefined {
    return this.#current?.facts
  }

  /** Why the newest snapshot is not served, even if an older one is; undefined if it is. */
  fault(): Fault | undefined {
    return this.#fault
  }

  /**
   * The snapshot of `asOf` (ISO 8601, or an identifier), or the current one; it stays open until it is disposed of. An
   * aborted `signal` ends its queries.
   * @throws {ApiError} 503 without a current one, 400 for an unknown time, 410 for a retracted or pruned one.
   */
  async take(asOf: string | undefined, pool: PoolName, signal?: AbortSignal): Promise<Snapshot & Disposable> {
    const id = asOf === undefined ? this.current()?.id : retainedAt(this.catalogue, asOf)
    if (id === undefined) throw noSnapshot(this.#fault)
    const { facts, file, [Symbol.dispose]: release } = await this.#hold(id)
    if (id !== this.current()?.id && this.#kept.get(id) === undefined) {
      this.#kept.set(id, await this.#hold(id))
    }
    return { ...facts, query: file.queryOf(pool, signal), [Symbol.dispose]: release }
  }

  /** Interrupts all queries and closes all snapshots. */
  async close(): Promise<void> {
    await this.#looking
    clearTimeout(this.#nextLook)
    // DuckDB must not be closed while a file is being attached or detached.
    await this.#inTurn(async () => undefined)
    await this.#database.close()
  }

  /** Serves the snapshot that the pointer leads to, and looks again and again until the snapshots are closed. */
  async look(): Promise<void> {
    try {
      await this.#followPointer()
    } catch (error) {
      this.#options.log.error({ err: error }, 'no look at the pointer')
    }
    const pause = this.#fault === undefined ? LOOK_EVERY_MS : PAUSE_AFTER_FAULT_MS
    this.#nextLook = setTimeout(() => {
      this.#looking = this.look()
    }, pause).unref()
  }

  /**
   * While the snapshot of the pointer cannot be opened, the one before goes on being served; at a start, or after a
   * retraction, the newest that opens.
   */
  async #followPointer(): Promise<void> {
    const wanted = pointedAt(this.dataDir)
    const { ids } = this.catalogue.read()
    // Removed files take space on the disk until they are closed.
    for (const id of this.#kept.keys()) if (!ids.includes(id)) this.#kept.delete(id)
    const before = ids.filter((id) => id === this.current()?.id)
    await this.#serveFirst(new Set([...(wanted === undefined ? [] : [wanted]), ...before, ...ids]))
    const served = this.current()?.id
    const isRight = served === wanted && (wanted !== undefined || ids.length === 0)
    const thing = wanted === undefined ? CURRENT_POINTER : `${SNAPSHOTS_FOLDER}/${wanted}`
    const instead = served === undefined ? 'and no other can be served' : `and ${served} is served instead`
    this.#fault = isRight ? undefined : { thing, message: `cannot be opened, ${instead}` }
  }

  /** Serves the first of these that opens, or nothing. */
  async #serveFirst(ids: Iterable<string>): Promise<void> {
    for (const id of ids) {
      if (id === this.current()?.id) return
      try {
        return await this.#serve(id)
      } catch (error) {
        this.#logFault(id, error, 'snapshot cannot be opened')
      }
    }
    this.#replace(undefined)
  }

  async #serve(id: string): Promise<void> {
    using opening = new DisposableStack()
    const next = opening.use(await this.#hold(id))
    await this.#options.prepare?.({ ...next.facts, query: next.file.queryOf('preparation') })
    opening.move()
    this.#replace(next)
    this.#options.log.info({ snapshot: id, data_through: next.facts.dataThrough }, 'snapshot served')
  }

  /** The snapshot before stays open for its running requests. */
  #replace(next: HeldSnapshot | undefined): void {
    this.#current?.[Symbol.dispose]()
    this.#current = next
  }

  /** @throws if the file is missing, damaged, not a snapshot, or was written after it was published. */
  async #hold(id: string): Promise<HeldSnapshot> {
    const entry = this.#open.get(id) ?? { opened: this.#inTurn(() => this.#attach(id)), users: 0 }
    this.#open.set(id, entry)
    entry.users += 1
    // The next request tries again to open it.
    const opened = await entry.opened.catch((error: unknown) => {
      this.#open.delete(id)
      throw error
    })
    const release = () => {
      entry.users -= 1
      if (entry.users > 0) return
      this.#open.delete(id)
      // All its replies were read, so a file that cannot be closed is harmless.
      void this.#inTurn(() => opened.file.detach()).catch((error: unknown) =>
        this.#logFault(id, error, 'snapshot cannot be closed'),
      )
    }
    return { ...opened, [Symbol.dispose]: release }
  }

  async #attach(id: string): Promise<OpenSnapshot> {
    const path = join(this.#folder, id, SNAPSHOT_FILE)
    const published = readRecord(this.#folder, id)?.files.find(({ name }) => name === SNAPSHOT_FILE)
    if (published !== undefined) refuseDamaged(this.#folder, id, published)
    // A program that opened the file to write may have left a WAL, which DuckDB would read too.
    if (existsSync(`${path}.wal`)) {
      throw new Error(
        `${path} was opened to write after it was published. Remove ${path}.wal, which holds the changes, and open ` +
          'published files read-only',
      )
    }
    const file = await this.#database.attach(id, path)
    try {
      const facts = await readFacts(file.queryOf('preparation'))
      if (facts.id !== id) throw new Error(`The file of ${id} is the snapshot ${facts.id}`)
      return { facts, file }
    } catch (error) {
      await file.detach()
      throw error
    }
  }
}

/** The snapshot that the pointer leads to; undefined without one. */
function pointedAt(dataDir: string): string | undefined {
  const path = unlessAbsent(() => realpathSync(join(dataDir, CURRENT_POINTER)))
  return path === undefined ? undefined : basename(path)
}
