/** `retract`: withdraws a published snapshot: removes its data and records the reason (CONTRACT 4.6). */
import { asOfFromId, snapshotId, wholeSeconds } from '../contract/calendar.ts'
import type { Retraction } from '../contract/files.ts'
import { UsageError, parseCommandLine } from '../program/program.ts'
import { isWhole } from '../snapshot/verify.ts'
import {
  listSnapshots,
  noSuchSnapshot,
  recordRetraction,
  removeUnfinished,
  retractionOf,
  rightfulCurrent,
  timeOfPruning,
  unfinishedRetractions,
} from '../snapshot/list.ts'
import { recordPublished } from '../snapshot/records.ts'
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
  const begun = retractionOf(dataDir, id)
  const next = rightfulCurrent(dataDir, id)
  if (begun === undefined && next === undefined) refuseOnly(dependencies, id)
  const retraction: Retraction = begun ?? {
    id,
    as_of: wholeSeconds(asOfFromId(id) ?? new Date(Number.NaN)),
    reason,
    retracted_at: wholeSeconds(dependencies.now()),
  }
  const wasNewest = listSnapshots(dataDir).every((other) => other <= id)
  if (!dryRun) withdraw(dataDir, retraction)
  printResult(dependencies, json, { ...retraction, current: next ?? null, dry_run: dryRun }, [
    `${id} ${dryRun ? 'would be' : 'is'} retracted: ${retraction.reason}`,
    `current snapshot: ${next ?? 'none'}`,
  ])
  if (wasNewest && !dryRun) {
    dependencies.progress.note(
      'Correct the input before the next run, or it publishes the same figures again',
    )
  }
}

/**
 * An interrupted retraction may be repeated, which completes it. A pruned snapshot may be cited, so it may be retracted
 * too.
 */
function refuseUnknown(dataDir: string, id: string): void {
  if (listSnapshots(dataDir).includes(id)) return
  if (unfinishedRetractions(dataDir).some((each) => each.id === id)) return
  const retracted = retractionOf(dataDir, id)
  if (retracted !== undefined) {
    throw new UsageError(`${id} was retracted already, at ${retracted.retracted_at}: ${retracted.reason}`)
  }
  if (timeOfPruning(dataDir, id) === undefined) throw noSuchSnapshot(dataDir, id)
}

/** The only snapshot must be replaced first, unless it stops every run. */
function refuseOnly({ config, now }: Dependencies, id: string): void {
  if (id > snapshotId(now()) || !isWhole(config.dataDir, id)) return
  throw new UsageError(
    `${id} is the only snapshot: correct the input and run first, so that another one can take its place`,
  )
}

/** Writes the record first: from then on the API withholds the data, and the next run completes an interrupted removal. */
function withdraw(dataDir: string, retraction: Retraction): void {
  recordPublished(dataDir)
  recordRetraction(dataDir, retraction)
  removeUnfinished(dataDir)
}
