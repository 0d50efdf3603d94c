/** The retained snapshots, each under its identifier: found on disk, opened when somebody asks (CONTRACT 4.6). */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { z } from 'zod'
import { LRUCache } from 'lru-cache'
import { asOfFromId } from '../../../pipeline/contract/calendar.ts'
import {
  RECORDS_FOLDER,
  retractionSchema,
  RETRACTIONS_FOLDER,
  SNAPSHOTS_FOLDER,
  type Retraction,
} from '../../../pipeline/contract/files.ts'
import { snapshotRecordSchema, type SnapshotRecord } from '../../../pipeline/contract/snapshot-record.ts'
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
  /** Identifiers of all snapshots of which there is a record, newest first. */
  recordedIds(): readonly string[]
  /** What is recorded of the snapshot with this identifier, be it retained or not; undefined when nothing is. */
  record(id: string): SnapshotRecord | undefined
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
    recordedIds: () => jsonNames(join(folder, RECORDS_FOLDER)),
    record: (id) => readJson(folder, RECORDS_FOLDER, id, snapshotRecordSchema),
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
  return jsonNames(join(folder, RETRACTIONS_FOLDER))
}

/** The identifiers that name the files in a folder, the newest first. */
function jsonNames(folder: string): string[] {
  return namesIn(folder)
    .map((name) => name.replace(/\.json$/, ''))
    .filter((name) => asOfFromId(name) !== undefined)
}

/** Names in a folder, the last in alphabetical order first; none where there is no such folder. */
function namesIn(folder: string): string[] {
  return (unlessAbsent(() => readdirSync(folder)) ?? []).toSorted().toReversed()
}

/** Why the snapshot with this identifier was withdrawn, from the record in `folder`, that of the snapshots. */
export function findRetraction(folder: string, id: string): Retraction | undefined {
  return readJson(folder, RETRACTIONS_FOLDER, id, retractionSchema)
}

function readJson<T>(folder: string, inside: string, id: string, schema: z.ZodType<T>): T | undefined {
  // Anything may be asked for; only an identifier names a file.
  if (asOfFromId(id) === undefined) return undefined
  const text = unlessAbsent(() => readFileSync(join(folder, inside, `${id}.json`), 'utf8'))
  return text === undefined ? undefined : schema.parse(JSON.parse(text))
}
