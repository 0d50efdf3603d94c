/** One nightly run: the stages in order, timed and reported. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from './program/program.ts'
import { bundle } from './stages/bundle.ts'
import { check } from './stages/check.ts'
import type { Config } from './config.ts'
import { FLOOR_DATE, asOfFromId, lastCompletedDay, snapshotId, wholeSeconds } from './contract/calendar.ts'
import { CURRENT_POINTER, RAW_FOLDER, SNAPSHOTS_FOLDER, makeDataFolder } from './contract/files.ts'
import type { Outcome } from './contract/last-run.ts'
import { VERSION } from './contract/version.ts'
import type { Dependencies } from './dependencies.ts'
import { BlockedError, DataError, explained, firstLineOf, messageOf } from './errors.ts'
import { gate } from './stages/gate.ts'
import { load } from './stages/load.ts'
import { publish } from './stages/publish.ts'
import { rank } from './stages/rank.ts'
import { resolve } from './stages/resolve.ts'
import { refuseMissingRights, rightFaults } from './rights.ts'
import { USUAL_RUN } from './run-options.ts'
import type { RunOptions } from './run-options.ts'
import {
  BUILD_PREFIX,
  currentSnapshot,
  listSnapshots,
  removeUnfinished,
  repairPointer,
} from './snapshot/list.ts'
import { migrateRetractions, recordPublished, recordedIds, unreadableRecords } from './snapshot/records.ts'
import { isWhole } from './snapshot/verify.ts'
import type { Progress } from './terminal/progress.ts'
import { dateValue, timeValue } from './duckdb/sql-values.ts'
import type { Run, Stage, StageResult } from './stages/stage.ts'
import { setVariables } from './duckdb/statements.ts'
import { openWarehouse } from './duckdb/warehouse.ts'

const STAGES: readonly Stage[] = [
  { name: 'load', run: load },
  { name: 'resolve', run: resolve },
  { name: 'rank', run: rank },
  { name: 'check', run: check },
  { name: 'gate', run: gate },
  { name: 'bundle', run: bundle },
  { name: 'publish', run: publish },
]

/** The copy of the report beside the snapshot. */
const REPORT_FILE = 'report.json'

/** How far the clock may stand behind the newest snapshot; runs in quick succession need about a second. */
const CLOCK_TOLERANCE_MS = 60_000

/** What a run did; `message` says why it failed. Durations in milliseconds. */
export type Report = {
  /** The version of the program. */
  readonly version: string
  readonly as_of: string
  /** The last UTC day that was over when the run began. */
  readonly last_day: string
  readonly started_at: string
  readonly finished_at: string
  readonly outcome: Outcome
  readonly snapshot: string | null
  readonly message: string | null
  readonly stages: readonly Readonly<Record<string, unknown>>[]
  /** Private facts, left out of the copy beside the snapshot. */
  readonly not_published?: Readonly<Record<string, unknown>>
}

/** A stage that is over. */
type Done = { readonly name: string; readonly ms: number; readonly result: StageResult }

/** Why a run ended without a snapshot. */
type Failure = { readonly outcome: 'failed' | 'blocked'; readonly message: string }

/**
 * Runs the pipeline once over DATA_DIR.
 * @throws DataError if the data is wrong or fails a check, BlockedError if a gate blocks it, LockedOutError if another run
 * is under way, LockedError if another process has a published file open for writing. Each time nothing is published
 * and the current snapshot stays.
 */
export async function runNightly(
  config: Config,
  dependencies: Dependencies,
  options: RunOptions = USUAL_RUN,
): Promise<Report> {
  makeFolders(config.dataDir)
  refuseMissingRights(config.dataDir)
  // A pointer that cannot be switched fails the run before any work.
  currentSnapshot(config.dataDir)
  const warehouse = await openWarehouse(config.dataDir, config.memory, config.spill)
  try {
    for (const id of listSnapshots(config.dataDir)) recordPublished(config.dataDir, id)
    migrateRetractions(config.dataDir)
    removeUnfinished(config.dataDir)
    reportRepairs(config.dataDir, dependencies.progress)
    const run = await prepare({ config, dependencies, options, connection: warehouse.connection })
    return await runStages(run)
  } finally {
    warehouse.close()
  }
}

/** Reports unreadable snapshot records, and a pointer that was repaired. */
function reportRepairs(dataDir: string, progress: Progress): void {
  for (const path of unreadableRecords(dataDir)) {
    progress.note(`${path} cannot be read and is left out. Restore it from a backup`)
  }
  const current = repairPointer(dataDir, (id) => isWhole(dataDir, id))
  if (current !== undefined)
    progress.note(`${CURRENT_POINTER} led to no snapshot; it leads to ${current}, the newest whole one`)
}

