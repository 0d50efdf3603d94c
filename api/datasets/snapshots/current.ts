/** The snapshots of the service: follows the pointer to the newest, and swaps it under running requests. */
import { existsSync, lstatSync, readlinkSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { LRUCache } from 'lru-cache'
import { CURRENT_POINTER, SNAPSHOT_FILE, SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import { readRecord, sizeFault, type PublishedFile } from '../../../pipeline/contract/snapshot-record.ts'
import { ApiError } from '../../http/errors.ts'
import { STATUS_PATH } from '../../paths.ts'
import type { Log } from '../../process/log.ts'
import { createSerialQueue } from '../../process/serial-queue.ts'
import { Catalogue, retainedIn, type Fault } from './catalogue.ts'
import type { Database, PoolName } from './database.ts'
import { readFacts, type Snapshot, type SnapshotFacts } from './facts.ts'

/** An attached snapshot; it is detached once it has no users: requests, and the service while it is current or kept. */
type Attached = { readonly opened: ReturnType<typeof attach>; users: number }

/** Snapshots named by requests that stay attached for the next page: to attach one takes longer than most queries. */
const KEPT_ATTACHED = 4

// A poll of the pointer is cheap, and a new snapshot should be visible soon.
const POLL_EVERY_MS = 100
const PAUSE_AFTER_FAULT_MS = 1000

const RETRY_AFTER_SECONDS = 60

/**
 * The snapshots of a service: which is current, and which are attached for the requests that use them. None is served before
 * `follow`.
 */
export class Snapshots {
  readonly dataDir: string
  /** The snapshots inside, each a folder. */
  readonly folder: string
  readonly catalogue: Catalogue
  readonly #memory: string
  readonly #log: Log
  #database: Promise<Database> | undefined
  /** By identifier. */
  readonly #attached = new Map<string, Attached>()
  // A snapshot that is being detached is attached again only afterwards.
  readonly #inTurn = createSerialQueue()
  #prepare: (snapshot: Snapshot) => Promise<void> = async () => undefined
  #current: SnapshotFacts | undefined
  /** Keeps the current snapshot attached. */
  #serving = new DisposableStack()
  readonly #kept = new LRUCache<string, Disposable>({
    max: KEPT_ATTACHED,
    dispose: (snapshot) => snapshot[Symbol.dispose](),
  })
  #fault: Fault | undefined
  #polling: Promise<void> | undefined
  #nextPoll: NodeJS.Timeout | undefined

  /** @param memory of all open snapshots together, such as `1GB`. */
  constructor(dataDir: string, memory: string, log: Log) {
    this.dataDir = dataDir
    this.folder = join(resolve(dataDir), SNAPSHOTS_FOLDER)
    this.catalogue = new Catalogue(this.folder, log)
    this.#memory = memory
    this.#log = log
  }

  /** The facts of the served snapshot; undefined if none is published, or none can be opened. */
  current(): SnapshotFacts | undefined {
    return this.#current
  }

  /** Why the newest snapshot is not served, even if an older one is; undefined if it is. */
  fault(): Fault | undefined {
    return this.#fault
  }

  /**
   * The identifier of the served snapshot.
   * @throws ApiError 503 without one.
   */
  currentId(): string {
    if (this.#current !== undefined) return this.#current.id
    const reason = `No snapshot of the dataset is served: npm run nightly publishes the first, and ${STATUS_PATH} lists faults`
    throw new ApiError(503, reason, { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } })
  }

  /**
   * The snapshot of `asOf` (ISO 8601, or an identifier), or the current one; it stays open until it is disposed of, once.
   * An aborted `signal` ends its queries.
   * @throws ApiError 503 without a current one, 400 for an unknown time, 410 for a retracted or pruned one.
   */
  async take(asOf: string | undefined, pool: PoolName, signal?: AbortSignal): Promise<Snapshot & Disposable> {
    if (asOf === undefined) return await this.#take(this.currentId(), pool, signal)
    const id = this.catalogue.retainedAt(asOf)
    if (this.#kept.get(id) === undefined) this.#kept.set(id, await this.#take(id, pool))
    return await this.#take(id, pool, signal)
  }

  /**
   * Serves the snapshot that the pointer leads to, and polls the pointer until the snapshots are closed; resolves after
   * the first poll.
   * @param prepare prepares a snapshot while the one before is still served.
   */
  async follow(prepare = this.#prepare): Promise<void> {
    this.#prepare = prepare
    this.#polling = this.#poll()
    await this.#polling
  }

  /** Interrupts all queries and closes all snapshots. */
  async close(): Promise<void> {
    await this.#polling
    clearTimeout(this.#nextPoll)
    // DuckDB must not be closed while a file is being attached or detached.
    await this.#inTurn(async () => undefined)
    const database = await this.#database
    await database?.close()
  }

  async #poll(): Promise<void> {
    try {
      await this.#followPointer()
    } catch (error) {
      this.#log.error({ err: error }, 'the pointer to the newest snapshot could not be followed')
    }
    const pause = this.#fault === undefined ? POLL_EVERY_MS : PAUSE_AFTER_FAULT_MS
    this.#nextPoll = setTimeout(() => {
      this.#polling = this.#poll()
    }, pause).unref()
  }

  /**
   * While the snapshot of the pointer cannot be opened, the one before goes on being served; at a start, or after a
   * retraction, the newest that opens. Without a pointer, as in a copy without links, the newest is the right one.
   */
  async #followPointer(): Promise<void> {
    const pointer = join(this.dataDir, CURRENT_POINTER)
    const isLink = lstatSync(pointer, { throwIfNoEntry: false })?.isSymbolicLink() === true
    const retained = retainedIn(this.catalogue.read().entries)
    // Removed files take space on the disk until they are detached.
    for (const id of this.#kept.keys()) if (!retained.includes(id)) this.#kept.delete(id)
    const wanted = isLink ? basename(readlinkSync(pointer)) : retained[0]
    const before = retained.filter((id) => id === this.#current?.id)
    const served = await this.#serveFirst([wanted ?? [], before, retained].flat())
    if (served === undefined) {
      this.#serving.dispose()
      this.#current = undefined
    }
    const message = `cannot be opened, and ${served ?? 'no other'} is served instead`
    this.#fault = served === wanted ? undefined : { thing: `${SNAPSHOTS_FOLDER}/${wanted}`, message }
  }

  /** Serves the first of these that opens; undefined if none does. */
  async #serveFirst(ids: readonly string[]): Promise<string | undefined> {
    for (const id of new Set(ids)) {
      if (id === this.#current?.id) return id
      try {
        using held = new DisposableStack()
        const next = held.use(await this.#take(id, 'preparation'))
        await this.#prepare(next)
        // The snapshot before stays attached for its running requests.
        this.#serving.dispose()
        this.#serving = held.move()
        this.#current = next
        this.#log.info({ snapshot: id, data_through: next.data_through }, 'snapshot served')
        return id
      } catch (error) {
        this.catalogue.logFault(id, error, 'snapshot cannot be opened')
      }
    }
    return undefined
  }

  /** @throws if the file is missing, damaged, not a snapshot, or was written after it was published. */
  async #take(id: string, pool: PoolName, signal?: AbortSignal) {
    const open = () => this.#inTurn(async () => attach(await this.#openDatabase(), this.folder, id))
    const attached = this.#attached.get(id) ?? { opened: open(), users: 0 }
    this.#attached.set(id, attached)
    attached.users += 1
    const release = () => {
      attached.users -= 1
      if (attached.users > 0) return
      this.#attached.delete(id)
      // All its replies were read, so a file that cannot be closed is harmless.
      void this.#inTurn(async () => (await attached.opened).file.detach()).catch((error: unknown) =>
        this.catalogue.logFault(id, error, 'snapshot cannot be closed'),
      )
    }
    // The next request tries again to open it.
    const { facts, file } = await attached.opened.catch((error: unknown) => {
      if (this.#attached.get(id) === attached) this.#attached.delete(id)
      throw error
    })
    return { ...facts, query: file.queryOf(pool, signal), [Symbol.dispose]: release }
  }

  /** Loads DuckDB for the first snapshot: a service without one, as for chat alone, needs less memory by a tenth. */
  async #openDatabase(): Promise<Database> {
    const { openDatabase } = await import('./database.ts')
    this.#database ??= openDatabase(this.folder, this.#memory)
    return await this.#database
  }
}

