/** The permanent record: a file per snapshot ever published. It outlives the snapshot (CONTRACT 4.6). */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { wholeSeconds } from '../contract/calendar.ts'
import { SNAPSHOTS_FOLDER } from '../contract/files.ts'
import { describeFolder, readRecord, recordPath } from '../contract/snapshot-record.ts'
import type { SnapshotRecord } from '../contract/snapshot-record.ts'
import { writeInOneStep } from './durable-file.ts'
import { listSnapshots, readable } from './list.ts'

/** Records every published snapshot without a readable record: the newest, or one of an earlier version. */
export function recordPublished(dataDir: string): void {
  for (const id of listSnapshots(dataDir)) {
    const record = recordOf(dataDir, id) === undefined ? describe(dataDir, id) : undefined
    if (record !== undefined) write(dataDir, record)
  }
}

/** Adds the time of removal to the record of a snapshot. */
export function recordPruned(dataDir: string, id: string, at: Date): void {
  const record = recordOf(dataDir, id)
  if (record !== undefined) write(dataDir, { ...record, pruned_at: wholeSeconds(at) })
}

function recordOf(dataDir: string, id: string): SnapshotRecord | undefined {
  return readable(() => readRecord(join(dataDir, SNAPSHOTS_FOLDER), id))
}

/** Undefined if the files that describe the snapshot are damaged. */
function describe(dataDir: string, id: string): SnapshotRecord | undefined {
  return readable(() => describeFolder(join(dataDir, SNAPSHOTS_FOLDER, id)))
}

function write(dataDir: string, record: SnapshotRecord): void {
  const path = recordPath(join(dataDir, SNAPSHOTS_FOLDER), record.id)
  mkdirSync(join(path, '..'), { recursive: true })
  writeInOneStep(path, `${JSON.stringify(record, null, 2)}\n`)
}
