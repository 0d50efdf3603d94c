/** The retained snapshots, each under its identifier: found on disk, opened when somebody asks (CONTRACT 4.6). */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import { asOfFromId } from '../../../pipeline/contract/calendar.ts'
import {
  retractionSchema,
  RETRACTIONS_FOLDER,
  SNAPSHOTS_FOLDER,
  type Retraction,
} from '../../../pipeline/contract/files.ts'
import type { Log } from '../../process/log.ts'
import { unlessAbsent } from '../../process/system-errors.ts'
import { shareSnapshot, type SnapshotHandle } from './handle.ts'
import { openSnapshot, type Snapshot } from './open-snapshot.ts'

export interface RetainedSnapshots {
  /** Identifiers of the snapshots on disk now that are not retracted, newest first. */
  ids(): readonly string[]
  /** The withdrawn snapshots, newest first. */
  retractions(): readonly Retraction[]
  /** Why the snapshot with this identifier was withdrawn; undefined when it was not. */
  retraction(id: string): Retraction | undefined
  /** Path of a snapshot's folder. */
  folder(id: string): string
  /**
   * Gives `work` the snapshot with this identifier, one of `ids()`, and keeps it open meanwhile.
   * @throws when it cannot be opened.
   */
  use<Result>(id: string, work: (snapshot: Snapshot) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

/** How many snapshots beside the current one stay open for the next request. */
const KEPT_OPEN = 4

/** The snapshots under `dataDir`. */
export function retainSnapshots(dataDir: string, log: Log): RetainedSnapshots {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)
  const closing = new Set<Promise<void>>()
  const open = new LRUCache<string, Promise<SnapshotHandle>>({
    max: KEPT_OPEN,
    // Nobody waits for its closing, and whoever waits for its opening uses it first.
    dispose: (taken) => {
      const closed = taken.then((held) => held.retire()).catch(() => undefined)
      closing.add(closed)
      void closed.finally(() => closing.delete(closed))
    },
  })

  async function openFolder(id: string): Promise<SnapshotHandle> {
    const snapshot = await openSnapshot(join(folder, id))
    log.info({ snapshot: id }, 'snapshot opened')
    return shareSnapshot(snapshot, log)
  }

  function take(id: string): Promise<SnapshotHandle> {
    const known = open.get(id)
    if (known !== undefined) return known
    const taken = openFolder(id)
    open.set(id, taken)
    // One that cannot be opened is tried again by the next request.
    taken.catch(() => open.delete(id))
    return taken
  }

  return {
    ids: () => retainedIds(folder),
    retractions: () => retractionIds(folder).flatMap((id) => findRetraction(folder, id) ?? []),
    retraction: (id) => findRetraction(folder, id),
    folder: (id) => join(folder, id),
    use: (id, work) => take(id).then((held) => held.use(work)),
    async close() {
      open.clear()
      await Promise.all(closing)
    },
  }
}

// Two looks into folders, however many snapshots there are: this is asked for on pages that need no key.
function retainedIds(folder: string): string[] {
  const retracted = new Set(retractionIds(folder))
  return namesIn(folder).filter((name) => asOfFromId(name) !== undefined && !retracted.has(name))
}

function retractionIds(folder: string): string[] {
  return namesIn(join(folder, RETRACTIONS_FOLDER)).map((name) => name.replace(/\.json$/, ''))
}

/** Names in a folder, the last in alphabetical order first; none where there is no such folder. */
function namesIn(folder: string): string[] {
  return (unlessAbsent(() => readdirSync(folder)) ?? []).toSorted().toReversed()
}

/** Why the snapshot with this identifier was withdrawn, from the record in `folder`, that of the snapshots. */
export function findRetraction(folder: string, id: string): Retraction | undefined {
  // Anything may be asked for; only an identifier names a file.
  if (asOfFromId(id) === undefined) return undefined
  const path = join(folder, RETRACTIONS_FOLDER, `${id}.json`)
  const text = unlessAbsent(() => readFileSync(path, 'utf8'))
  return text === undefined ? undefined : retractionSchema.parse(JSON.parse(text))
}
