/** The freshness of the dataset (CONTRACT 4.6): GET /status, which needs no key, and metrics. */
import { Gauge, type Registry } from 'prom-client'
import { z } from 'zod'
import { addDays, daySchema, wholeSeconds } from '../../pipeline/contract/calendar.ts'
import { LAST_RUN_FILE, outcomeSchema, readLastRun } from '../../pipeline/contract/last-run.ts'
import { retractionSchema } from '../../pipeline/contract/snapshot-record.ts'
import { VERSION } from '../../pipeline/contract/version.ts'
import { sendJson, type Clock, type Handler } from '../http/call.ts'
import type { CronSchedule } from '../process/cron-schedule.ts'
import { UNREADABLE } from './snapshots/catalogue.ts'
import type { Snapshots } from './snapshots/current.ts'
import { coverageSchema, type SnapshotFacts } from './snapshots/facts.ts'

/** The end of a run, without what is private. */
const publicRunSchema = z.object({ finished_at: z.string(), outcome: outcomeSchema })

export const statusSchema = z.strictObject({
  data: z.strictObject({
    version: z.string().describe('The version of the service.'),
    as_of: z.iso.datetime({ precision: 0 }).nullable(),
    data_through: daySchema.nullable(),
    next_run_expected: z.iso.datetime({ precision: 0 }).nullable(),
    stale: z
      .boolean()
      .describe(
        'Whether the dataset lacks days that the last run, due at least an hour ago, should have published.',
      ),
    first_day: daySchema.nullable(),
    coverage: coverageSchema
      .nullable()
      .describe('Number of complete, partial, restated and missing days from first_day to data_through.'),
    days_missing: z
      .array(daySchema)
      .describe('Days without data between first_day and data_through; `stale` covers later ones.'),
    days_partial: z.array(daySchema),
    retracted: z.array(retractionSchema).describe('The withdrawn snapshots, newest first.'),
    last_run: publicRunSchema
      .nullable()
      .describe('The end of the last nightly run; `late` while the schedule retries its start.'),
    faults: z
      .array(z.strictObject({ thing: z.string(), message: z.string() }))
      .describe(
        'Faults for an operator to fix: a newest snapshot that cannot be opened, and unreadable records.',
      ),
  }),
})
type Status = z.infer<typeof statusSchema>

/** Serves the status of the current snapshot. */
export function datasetStatus(snapshots: Snapshots, schedule: CronSchedule, clock: Clock): Handler {
  return (_request, reply) => {
    const now = clock()
    const facts: Partial<SnapshotFacts> = snapshots.current() ?? {}
    const { retractions, faults } = snapshots.catalogue.read()
    const nextRun = schedule.next(now)
    const { lastRun, unreadable } = lastRunOf(snapshots.dataDir)
    const data: Status['data'] = {
      version: VERSION,
      as_of: facts.as_of ?? null,
      first_day: facts.first_day ?? null,
      data_through: facts.data_through ?? null,
      coverage: facts.coverage ?? null,
      days_missing: facts.days_missing ?? [],
      days_partial: facts.days_partial ?? [],
      retracted: [...retractions],
      last_run: lastRun,
      faults: [snapshots.fault() ?? [], ...faults, ...unreadable].flat(),
      next_run_expected: nextRun === undefined ? null : wholeSeconds(nextRun),
      stale: isStale(facts.data_through, schedule, now),
    }
    sendJson(reply, 200, { data })
  }
}

function lastRunOf(dataDir: string) {
  try {
    const found = readLastRun(dataDir)
    return { lastRun: found === undefined ? null : publicRunSchema.parse(found), unreadable: [] }
  } catch {
    return { lastRun: null, unreadable: [{ thing: LAST_RUN_FILE, message: UNREADABLE }] }
  }
}

// Time for a nightly run before the dataset counts as late.
const GRACE_MS = 3_600_000

/** Whether a run has been due since the day after `dataThrough` ended, and should have published that day. */
export function isStale(dataThrough: string | undefined, schedule: CronSchedule, now: Date): boolean {
  if (dataThrough === undefined) return true
  const due = schedule.next(new Date(Date.parse(addDays(dataThrough, 2)) - 1))
  return due !== undefined && due.getTime() <= now.getTime() - GRACE_MS
}

const secondsOf = (time: string | undefined) => (time === undefined ? 0 : Date.parse(time) / 1000)

/** Keeps the metrics of the dataset in `registry`. */
export function measureDataset(registry: Registry, snapshots: Snapshots): void {
  const measure = (name: string, help: string, value: () => number) => {
    const registers = [registry]
    const gauge: Gauge = new Gauge({ name, help, registers, collect: () => gauge.set(value()) })
  }
  measure(
    'dataset_snapshot_timestamp_seconds',
    'Time the served snapshot was computed (as_of), Unix time; 0 without a snapshot.',
    () => secondsOf(snapshots.current()?.as_of),
  )
  measure(
    'dataset_data_through_timestamp_seconds',
    'Start of the last completed UTC day in the dataset, Unix time; 0 without a snapshot.',
    () => secondsOf(snapshots.current()?.data_through),
  )
  measure(
    'dataset_days_missing',
    'Days inside the dataset without delivered usage.',
    () => snapshots.current()?.days_missing.length ?? 0,
  )
  measure('dataset_degraded', '1 while the newest snapshot cannot be served, else 0.', () =>
    Number(snapshots.fault() !== undefined),
  )
  measure(
    'dataset_faults',
    'Damaged published files and unreadable records; /status lists them.',
    () => snapshots.catalogue.read().faults.length,
  )
}
