/** The retained snapshots by identifier: found on disk, opened on demand (CONTRACT 4.6). */
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import { SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import type { PublishedFile } from '../../../pipeline/contract/snapshot-record.ts'
import type { Log } from '../../process/log.ts'
import { brokenFilesOf } from './broken-files.ts'
import { createFaults, type Fault, type Faults } from './faults.ts'
import { shareSnapshot, type SnapshotHandle } from './handle.ts'
import { openSnapshot, type Snapshot } from './open-snapshot.ts'
import { recordsOf, type SnapshotRecords } from './records.ts'

export interface RetainedSnapshots extends SnapshotRecords {
  readonly dataDir: string
  /** Receives the faults of these snapshots and their records. */
  readonly faults: Pick<Faults, 'read'>
  /** The known faults of these snapshots and their records. */
  listFaults(): readonly Fault[]
  /** Why a published file must not be served, as words after its name; undefined if it is intact. */
  faultOf(id: string, file: PublishedFile): string | undefined
  /** Path of a snapshot's folder. */
  folder(id: string): string
  /**
   * Opens the retained snapshot with this identifier, after a check of its files' sizes.
   * @throws if its DuckDB file is damaged, or cannot be opened.
   */
  open(id: string): Promise<Snapshot>
  /**
   * Calls `work` with the snapshot of this identifier, one of `ids()`, and keeps it open meanwhile.
   * @throws if it cannot be opened.
   */
  use<Result>(id: string, work: (snapshot: Snapshot) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

/** Number of snapshots beside the current one that stay open. */
const OPEN_SNAPSHOTS = 4

export function retainSnapshots(dataDir: string, log: Log): RetainedSnapshots {
  const faults = createFaults(log)
  const records = recordsOf(dataDir, faults)
  const broken = brokenFilesOf(dataDir, faults)
  const folder = (id: string) => join(dataDir, SNAPSHOTS_FOLDER, id)
  const filesOf = (id: string) => records.record(id)?.files ?? []

  async function open(id: string): Promise<Snapshot> {
    broken.refuse(id, filesOf(id))
    return await openSnapshot(folder(id))
  }

  const handles = keepOpen(async (id) => {
    const snapshot = await open(id)
    log.info({ snapshot: id }, 'snapshot opened')
    return shareSnapshot(snapshot, log)
  })
  return {
    ...records,
    dataDir,
    faults,
    listFaults: () => faults.list(),
    faultOf: (id, file) => broken.faultOf(id, file),
    folder,
    open,
    use(id, work) {
      return handles.take(id).then((held) => held.use(work))
    },
    close: () => handles.close(),
  }
}

/** Handles of the most recently used snapshots, opened on first use. */
function keepOpen(openShared: (id: string) => Promise<SnapshotHandle>) {
  const closing = new Set<Promise<void>>()
  const handles = new LRUCache<string, Promise<SnapshotHandle>>({
    max: OPEN_SNAPSHOTS,
    // Nobody waits for the close; a pending user still gets the snapshot.
    dispose: (taken) => {
      const closed = taken.then((held) => held.retire()).catch(() => undefined)
      closing.add(closed)
      void closed.finally(() => closing.delete(closed))
    },
  })
  return {
    take(id: string): Promise<SnapshotHandle> {
      const known = handles.get(id)
      if (known !== undefined) return known
      const taken = openShared(id)
      handles.set(id, taken)
      // The next request retries a snapshot that cannot be opened.
      taken.catch(() => handles.delete(id))
      return taken
    },
    drop: (id: string) => handles.delete(id),
    async close(): Promise<void> {
      handles.clear()
      await Promise.all(closing)
    },
  }
}
