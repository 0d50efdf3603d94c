/** One nightly run: the stages in order, timed and reported. */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FLOOR_DATE, asOfFromId, lastCompletedDay, snapshotId, wholeSeconds } from './contract/calendar.ts'
import { refuseWithoutInput } from './config.ts'
import { CURRENT_POINTER, RAW_FOLDER, SNAPSHOTS_FOLDER, makeDataFolder } from './contract/files.ts'
import { VERSION } from './contract/version.ts'
import { dateValue, timeValue } from './duckdb/sql-values.ts'
import { setVariables } from './duckdb/statements.ts'
import { openWarehouse } from './duckdb/warehouse.ts'
import { BlockedError, DataError, LockedOutError, firstLineOf, messageOf } from './errors.ts'
import { UsageError, failureText } from './program/program.ts'
import { announceEnd, recordEnd, type Report } from './run-end.ts'
import { USUAL_RUN, type RunOptions } from './run-options.ts'
import {
  BUILD_PREFIX,
  currentSnapshot,
  listSnapshots,
  removeUnfinished,
  repairPointer,
} from './snapshot/list.ts'
import { migrateRetractions, recordPublished, recordedIds, unreadableRecords } from './snapshot/records.ts'
import { bundle } from './stages/bundle.ts'
import { check } from './stages/check.ts'
import { gate } from './stages/gate.ts'
import { load } from './stages/load.ts'
import { publish } from './stages/publish.ts'
import { rank } from './stages/rank.ts'
import { resolve } from './stages/resolve.ts'
import type { Dependencies, Run } from './stages/stage.ts'
import type { Progress } from './terminal/progress.ts'

/** The stages in their order; the name of each function is that of its stage. */
const STAGES = [load, resolve, rank, check, gate, bundle, publish]

/** The copy of the report beside the snapshot. */
const REPORT_FILE = 'report.json'

/** How far the clock may stand behind the newest snapshot; runs in quick succession need about a second. */
const CLOCK_TOLERANCE_MS = 60_000

/**
 * Runs the pipeline once over DATA_DIR, and records and announces how it ended, unless another run is under way.
 * @throws DataError if the data is wrong or fails a check, BlockedError if a gate blocks it, LockedOutError if another run
 * is under way, LockedError if another process has a published file open for writing. Each time nothing is published
 * and the current snapshot stays.
 */
export async function runNightly(
  dependencies: Dependencies,
  options: RunOptions = USUAL_RUN,
): Promise<Report> {
  const report = newReport(dependencies.now())
  try {
    await runUnderLock(report, { ...dependencies, options })
  } catch (error) {
    if (error instanceof LockedOutError) throw error
    const outcome = error instanceof BlockedError ? 'blocked' : 'failed'
    const message = failureText(error)
    Object.assign(report, { outcome, snapshot: null, message, finished_at: wholeSeconds(new Date()) })
    // A usage error comes before any work, and leaves DATA_DIR as it is.
    const end = error instanceof UsageError ? announceEnd : recordEnd
    await end(dependencies, report)
    throw error
  }
  await recordEnd(dependencies, report)
  return report
}

/** The report of a run that begins; a stage that ends it early, or a failure, changes the outcome. */
function newReport(asOf: Date): Report {
  const now = wholeSeconds(new Date())
  return {
    version: VERSION,
    as_of: wholeSeconds(asOf),
    last_day: lastCompletedDay(asOf),
    started_at: now,
    finished_at: now,
    outcome: 'published',
    snapshot: null,
    message: null,
    stages: [],
    not_published: {},
  }
}

