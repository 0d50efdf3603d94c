/** `retract`: withdraws a published snapshot: removes its data and records the reason (CONTRACT 4.6). */
import { join } from 'node:path'
import { snapshotId, wholeSeconds } from '../contract/calendar.ts'
import { SNAPSHOTS_FOLDER } from '../contract/files.ts'
import { recordPath, retractionIn } from '../contract/snapshot-record.ts'
import type { SnapshotRecord } from '../contract/snapshot-record.ts'
import { DataError } from '../errors.ts'
import { UsageError, parseCommandLine } from '../program/program.ts'
import {
  currentWithout,
  listSnapshots,
  noSuchSnapshot,
  removeUnfinished,
  removeWithdrawn,
} from '../snapshot/list.ts'
import { recordOf, writeRecord } from '../snapshot/records.ts'
import { isWhole } from '../snapshot/verify.ts'
import { underLock } from '../duckdb/warehouse.ts'
import { JSON_OPTION, printResult } from './command.ts'
import type { Command, Dependencies } from './command.ts'

export const retract: Command = {
  usage: 'retract ID --reason TEXT [--dry-run] [--json]',
  summary:
    'withdraws a snapshot: its files are removed, the API answers with the reason, and the newest remaining snapshot becomes current',
  prepare(args) {
    const { values, positionals } = parseCommandLine({
      args,
      allowPositionals: true,
      options: {
        ...JSON_OPTION,
        reason: { type: 'string', default: '' },
        'dry-run': { type: 'boolean', default: false },
      },
    })
    const [id, ...rest] = positionals
    const reason = values.reason.trim()
    if (id === undefined || rest.length > 0) throw new UsageError('retract takes one snapshot')
    if (reason === '') throw new UsageError('retract needs --reason TEXT; the API answers with it')
    return (dependencies) =>
      retractSnapshot(dependencies, { id, reason, dryRun: values['dry-run'], json: values.json })
  },
}

type Request = {
  readonly id: string
  readonly reason: string
  readonly dryRun: boolean
  readonly json: boolean
}

async function retractSnapshot(dependencies: Dependencies, request: Request): Promise<void> {
  refuseUnknown(dependencies.config.dataDir, request.id)
  if (request.dryRun) withdrawAndReport(dependencies, request)
  else await underLock(dependencies.config, () => withdrawAndReport(dependencies, request))
}

function withdrawAndReport(dependencies: Dependencies, { id, reason, dryRun, json }: Request): void {
  const { dataDir } = dependencies.config
  const record = recordOf(dataDir, id)
  if (record === undefined) throw unreadable(dataDir, id)
  if (!dryRun) removeUnfinished(dataDir)
  const next = currentWithout(dataDir, id)
  if (record.retracted === undefined && next === undefined) refuseOnly(dependencies, id)
  // A repetition of an interrupted retraction completes it.
  const retracted = record.retracted ?? { at: wholeSeconds(dependencies.now()), reason }
  const wasNewest = listSnapshots(dataDir).every((other) => other <= id)
  if (!dryRun) withdraw(dataDir, { ...record, retracted })
  const result = { ...retractionIn({ ...record, retracted }), current: next ?? null, dry_run: dryRun }
  printResult(dependencies, json, result, [
    `${id} ${dryRun ? 'would be' : 'is'} retracted: ${retracted.reason}`,
    `current snapshot: ${next ?? 'none'}`,
  ])
  if (wasNewest && !dryRun) {
    dependencies.progress.note(
      'Correct the input before the next run, or it publishes the same figures again',
    )
  }
}

/** A pruned snapshot may be cited, so it may be retracted too. */
function refuseUnknown(dataDir: string, id: string): void {
  if (listSnapshots(dataDir).includes(id)) return
  const { retracted, pruned_at } = recordOf(dataDir, id) ?? {}
  if (retracted !== undefined) {
    throw new UsageError(`${id} was retracted already, at ${retracted.at}: ${retracted.reason}`)
  }
  if (pruned_at === undefined) throw noSuchSnapshot(dataDir, id)
}

function unreadable(dataDir: string, id: string): DataError {
  const path = recordPath(join(dataDir, SNAPSHOTS_FOLDER), id)
  return new DataError(`${path} cannot be read: restore it from a backup, then retract ${id}`)
}

/** The only snapshot must be replaced first, unless it stops every run. */
function refuseOnly({ config, now }: Dependencies, id: string): void {
  if (id > snapshotId(now()) || !isWhole(config.dataDir, id)) return
  throw new UsageError(
    `${id} is the only snapshot: correct the input and run first, so that another one can take its place`,
  )
}

/** Writes the record first: from then on the API withholds the data, and the next run completes an interrupted removal. */
function withdraw(dataDir: string, record: SnapshotRecord): void {
  writeRecord(dataDir, record)
  removeWithdrawn(dataDir, record.id)
}
