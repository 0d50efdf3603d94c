/** Follows the pointer to the newest snapshot and swaps it under running requests. */
import { realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { CURRENT_POINTER, SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import type { Log } from '../../process/log.ts'
import { unlessAbsent } from '../../process/system-errors.ts'
import type { AttachedSnapshots, HeldSnapshot } from './attached.ts'
import type { Fault, SnapshotCatalogue } from './catalogue.ts'
import type { Snapshot, SnapshotFacts } from './facts.ts'

/** The served snapshot. */
export interface CurrentSnapshot {
  /** Its facts; undefined if none is published, or the only one was retracted. */
  facts(): SnapshotFacts | undefined
  /** Why the newest snapshot is not served, even if an older one is; undefined if it is. */
  fault(): Fault | undefined
  /** Stops following the pointer. */
  close(): Promise<void>
}

export interface FollowOptions {
  readonly log: Log
  /** Prepares a snapshot while the one before is still served. */
  readonly prepare?: (snapshot: Snapshot) => Promise<void>
  /** Called with each newly served snapshot. */
  readonly onOpen?: () => void
}

interface Dependencies extends FollowOptions {
  readonly dataDir: string
  readonly attached: AttachedSnapshots
  readonly catalogue: SnapshotCatalogue
}

// A look is cheap, and a new snapshot should be visible soon.
const LOOK_EVERY_MS = 100
const PAUSE_AFTER_FAULT_MS = 1000

/** The snapshot that is served, at first none. */
function createServed({ attached, log, prepare, onOpen }: Dependencies) {
  const reportOnce = createReport(log)
  let served: HeldSnapshot | undefined
  const id = () => served?.over.clients.id

  /** Running requests keep the snapshot open. */
  function end(): void {
    const former = id()
    served?.[Symbol.dispose]()
    served = undefined
    if (former !== undefined) attached.retire(former)
  }

  return {
    id,
    facts: () => served?.over.clients,
    /** Serves the first of these that opens, or nothing. */
    async serveFirst(ids: Iterable<string>): Promise<void> {
      for (const each of ids) {
        if (each === id()) return
        try {
          const held = await holdPrepared(attached, each, prepare)
          end()
          served = held
          log.info({ snapshot: each }, 'snapshot served')
          return onOpen?.()
        } catch (error) {
          reportOnce(each, error)
        }
      }
      end()
    },
  }
}

/**
 * Serves the snapshot behind the pointer in `dataDir`, and follows the pointer. While that one cannot be opened, the one
 * before it goes on being served; at a start, or after a retraction, the newest that opens.
 */
export async function followPointer(dependencies: Dependencies): Promise<CurrentSnapshot> {
  const { dataDir, catalogue, log } = dependencies
  const served = createServed(dependencies)
  let fault: Fault | undefined
  let nextLook = 0
  let closed = false

  async function look(): Promise<void> {
    if (closed || performance.now() < nextLook) return
    const wanted = pointedAt(dataDir)
    if (wanted !== undefined && wanted === served.id()) return void (fault = undefined)
    const retained = catalogue.ids()
    const before = retained.filter((id) => id === served.id())
    await served.serveFirst(new Set([...(wanted === undefined ? [] : [wanted]), ...before, ...retained]))
    const isRight = served.id() === wanted && (wanted !== undefined || retained.length === 0)
    fault = isRight ? undefined : faultOf(wanted, served.id())
    if (fault !== undefined) nextLook = performance.now() + PAUSE_AFTER_FAULT_MS
  }

  const lookSafely = () =>
    look().catch((error: unknown) => log.error({ err: error }, 'no look at the pointer'))
  let looking = lookSafely()
  await looking
  const timer = setInterval(() => {
    looking = looking.then(lookSafely)
  }, LOOK_EVERY_MS).unref()
  return {
    facts: served.facts,
    fault: () => fault,
    async close() {
      closed = true
      clearInterval(timer)
      await looking
    },
  }
}

/** The same fault returns at every look; it is logged once. */
function createReport(log: Log): (id: string, error: unknown) => void {
  const logged = new Set<string>()
  return (id, error) => {
    const words = `${id} ${String(error)}`
    if (!logged.has(words)) log.error({ snapshot: id, err: error }, 'snapshot cannot be opened')
    logged.add(words)
  }
}

async function holdPrepared(
  attached: AttachedSnapshots,
  id: string,
  prepare: FollowOptions['prepare'],
): Promise<HeldSnapshot> {
  const held = await attached.hold(id)
  try {
    await prepare?.(held.over.preparation)
    return held
  } catch (error) {
    held[Symbol.dispose]()
    attached.retire(id)
    throw error
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