async function runUnderLock(report: Report, given: Dependencies & Pick<Run, 'options'>): Promise<void> {
  const { config, progress, now } = given
  const { dataDir } = config
  refuseWithoutInput(config)
  makeSnapshotsFolder(dataDir)
  // A pointer that cannot be switched fails the run before any work.
  currentSnapshot(dataDir)
  using warehouse = await openWarehouse(config)
  const { connection } = warehouse
  for (const id of listSnapshots(dataDir)) recordPublished(dataDir, id)
  migrateRetractions(dataDir)
  removeUnfinished(dataDir)
  reportRepairs(dataDir, progress)
  const asOf = chooseAsOf(now(), listSnapshots(dataDir).at(-1), recordedIds(dataDir))
  Object.assign(report, { as_of: wholeSeconds(asOf), snapshot: snapshotId(asOf) })
  const lastDay = report.last_day
  await setVariables(connection, {
    as_of: timeValue(asOf),
    floor: dateValue(FLOOR_DATE),
    last_day: dateValue(lastDay),
  })
  const snapshotsFolder = join(dataDir, SNAPSHOTS_FOLDER)
  const buildFolder = join(snapshotsFolder, `${BUILD_PREFIX}${snapshotId(asOf)}`)
  const rawFolder = join(dataDir, RAW_FOLDER)
  await runStages({ ...given, connection, asOf, lastDay, rawFolder, snapshotsFolder, buildFolder }, report)
}

/** @throws UsageError when DATA_DIR cannot hold snapshots. */
export function makeSnapshotsFolder(dataDir: string): void {
  try {
    makeDataFolder(join(dataDir, SNAPSHOTS_FOLDER))
  } catch (error) {
    throw new UsageError(`DATA_DIR ${dataDir} cannot be used: ${messageOf(error)}`, { cause: error })
  }
}

/** Reports unreadable snapshot records, and a pointer that was repaired. */
function reportRepairs(dataDir: string, progress: Progress): void {
  for (const path of unreadableRecords(dataDir)) {
    progress.note(`${path} cannot be read and is left out. Restore it from a backup`)
  }
  const current = repairPointer(dataDir)
  if (current !== undefined)
    progress.note(`${CURRENT_POINTER} led to no snapshot; it leads to ${current}, the newest whole one`)
}

/**
 * The time that the snapshot states, in whole seconds and later than the newest snapshot. The time is also the
 * identifier: one of a retracted or pruned snapshot is never used again.
 * @throws DataError when the clock is far behind the newest snapshot.
 */
function chooseAsOf(now: Date, newest: string | undefined, taken: readonly string[]): Date {
  const clock = Math.floor(now.getTime() / 1000) * 1000
  const last = (newest === undefined ? undefined : asOfFromId(newest))?.getTime() ?? -Infinity
  if (last - clock > CLOCK_TOLERANCE_MS) {
    throw new DataError(
      `The clock shows ${wholeSeconds(now)}, but the newest snapshot was computed at ${wholeSeconds(new Date(last))}. ` +
        `Set the clock right, or, if it is, retract ${newest}`,
    )
  }
  let asOf = new Date(Math.max(clock, last + 1000))
  while (taken.includes(snapshotId(asOf))) asOf = new Date(asOf.getTime() + 1000)
  return asOf
}

async function runStages(run: Run, report: Report): Promise<void> {
  try {
    for (const stage of STAGES) {
      const start = performance.now()
      const { summary, facts, privateFacts, finished } = await stage(run)
      const ms = Math.round(performance.now() - start)
      Object.assign(report, finished, {
        stages: [...report.stages, { stage: stage.name, ms, ...facts }],
        not_published: { ...report.not_published, ...privateFacts },
        finished_at: wholeSeconds(new Date()),
      })
      run.progress.finished(stage.name, summary, ms)
      writeReport(run, report)
      if (finished) break
    }
  } catch (error) {
    // A full disk, for instance, stops both the run and its clean-up; the first error is the one to report.
    await deleteBuild(run).catch((second: unknown) =>
      run.progress.note(`The half-built snapshot could not be removed: ${firstLineOf(second)}`),
    )
    throw error
  }
}

async function deleteBuild(run: Run): Promise<void> {
  await run.connection.run('USE warehouse; DETACH DATABASE IF EXISTS snapshot')
  rmSync(run.buildFolder, { recursive: true, force: true })
}

/** Writes the report so far into the snapshot's folder, so that it is published with it, without its private facts. */
function writeReport(run: Run, { not_published: _private, ...report }: Report): void {
  if (!existsSync(run.buildFolder)) return
  writeFileSync(join(run.buildFolder, REPORT_FILE), `${JSON.stringify(report, null, 2)}\n`)
}
