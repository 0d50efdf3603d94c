/** The snapshots of the service: follows the pointer to the newest, and swaps it under running requests. */
import { realpathSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { LRUCache } from 'lru-cache'
import { CURRENT_POINTER, SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import type { Log } from '../../process/log.ts'
import { unlessAbsent } from '../../process/system-errors.ts'
import { attachSnapshots, type AttachedSnapshots, type HeldSnapshot } from './attached.ts'
import type { Fault, SnapshotCatalogue } from './catalogue.ts'
import { noSnapshot, retainedAt } from './choose.ts'
import { openDatabase, type PoolName } from './database.ts'
import type { Snapshot, SnapshotFacts } from './facts.ts'

/** The served snapshot. */
interface CurrentSnapshot {
  /** Its facts; undefined if none is published, or the only one was retracted. */
  facts(): SnapshotFacts | undefined
  /** Why the newest snapshot is not served, even if an older one is; undefined if it is. */
  fault(): Fault | undefined
}

export interface Snapshots {
  readonly dataDir: string
  readonly catalogue: SnapshotCatalogue
  readonly current: CurrentSnapshot
  /**
   * The snapshot of `asOf` (ISO 8601, or an identifier), or the current one; it stays open until it is disposed of. An
   * aborted `signal` ends its queries.
   * @throws {ApiError} 503 without a current one, 400 for an unknown time, 410 for a retracted or pruned one.
   */
  take(asOf: string | undefined, pool: PoolName, signal?: AbortSignal): Promise<Snapshot & Disposable>
  /** Interrupts all queries and closes all snapshots. */
  close(): Promise<void>
}

export interface FollowOptions {
  readonly log: Log
  /** Prepares a snapshot while the one before is still served. */
  readonly prepare?: (snapshot: Snapshot) => Promise<void>
  /** Called with each newly served snapshot. */
  readonly onOpen?: () => void
}

interface OpenOptions extends FollowOptions {
  readonly dataDir: string
  /** Memory of all open snapshots together, such as `1GB`. */
  readonly memory: string
  readonly catalogue: SnapshotCatalogue
}

/** Snapshots of `as_of` that stay open, so that the next page of the same one is fast. */
const KEPT_OPEN = 4

// A look is cheap, and a new snapshot should be visible soon.
const LOOK_EVERY_MS = 100
const PAUSE_AFTER_FAULT_MS = 1000

/** Opens the snapshots under `dataDir`; resolves after the first look at the pointer. */
export async function openSnapshots({
  dataDir,
  memory,
  catalogue,
  ...options
}: OpenOptions): Promise<Snapshots> {
  const folder = join(resolve(dataDir), SNAPSHOTS_FOLDER)
  const database = await openDatabase({ memory, folder })
  const attached = attachSnapshots({ database, folder, log: options.log })
  const kept = new LRUCache<string, HeldSnapshot>({
    max: KEPT_OPEN,
    dispose: (held) => held[Symbol.dispose](),
  })
  const current = await followPointer({
    ...options,
    dataDir,
    catalogue,
    attached,
    kept,
    prepare: (facts) => options.prepare?.({ ...facts, query: database.queryOf(facts.id, 'preparation') }),
  })
  return {
    dataDir,
    catalogue,
    current,
    async take(asOf, pool, signal) {
      const id = asOf === undefined ? current.facts()?.id : retainedAt(catalogue, asOf)
      if (id === undefined) throw noSnapshot(current)
      const { facts, [Symbol.dispose]: release } = await attached.hold(id)
      if (id !== current.facts()?.id && kept.get(id) === undefined) kept.set(id, await attached.hold(id))
      return { ...facts, query: database.queryOf(id, pool, signal), [Symbol.dispose]: release }
    },
    async close() {
      await current.close()
      await attached.settle()
      await database.close()
    },
  }
}

interface FollowDependencies extends Pick<OpenOptions, 'dataDir' | 'catalogue'>, ServeDependencies {
  readonly kept: LRUCache<string, HeldSnapshot>
}

/**
 * Follows the pointer. While its snapshot cannot be opened, the one before it goes on being served; at a start, or after
 * a retraction, the newest that opens.
 */
async function followPointer(dependencies: FollowDependencies) {
  const { dataDir, catalogue, kept, log } = dependencies
  const served = createServed(dependencies)
  let fault: Fault | undefined
  let nextLook = 0

  async function look(): Promise<void> {
    const wanted = pointedAt(dataDir)
    const before = served.facts()?.id
    if (wanted !== undefined && wanted === before) return void (fault = undefined)
    const retained = catalogue.ids()
    const present = retained.filter((id) => id === before)
    await served.serveFirst(new Set([...(wanted === undefined ? [] : [wanted]), ...present, ...retained]))
    const now = served.facts()?.id
    const isRight = now === wanted && (wanted !== undefined || retained.length === 0)
    fault = isRight ? undefined : faultOf(wanted, now)
    if (fault !== undefined) nextLook = performance.now() + PAUSE_AFTER_FAULT_MS
  }

  async function lookSafely(): Promise<void> {
    try {
      // Removed files take space on the disk until they are closed.
      for (const id of kept.keys()) if (!catalogue.isRetained(id)) kept.delete(id)
      if (performance.now() >= nextLook) await look()
    } catch (error) {
      log.error({ err: error }, 'no look at the pointer')
    }
  }

  let looking = lookSafely()
  await looking
  const timer = setInterval(() => {
    looking = looking.then(lookSafely)
  }, LOOK_EVERY_MS).unref()
  return {
    facts: served.facts,
    fault: () => fault,
    /** Stops following the pointer. */
    async close() {
      clearInterval(timer)
      await looking
    },
  }
}

interface ServeDependencies extends Pick<FollowOptions, 'log' | 'onOpen'> {
  readonly attached: AttachedSnapshots
  readonly prepare: (facts: SnapshotFacts) => Promise<void> | undefined
}

/** The snapshot that is served, at first none. */
function createServed({ attached, log, prepare, onOpen }: ServeDependencies) {
  const logged = new Set<string>()
  let served: HeldSnapshot | undefined

  /** The snapshot before stays open for its running requests. */
  function replace(next: HeldSnapshot | undefined): void {
    served?.[Symbol.dispose]()
    served = next
  }

  async function serve(id: string): Promise<void> {
    using opening = new DisposableStack()
    const held = opening.use(await attached.hold(id))
    await prepare(held.facts)
    opening.move()
    replace(held)
    log.info({ snapshot: id }, 'snapshot served')
    onOpen?.()
  }

  return {
    facts: () => served?.facts,
    /** Serves the first of these that opens, or nothing. */
    async serveFirst(ids: Iterable<string>): Promise<void> {
      for (const id of ids) {
        if (id === served?.facts.id) return
        try {
          return await serve(id)
        } catch (error) {
          // The same fault returns at every look; it is logged once.
          const words = `${id} ${String(error)}`
          if (!logged.has(words)) log.error({ snapshot: id, err: error }, 'snapshot cannot be opened')
          logged.add(words)
        }
      }
      replace(undefined)
    },
  }
}

/** The snapshot that the pointer leads to; undefined without one. */
function pointedAt(dataDir: string): string | undefined {
  const path = unlessAbsent(() => realpathSync(join(dataDir, CURRENT_POINTER)))
  return path === undefined ? undefined : basename(path)
}

function faultOf(wanted: string | undefined, served: string | undefined): Fault {
  const instead = served === undefined ? 'and no other can be served' : `and ${served} is served instead`
  if (wanted === undefined) return { thing: CURRENT_POINTER, message: `leads to no snapshot, ${instead}` }
  return { thing: `${SNAPSHOTS_FOLDER}/${wanted}`, message: `cannot be opened, ${instead}` }
}