/** @throws UsageError when DATA_DIR cannot hold snapshots. */
export function makeFolders(dataDir: string): void {
  try {
    makeDataFolder(dataDir)
    mkdirSync(join(dataDir, SNAPSHOTS_FOLDER), { recursive: true })
  } catch (error) {
    const faults = rightFaults(dataDir).join('\n')
    throw new UsageError(faults || `DATA_DIR ${dataDir} cannot be used: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

async function prepare(given: Pick<Run, 'config' | 'dependencies' | 'options' | 'connection'>): Promise<Run> {
  const { config, dependencies, connection } = given
  const now = dependencies.now()
  const asOf = chooseAsOf(now, listSnapshots(config.dataDir).at(-1), recordedIds(config.dataDir))
  const lastDay = lastCompletedDay(now)
  await setVariables(connection, {
    as_of: timeValue(asOf),
    floor: dateValue(FLOOR_DATE),
    last_day: dateValue(lastDay),
  })
  const snapshotsFolder = join(config.dataDir, SNAPSHOTS_FOLDER)
  return {
    ...given,
    asOf,
    lastDay,
    rawFolder: join(config.dataDir, RAW_FOLDER),
    snapshotsFolder,
    buildFolder: join(snapshotsFolder, `${BUILD_PREFIX}${snapshotId(asOf)}`),
  }
}

/**
 * The time that the snapshot states, in whole seconds and later than the newest snapshot. The time is also the
 * identifier: one of a retracted or pruned snapshot is never used again.
 * @throws DataError when the clock is far behind the newest snapshot.
 */
export function chooseAsOf(now: Date, newest: string | undefined, taken: readonly string[] = []): Date {
  let asOf = afterNewest(now, newest)
  while (taken.includes(snapshotId(asOf))) asOf = new Date(asOf.getTime() + 1000)
  return asOf
}

function afterNewest(now: Date, newest: string | undefined): Date {
  const asOf = new Date(Math.floor(now.getTime() / 1000) * 1000)
  const newestAsOf = newest === undefined ? undefined : asOfFromId(newest)
  if (newestAsOf === undefined || asOf > newestAsOf) return asOf
  if (newestAsOf.getTime() - asOf.getTime() > CLOCK_TOLERANCE_MS) {
    throw new DataError(
      `The clock shows ${wholeSeconds(asOf)}, but the newest snapshot was computed at ${wholeSeconds(newestAsOf)}. ` +
        `Set the clock right, or, if it is, retract ${newest}`,
    )
  }
  return new Date(newestAsOf.getTime() + 1000)
}

async function runStages(run: Run): Promise<Report> {
  const startedAt = run.dependencies.now()
  const done: Done[] = []
  try {
    for (const { name, run: runStage } of STAGES) {
      const start = performance.now()
      const result = await runStage(run)
      const ms = Math.round(performance.now() - start)
      done.push({ name, ms, result })
      run.dependencies.progress.finished(name, result.summary, ms)
      leaveReport(run, report(run, startedAt, done))
      if (result.finished) break
    }
  } catch (error) {
    const failure = explained(error, run.config.dataDir)
    // A full disk, for instance, stops both the run and its clean-up; the first error is the one to report.
    await abandon(run, startedAt, done, failureOf(failure)).catch((second: unknown) =>
      run.dependencies.progress.note(`The failed run left no report: ${firstLineOf(second)}`),
    )
    throw failure
  }
  return await recordEnd(run, startedAt, done)
}

/** The snapshot is published by then, so a run that cannot be recorded has not failed. */
async function recordEnd(run: Run, startedAt: Date, done: readonly Done[]): Promise<Report> {
  const whole = wholeReport(run, startedAt, done)
  await record(run, whole).catch((error: unknown) =>
    run.dependencies.progress.note(
      `The run came to its end (${whole.outcome}), but could not be recorded in the warehouse's table runs: ${firstLineOf(error)}`,
    ),
  )
  return whole
}

function failureOf(error: unknown): Failure {
  return { outcome: error instanceof BlockedError ? 'blocked' : 'failed', message: messageOf(error) }
}

/** Writes the report so far into the snapshot's folder, so that it is published with it. */
function leaveReport(run: Run, soFar: Report): void {
  if (!existsSync(run.buildFolder)) return
  writeFileSync(join(run.buildFolder, REPORT_FILE), `${JSON.stringify(soFar, null, 2)}\n`)
}

function report(run: Run, startedAt: Date, done: readonly Done[], failure?: Failure): Report {
  const finished = done.at(-1)?.result.finished
  return {
    version: VERSION,
    as_of: wholeSeconds(run.asOf),
    last_day: run.lastDay,
    started_at: startedAt.toISOString(),
    finished_at: run.dependencies.now().toISOString(),
    // A published snapshot carries the report from just before it was published.
    outcome: failure?.outcome ?? finished?.outcome ?? 'published',
    snapshot: failure === undefined ? (finished?.snapshot ?? snapshotId(run.asOf)) : null,
    message: failure?.message ?? null,
    stages: done.map(({ name, ms, result }) => ({ stage: name, ms, ...result.facts })),
  }
}

/** The report with its private facts. */
function wholeReport(run: Run, startedAt: Date, done: readonly Done[], failure?: Failure): Report {
  const not_published: Record<string, unknown> = Object.assign(
    {},
    ...done.map(({ result }) => result.privateFacts),
  )
  return { ...report(run, startedAt, done, failure), not_published }
}

/** Stores the whole report in the warehouse. */
async function record(run: Run, whole: Report): Promise<void> {
  await run.connection.run(
    'INSERT INTO runs SELECT CAST($1 AS TIMESTAMPTZ), CAST($2 AS TIMESTAMPTZ), $3, $4, CAST($5 AS JSON)',
    [whole.started_at, whole.finished_at, whole.outcome, whole.snapshot, JSON.stringify(whole)],
  )
}

/** Deletes the half-built snapshot and stores the report of the failure. */
async function abandon(run: Run, startedAt: Date, done: readonly Done[], failure: Failure): Promise<void> {
  await run.connection.run('USE warehouse; DETACH DATABASE IF EXISTS snapshot')
  rmSync(run.buildFolder, { recursive: true, force: true })
  await record(run, wholeReport(run, startedAt, done, failure))
}
