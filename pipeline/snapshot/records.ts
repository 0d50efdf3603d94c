/** The permanent record: a file per snapshot ever published, which stays when the snapshot goes (CONTRACT 4.6). */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { wholeSeconds } from '../contract/calendar.ts'
import { RECORDS_FOLDER, SNAPSHOTS_FOLDER } from '../contract/files.ts'
import { describeFolder, snapshotRecordSchema } from '../contract/snapshot-record.ts'
import type { SnapshotRecord } from '../contract/snapshot-record.ts'
import { writeInOneStep } from './durable-file.ts'
import { listSnapshots } from './list.ts'

/** Records every published snapshot that has no record yet: the newest, or those of an earlier version. */
export function recordPublished(dataDir: string): void {
  for (const id of listSnapshots(dataDir)) {
    const record = existsSync(pathOf(dataDir, id)) ? undefined : describe(dataDir, id)
    if (record !== undefined) write(dataDir, record)
  }
}

/** Adds to the record of a snapshot when its files were removed. */
export function recordPruned(dataDir: string, id: string, at: Date): void {
  const path = pathOf(dataDir, id)
  if (!existsSync(path)) return
  const record = snapshotRecordSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  write(dataDir, { ...record, pruned_at: wholeSeconds(at) })
}

/** Undefined where the files that describe the snapshot are damaged: nothing is known of it then. */
function describe(dataDir: string, id: string): SnapshotRecord | undefined {
  try {
    return describeFolder(join(dataDir, SNAPSHOTS_FOLDER, id))
  } catch {
    return undefined
  }
}

function write(dataDir: string, record: SnapshotRecord): void {
  const path = pathOf(dataDir, record.id)
  mkdirSync(join(path, '..'), { recursive: true })
  writeInOneStep(path, `${JSON.stringify(record, null, 2)}\n`)
}

function pathOf(dataDir: string, id: string): string {
  return join(dataDir, SNAPSHOTS_FOLDER, RECORDS_FOLDER, `${id}.json`)
}
