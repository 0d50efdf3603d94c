/** `retract`: withdraws a published snapshot: removes its data and records the reason (CONTRACT 4.6). */
import { join } from 'node:path'
import { z } from 'zod'
import { snapshotId, wholeSeconds } from '../contract/calendar.ts'
import { SNAPSHOTS_FOLDER } from '../contract/files.ts'
import { recordPath, retractionIn, type SnapshotRecord } from '../contract/snapshot-record.ts'
import { underLock } from '../duckdb/warehouse.ts'
import { DataError } from '../errors.ts'
import { JSON_OPTION, required } from '../program/options.ts'
import { UsageError } from '../program/program.ts'
import {
  currentWithout,
  listSnapshots,
  noSuchSnapshot,
  removeUnfinished,
  removeWithdrawn,
} from '../snapshot/list.ts'
import { recordOf, writeRecord } from '../snapshot/records.ts'
import { isWhole } from '../snapshot/verify.ts'
import { command, printResult, type Dependencies } from './command.ts'

export const retract = command({
  summary:
    'withdraws a snapshot: its files are removed, the API answers with the reason, and the newest remaining snapshot becomes current',
  takes: 'ID',
  options: {
    reason: required(
      'TEXT',
      'why; published with the record of the snapshot',
      z
        .string('Expected TEXT; the API answers with it')
        .transform((text) => text.replaceAll(/\s+/g, ' ').trim())
        .refine((text) => text !== '', 'Expected TEXT; the API answers with it'),
    ),
    ...JSON_OPTION,
  },
  async work(dependencies, { reason, json }, [id = '']) {
    refuseUnknown(dependencies.config.dataDir, id)
    await underLock(dependencies.config, () => withdraw(dependencies, { id, reason, json }))
  },
})

/** A pruned snapshot may be cited, so it may be retracted too. */
function refuseUnknown(dataDir: string, id: string): void {
  if (listSnapshots(dataDir).includes(id)) return
  const { retracted, pruned_at } = recordOf(dataDir, id) ?? {}
  if (retracted !== undefined) {
    throw new UsageError(`${id} was retracted already, at ${retracted.at}: ${retracted.reason}`)
  }
  if (pruned_at === undefined) throw noSuchSnapshot(dataDir, id)
}

function withdraw(
  dependencies: Dependencies,
  { id, reason, json }: { id: string; reason: string; json: boolean },
): void {
  const { dataDir } = dependencies.config
  const before = readableRecord(dataDir, id)
  removeUnfinished(dataDir)
  const next = currentWithout(dataDir, id)
  if (before.retracted === undefined && next === undefined) refuseOnly(dependencies, id)
  // A repetition of an interrupted retraction completes it.
  const retracted = before.retracted ?? { at: wholeSeconds(dependencies.now()), reason }
  const record = { ...before, retracted }
  const wasNewest = listSnapshots(dataDir).every((other) => other <= id)
  // From the record on the API withholds the data, and the next run completes an interrupted removal.
  writeRecord(dataDir, record)
  removeWithdrawn(dataDir, id)
  printResult(dependencies, json, { ...retractionIn(record), current: next ?? null }, [
    `${id} is retracted: ${retracted.reason}`,
    `current snapshot: ${next ?? 'none'}`,
  ])
  if (wasNewest) {
    dependencies.progress.note(
      'Correct the input before the next run, or it publishes the same figures again',
    )
  }
}

function readableRecord(dataDir: string, id: string): SnapshotRecord {
  const record = recordOf(dataDir, id)
  if (record !== undefined) return record
  const path = recordPath(join(dataDir, SNAPSHOTS_FOLDER), id)
  throw new DataError(`${path} cannot be read: restore it from a backup, then retract ${id}`)
}

/** The only snapshot must be replaced first, unless it stops every run. */
function refuseOnly({ config, now }: Dependencies, id: string): void {
  if (id > snapshotId(now()) || !isWhole(config.dataDir, id)) return
  throw new UsageError(
    `${id} is the only snapshot: correct the input and run first, so that another one can take its place`,
  )
}
