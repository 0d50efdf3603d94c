/** The permanent records: a file per snapshot ever published. They outlive the snapshots (CONTRACT 4.6). */
import { globSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { wholeSeconds } from '../contract/calendar.ts'
import { RECORDS_FOLDER, SNAPSHOTS_FOLDER } from '../contract/files.ts'
import {
  RECORD_FILE,
  parseRecord,
  readRecord,
  recordPath,
  retractionIn,
  type Retraction,
  type SnapshotRecord,
} from '../contract/snapshot-record.ts'
import { writeInOneStep } from './durable-file.ts'

/** Identifiers of all snapshots ever published, oldest first. */
export function recordedIds(dataDir: string): string[] {
  return jsonNames(join(dataDir, SNAPSHOTS_FOLDER, RECORDS_FOLDER))
}

/** The record of a snapshot; undefined if there is none, or it cannot be read. */
export function recordOf(dataDir: string, id: string): SnapshotRecord | undefined {
  return readable(() => readRecord(join(dataDir, SNAPSHOTS_FOLDER), id))
}

/** The result of `read`; undefined if it throws. */
function readable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** The retractions, oldest first; unreadable records are left out. */
export function listRetractions(dataDir: string): Retraction[] {
  return recordedIds(dataDir).flatMap((id) => {
    const record = recordOf(dataDir, id)
    return (record && retractionIn(record)) ?? []
  })
}

/** Paths in DATA_DIR of the unreadable records, and of the retractions that could not be moved; other functions skip these. */
export function unreadableRecords(dataDir: string): string[] {
  return [
    ...recordedIds(dataDir)
      .filter((id) => recordOf(dataDir, id) === undefined)
      .map((id) => recordPath(SNAPSHOTS_FOLDER, id)),
    ...jsonNames(join(dataDir, FORMER_RETRACTIONS)).map((id) => join(FORMER_RETRACTIONS, `${id}.json`)),
  ]
}

/** Records a published snapshot, from the record in its folder, unless it has a readable record. */
export function recordPublished(dataDir: string, id: string): void {
  if (recordedIds(dataDir).includes(id) && recordOf(dataDir, id) !== undefined) return
  const path = join(dataDir, SNAPSHOTS_FOLDER, id, RECORD_FILE)
  const record = readable(() => parseRecord(readFileSync(path, 'utf8')))
  if (record !== undefined) writeRecord(dataDir, record)
}

/** Adds the time at which the files of a snapshot were removed. */
export function recordPruned(dataDir: string, id: string, at: Date): void {
  const record = recordOf(dataDir, id)
  if (record !== undefined) writeRecord(dataDir, { ...record, pruned_at: wholeSeconds(at) })
}

/** Writes the permanent record of a snapshot, in one step. */
export function writeRecord(dataDir: string, record: SnapshotRecord): void {
  const path = recordPath(join(dataDir, SNAPSHOTS_FOLDER), record.id)
  mkdirSync(dirname(path), { recursive: true })
  writeInOneStep(path, `${JSON.stringify(record, null, 2)}\n`)
}

/** The names of the JSON files in a folder, without their ending, in alphabetical order; names that begin with a dot are aside. */
function jsonNames(folder: string): string[] {
  const names = globSync('*.json', { cwd: folder, exclude: ['.*'] })
  return names.map((name) => basename(name, '.json')).toSorted()
}

const FORMER_RETRACTIONS = join(SNAPSHOTS_FOLDER, 'retracted')
const formerRetraction = z.object({ reason: z.string(), retracted_at: z.string() })

/**
 * Moves the retractions of version 1.0.0, which had a folder of their own, into the records. One that cannot be read, or has
 * no readable record, stays until it has.
 */
export function migrateRetractions(dataDir: string): void {
  const folder = join(dataDir, FORMER_RETRACTIONS)
  for (const id of jsonNames(folder)) {
    const path = join(folder, `${id}.json`)
    const former = readable(() => formerRetraction.parse(JSON.parse(readFileSync(path, 'utf8'))))
    const record = recordOf(dataDir, id)
    if (former === undefined || record === undefined) continue
    writeRecord(dataDir, { ...record, retracted: { at: former.retracted_at, reason: former.reason } })
    rmSync(path)
  }
}
