/** Follows the pointer to the newest snapshot and swaps it under running requests. */
import { join } from 'node:path'
import { CURRENT_POINTER, SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import type { Log } from '../../process/log.ts'
import { shareSnapshot, type SnapshotHandle } from './handle.ts'
import { findRetraction } from './retained.ts'
import { openSnapshot, snapshotFolder, type Snapshot, type SnapshotFacts } from './open-snapshot.ts'

/** The snapshot that is served at the moment. */
export interface CurrentSnapshot {
  /** The facts of the snapshot served now; undefined while none is published, be it that the only one was retracted. */
  facts(): SnapshotFacts | undefined
  /** Whether there is one that cannot be opened, be it instead of an older one that is served meanwhile. */
  isFaulty(): boolean
  /**
   * Gives `work` the snapshot served now (undefined while there is none) and keeps it open until `work` is
   * done, even when a newer one takes its place meanwhile.
   */
  use<Result>(work: (snapshot: Snapshot | undefined) => Promise<Result>): Promise<Result>
  /** Stops following the pointer and closes the snapshot once the last `use` is done. */
  close(): Promise<void>
}

interface FollowOptions {
  readonly log: Log
  /** What is done with a snapshot before it is served; the former one goes on serving meanwhile. */
  readonly prepare?: (snapshot: Snapshot) => Promise<void>
  /** Called with each snapshot that is served from then on. */
  readonly onOpen?: () => void
  /** Pause between two looks at the pointer; ten times as long after one that found a faulty snapshot. */
  readonly intervalMs?: number
}

interface Holding {
  readonly folder: string
  readonly handle: SnapshotHandle
}

// A look costs some microseconds, and whoever has just published wants to see it.
const LOOK_EVERY_MS = 100
const PAUSE_AFTER_FAULT = 10

/** Opens the snapshot that `dataDir`'s pointer names and follows the pointer from then on. */
export async function followSnapshots(
  dataDir: string,
  { log, prepare, onOpen, intervalMs = LOOK_EVERY_MS }: FollowOptions,
): Promise<CurrentSnapshot> {
  const pointer = join(dataDir, CURRENT_POINTER)
  let holding: Holding | undefined
  let lastFault: string | undefined
  let lookAgainAt = 0
  let closed = false

  async function look(): Promise<void> {
    if (closed || performance.now() < lookAgainAt) return
    try {
      const folder = snapshotFolder(pointer)
      if (folder === undefined) holding = withoutRetracted(dataDir, holding)
      if (folder === undefined || folder === holding?.folder) {
        lastFault = undefined
        return
      }
      const snapshot = await openPrepared(folder, prepare)
      const former = holding
      holding = { folder, handle: shareSnapshot(snapshot, log) }
      lastFault = undefined
      onOpen?.()
      log.info({ snapshot: snapshot.id, data_through: snapshot.dataThrough }, 'snapshot opened')
      void former?.handle.retire()
    } catch (error) {
      // The old snapshot goes on serving. The same fault comes back at every look; once in the log is enough.
      if (String(error) !== lastFault) log.error({ err: error }, 'snapshot cannot be opened')
      lastFault = String(error)
      lookAgainAt = performance.now() + PAUSE_AFTER_FAULT * intervalMs
    }
  }

  let looking = look()
  await looking
  const timer = setInterval(() => {
    looking = looking.then(look)
  }, intervalMs).unref()

  return {
    facts: () => holding?.handle.snapshot,
    isFaulty: () => lastFault !== undefined,
    use: (work) => (holding === undefined ? work(undefined) : holding.handle.use(work)),
    async close() {
      closed = true
      clearInterval(timer)
      await looking
      const last = holding
      holding = undefined
      await last?.handle.retire()
    },
  }
}

/** What is served while there is no pointer: the same as before, unless it was retracted. */
function withoutRetracted(dataDir: string, holding: Holding | undefined): Holding | undefined {
  if (holding === undefined) return undefined
  const { id } = holding.handle.snapshot
  if (findRetraction(join(dataDir, SNAPSHOTS_FOLDER), id) === undefined) return holding
  void holding.handle.retire()
  return undefined
}

/** Opens a snapshot; one that cannot be prepared is closed again. */
async function openPrepared(folder: string, prepare: FollowOptions['prepare']): Promise<Snapshot> {
  const snapshot = await openSnapshot(folder)
  try {
    await prepare?.(snapshot)
    return snapshot
  } catch (error) {
    await snapshot.close()
    throw error
  }
}
