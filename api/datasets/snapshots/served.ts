/** The served snapshot, exchanged under running requests. */
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import type { PublishedFile } from '../../../pipeline/contract/snapshot-record.ts'
import type { Log } from '../../process/log.ts'
import { shareSnapshot, type SnapshotHandle } from './handle.ts'
import type { Snapshot } from './open-snapshot.ts'
import type { RetainedSnapshots } from './retained.ts'

interface Served {
  /** Its identifier. */
  readonly id: string
  /** Its DuckDB file as published; undefined without a record. */
  readonly file: PublishedFile | undefined
  readonly handle: SnapshotHandle
}

export interface ServedSnapshot {
  /** The served snapshot; undefined without one. */
  now(): Served | undefined
  /** Calls `work` with the served snapshot, or undefined, and keeps it open until `work` is done. */
  readonly use: <Result>(work: (snapshot: Snapshot | undefined) => Promise<Result>) => Promise<Result>
  /**
   * Serves the snapshot with this identifier.
   * @throws if it cannot be opened, or is served but damaged.
   */
  serve(id: string): Promise<void>
  /** Serves the first of these that can be opened, or nothing. */
  serveFirst(ids: Iterable<string>): Promise<void>
  /** Stops serving; resolves once the last use is done. */
  close(): Promise<void>
}

export interface ServeOptions {
  readonly log: Log
  /** Prepares a snapshot while the previous one is still served. */
  readonly prepare?: (snapshot: Snapshot) => Promise<void>
  /** Called with each newly served snapshot. */
  readonly onOpen?: () => void
}

/** Serves one of the retained snapshots at a time, at first none. */
export function createServedSnapshot(
  retained: RetainedSnapshots,
  { log, prepare, onOpen }: ServeOptions,
): ServedSnapshot {
  let served: Served | undefined
  const logged = new Set<string>()

  async function retire(): Promise<void> {
    const last = served
    served = undefined
    await last?.handle.retire()
  }

  async function serve(id: string): Promise<void> {
    if (served?.id === id) return refuseBroken(retained, served)
    const snapshot = await openPrepared(retained, id, prepare)
    const former = served
    const file = retained.record(id)?.files.find(({ name }) => name === SNAPSHOT_FILE)
    served = { id, file, handle: shareSnapshot(snapshot, log) }
    onOpen?.()
    log.info({ snapshot: snapshot.id, data_through: snapshot.dataThrough }, 'snapshot opened')
    void former?.handle.retire()
  }

  return {
    now: () => served,
    use: (work) => served?.handle.use(work) ?? work(undefined),
    serve,
    async serveFirst(ids) {
      for (const id of ids) {
        try {
          return await serve(id)
        } catch (error) {
          // The same error returns at every look; it is logged once.
          const words = `${id} ${String(error)}`
          if (!logged.has(words)) log.error({ snapshot: id, err: error }, 'snapshot cannot be served instead')
          logged.add(words)
        }
      }
      void retire()
    },
    close: retire,
  }
}

function refuseBroken(retained: RetainedSnapshots, { id, file }: Served): void {
  const found = file && retained.faultOf(id, file)
  if (found !== undefined) throw new Error(`${SNAPSHOT_FILE} of ${id} ${found}`)
}

/** Opens a snapshot, and closes it again if it cannot be prepared. */
async function openPrepared(
  retained: RetainedSnapshots,
  id: string,
  prepare: ServeOptions['prepare'],
): Promise<Snapshot> {
  const snapshot = await retained.open(id)
  try {
    await prepare?.(snapshot)
    return snapshot
  } catch (error) {
    await snapshot.close()
    throw error
  }
}
