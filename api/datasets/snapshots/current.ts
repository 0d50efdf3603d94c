/** Follows the pointer to the newest snapshot and swaps it under running requests. */
import { basename, join } from 'node:path'
import { CURRENT_POINTER, SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import type { Fault } from './faults.ts'
import type { RetainedSnapshots } from './retained.ts'
import { snapshotFolder, type Snapshot, type SnapshotFacts } from './open-snapshot.ts'
import { createServedSnapshot, type ServeOptions } from './served.ts'

/** The served snapshot. */
export interface CurrentSnapshot {
  /** The facts of the served snapshot; undefined if none is published, or the only one was retracted. */
  facts(): SnapshotFacts | undefined
  /** Why the newest snapshot is not served, even if an older one is; undefined if it is. */
  fault(): Fault | undefined
  /**
   * Calls `work` with the served snapshot (or undefined) and keeps it open until `work` is done, even if a newer one
   * replaces it meanwhile.
   */
  readonly use: <Result>(work: (snapshot: Snapshot | undefined) => Promise<Result>) => Promise<Result>
  /** Stops following the pointer and closes the snapshot after the last `use`. */
  close(): Promise<void>
}

interface FollowOptions extends ServeOptions {
  /** Pause between two looks at the pointer; ten times as long after a faulty snapshot. */
  readonly intervalMs?: number
}

// A look is cheap, and a new snapshot should be visible soon.
const LOOK_EVERY_MS = 100
const PAUSE_AFTER_FAULT = 10

/**
 * Opens the snapshot behind the pointer in `retained.dataDir` and follows the pointer. If that snapshot cannot be
 * opened, or there is no pointer, the newest usable retained one is served.
 */
export async function followSnapshots(
  retained: RetainedSnapshots,
  { intervalMs = LOOK_EVERY_MS, ...options }: FollowOptions,
): Promise<CurrentSnapshot> {
  const pointer = join(retained.dataDir, CURRENT_POINTER)
  const served = createServedSnapshot(retained, options)
  let fault: Fault | undefined
  let lastError = ''
  let lookAgainAt = 0
  let closed = false

  async function look(): Promise<void> {
    if (closed || performance.now() < lookAgainAt) return
    const folder = snapshotFolder(pointer)
    const id = folder === undefined ? undefined : basename(folder)
    try {
      if (id === undefined) throw new Error(`${pointer} leads to no snapshot`)
      await served.serve(id)
      fault = undefined
      lastError = ''
    } catch (error) {
      await served.serveFirst(insteadOf(id, { retained, served: served.now()?.id }))
      if (id === undefined && retained.ids().length === 0) fault = undefined
      else report(id, error)
    }
  }

  function report(id: string | undefined, error: unknown): void {
    fault = faultOf(id, served.now()?.id)
    // The same fault returns at every look; it is logged once.
    if (String(error) !== lastError) options.log.error({ err: error, ...fault }, 'snapshot cannot be opened')
    lastError = String(error)
    lookAgainAt = performance.now() + PAUSE_AFTER_FAULT * intervalMs
  }

  let looking = look()
  await looking
  const timer = setInterval(() => {
    looking = looking.then(look)
  }, intervalMs).unref()

  return {
    facts: () => served.now()?.handle.snapshot,
    fault: () => fault,
    use: served.use,
    async close() {
      closed = true
      clearInterval(timer)
      await looking
      await served.close()
    },
  }
}

/** The substitutes of a snapshot: the served one, unless it was withdrawn, then all others, newest first. */
function insteadOf(
  wanted: string | undefined,
  { retained, served }: { readonly retained: RetainedSnapshots; readonly served: string | undefined },
): ReadonlySet<string> {
  const others = retained.ids().filter((id) => id !== wanted)
  return new Set([...others.filter((id) => id === served), ...others])
}

function faultOf(wanted: string | undefined, served: string | undefined): Fault {
  const instead = served === undefined ? 'and no other can be served' : `and ${served} is served instead`
  if (wanted === undefined) return { thing: CURRENT_POINTER, message: `leads to no snapshot, ${instead}` }
  return { thing: `${SNAPSHOTS_FOLDER}/${wanted}`, message: `cannot be opened, ${instead}` }
}
