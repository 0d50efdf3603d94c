/** The files beside the snapshots: identifiers, retractions, and records of what was published (CONTRACT 4.6). */
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

/** Unreadable files are left out. */
export interface SnapshotRecords {
  /** Identifiers of the snapshots on disk that are not retracted, newest first. */
  ids(): readonly string[]
  /** The withdrawn snapshots, newest first. */
  retractions(): readonly Retraction[]
  /** Identifiers of all withdrawn snapshots, including ones with unreadable records, newest first. */
  retractedIds(): readonly string[]
  /** The retraction of the snapshot with this identifier; undefined without one, or without a readable record. */
  retraction(id: string): Retraction | undefined
  /** Identifiers of all recorded snapshots, newest first. */
  recordedIds(): readonly string[]
  /** The record of the snapshot with this identifier, retained or not; undefined without one. */
  record(id: string): SnapshotRecord | undefined
  /** The published state of the retained snapshot with this identifier; undefined without a description. */
  published(id: string): SnapshotRecord | undefined
}

/** The records under `dataDir`; unreadable ones are faults in `faults`. */
export function recordsOf(dataDir: string, faults: Faults): SnapshotRecords {
  const folder = join(dataDir, SNAPSHOTS_FOLDER)

  function readJson<T>(inside: string, id: string, schema: z.ZodType<T>): T | undefined {
    // Any text may be requested; only an identifier names a file.
    if (asOfFromId(id) === undefined) return undefined
    const name = join(inside, `${id}.json`)
    return faults.read(join(SNAPSHOTS_FOLDER, name), LEFT_OUT, () => {
      const text = unlessAbsent(() => readFileSync(join(folder, name), 'utf8'))
      return text === undefined ? undefined : schema.parse(JSON.parse(text))
    })
  }

  /** The description in a folder; undefined for a removed one. */
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

// Two directory reads for any number of snapshots: pages without a key use this.
function retainedIds(folder: string): string[] {
  const retracted = new Set(retractionIds(folder))
  return namesIn(folder).filter((name) => asOfFromId(name) !== undefined && !retracted.has(name))
}

function retractionIds(folder: string): string[] {
  return jsonNames(join(folder, RETRACTIONS_FOLDER))
}

function jsonNames(folder: string): string[] {
  return namesIn(folder)
    .map((name) => name.replace(/\.json$/, ''))
    .filter((name) => asOfFromId(name) !== undefined)
}

/** Names in a folder, in descending order; empty if the folder does not exist. */
function namesIn(folder: string): string[] {
  return (unlessAbsent(() => readdirSync(folder)) ?? []).toSorted().toReversed()
}