/** Attaches a snapshot, whose file must be the published one. */
async function attach(database: Database, folder: string, id: string) {
  const path = join(folder, id, SNAPSHOT_FILE)
  const published = readRecord(folder, id)?.files.find(({ name }) => name === SNAPSHOT_FILE)
  if (published !== undefined) refuseDamaged(folder, id, published)
  // A program that opened the file to write may have left a WAL, which DuckDB would read too.
  if (existsSync(`${path}.wal`)) {
    throw new Error(
      `${path} was opened to write after it was published. Remove ${path}.wal, which holds the changes, and open ` +
        'published files read-only',
    )
  }
  const file = await database.attach(id, path)
  try {
    const facts = await readFacts(file.queryOf('preparation'))
    if (facts.id !== id) throw new Error(`The file of ${id} is the snapshot ${facts.id}`)
    return { facts, file }
  } catch (error) {
    await file.detach()
    throw error
  }
}

/** @throws if a file of a snapshot is not the published one; the log has the remedy. */
export function refuseDamaged(folder: string, id: string, file: PublishedFile): void {
  const fault = sizeFault(join(folder, id), file)
  if (fault === undefined) return
  throw new Error(
    `The published file ${id}/${file.name} ${fault}. Restore it from a backup; npm run nightly -- verify ${id} checks it`,
  )
}
