/** What the files beside the snapshots say: which there are, which were withdrawn, and what was published (CONTRACT 4.6). */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { z } from 'zod'
import { asOfFromId } from '../../../pipeline/contract/calendar.ts'
import {
  RECORDS_FOLDER,
  retractionSchema,
  RETRACTIONS_FOLDER,
  SNAPSHOTS_FOLDER,
  type Retraction,
} from '../../../pipeline/contract/files.ts'
import {
  describeFolder,
  snapshotRecordSchema,
  type SnapshotRecord,
} from '../../../pipeline/contract/snapshot-record.ts'
import { unlessAbsent } from '../../process/system-errors.ts'
import { LEFT_OUT, type Faults } from './faults.ts'

/** What cannot be read is left out. */
export interface SnapshotRecords {
  /** Identifiers of the snapshots on disk now that are not retracted, newest first. */
  ids(): readonly string[]
  /** The withdrawn snapshots, newest first. */
  retractions(): readonly Retraction[]
  /** Identifiers of all withdrawn snapshots, also of those whose record cannot be read, newest first. */
  retractedIds(): readonly string[]
  /** Why the snapshot with this identifier was withdrawn; undefined when it was not, or nobody knows any more. */
  retraction(id: string): Retraction | undefined
  /** Identifiers of all snapshots of which there is a record, newest first. */
  recordedIds(): readonly string[]
  /** What is recorded of the snapshot with this identifier, be it retained or not; undefined when nothing is. */
  record(id: string): SnapshotRecord | undefined
  /** What was published as the retained snapshot with this identifier; undefined when nothing that tells it is left. */
  published(id: string): SnapshotRecord | undefined
}

/** The records under `dataDir`; what cannot be read is noted in `faults`. */
export function recordsOf(dataDir: string, faults: Faults): SnapshotRecords {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)

  function readJson<T>(inside: string, id: string, schema: z.ZodType<T>): T | undefined {
    // Anything may be asked for; only an identifier names a file.
    if (asOfFromId(id) === undefined) return undefined
    const name = join(inside, `${id}.json`)
    return faults.read(join(SNAPSHOTS_FOLDER, name), LEFT_OUT, () => {
      const text = unlessAbsent(() => readFileSync(join(folder, name), 'utf8'))
      return text === undefined ? undefined : schema.parse(JSON.parse(text))
    })
  }

  /** What a folder says of itself; undefined for one that is gone. */
  function describe(id: string): SnapshotRecord | undefined {
    const path = join(folder, id)
    return faults.read(join(SNAPSHOTS_FOLDER, id), NOT_DESCRIBED, () =>
      existsSync(path) ? describeFolder(path) : undefined,
    )
  }

  const record = (id: string) => readJson(RECORDS_FOLDER, id, snapshotRecordSchema)
  const retraction = (id: string) => readJson(RETRACTIONS_FOLDER, id, retractionSchema)
  return {
    ids: () => retainedIds(folder),
    retractions: () => retractionIds(folder).flatMap((id) => retraction(id) ?? []),
    retractedIds: () => retractionIds(folder),
    retraction,
    recordedIds: () => jsonNames(join(folder, RECORDS_FOLDER)),
    record,
    published: (id) => record(id) ?? describe(id),
  }
}

const NOT_DESCRIBED = () => 'is not described by its files and is left out of the list'

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
