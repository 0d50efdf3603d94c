/** The stage load: counts the raw usage of each new or changed day into the warehouse. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { ProgramError } from '../contract/program.ts'
import { FLOOR_DATE } from '../contract/calendar.ts'
import { pluralize } from '../contract/terminal.ts'
import type { DayRange } from '../contract/day-ranges.ts'
import { DataError, machineFault, messageOf } from '../errors.ts'
import { dateValue, timeValue } from '../duckdb/sql-values.ts'
import { openSource } from '../sources/source.ts'
import type { SourceDay, UsageSource } from '../sources/source.ts'
import type { Run, StageResult } from './stage.ts'
import { countSchema, execute, readRow, readRows, setVariables, transaction } from '../duckdb/statements.ts'

/** Raised when the rules of counting change, so that every day is counted again. */
const COUNTING_VERSION = 2

/** More rejected rows than this share of a day fail the run (CONTRACT 7). */
const REJECT_LIMIT_PERCENT = 1n

const wholeNumber = z.string().transform(BigInt)
const ledgerRow = z.object({ day: z.string(), fingerprint: z.string() })
const rejectsRow = z.object({ rows_read: wholeNumber, rows_rejected: wholeNumber, wide: z.boolean() })
const worstRow = z.object({
  file: z.string(),
  reason: z.string(),
  rows: z.string(),
  first_row: z.string(),
  example: z.string(),
})
const totalsRow = z.object({
  days: countSchema,
  rows_read: countSchema,
  rows_rejected: countSchema,
  rows_duplicate: countSchema,
  rows_without_tokens: countSchema,
  tokens_read: z.string(),
  tokens_rejected: z.string(),
  tokens_duplicate: z.string(),
})
const reasonRow = z.object({ reason: z.string(), rows: countSchema })

/** What a run makes of the days it finds. */
export type DayPlan = {
  /** To be counted: new or changed since they were, or in the range that is counted again. */
  readonly read: readonly SourceDay[]
  readonly unchanged: number
  /** Counted once, but their files are gone. */
  readonly gone: readonly string[]
  readonly beforeFloor: number
  readonly notCompleted: number
  /** Changed or gone, but outside the range that is looked at: the next full run takes them. */
  readonly left: number
}

/**
 * Decides by fingerprint which days are to be counted.
 * @param ledger the days counted so far, with the fingerprint of the files they were counted from.
 * @param range when given, only its days are looked at, and all of them are counted again.
 */
export function planDays(
  found: readonly SourceDay[],
  ledger: ReadonlyMap<string, string>,
  lastDay: string,
  range?: DayRange,
): DayPlan {
  const isLookedAt = (day: string) => range === undefined || (day >= range.from && day <= range.to)
  const days = found.filter(({ day }) => day >= FLOOR_DATE && day <= lastDay)
  const changed = days.filter((day) => ledger.get(day.day) !== dayFingerprint(day))
  const read = range === undefined ? changed : days.filter(({ day }) => isLookedAt(day))
  const onDisk = new Set(found.map(({ day }) => day))
  const gone = [...ledger.keys()].filter((day) => !onDisk.has(day))
  const leftChanged = changed.filter(({ day }) => !isLookedAt(day)).length
  return {
    read,
    unchanged: days.length - read.length - leftChanged,
    gone: gone.filter(isLookedAt),
    left: leftChanged + gone.filter((day) => !isLookedAt(day)).length,
    beforeFloor: found.filter(({ day }) => day < FLOOR_DATE).length,
    notCompleted: found.filter(({ day }) => day > lastDay).length,
  }
}

/** The days that are counted, with their fingerprints; an empty one where too many rows were rejected. */
export async function readLedger(connection: DuckDBConnection): Promise<ReadonlyMap<string, string>> {
  const ledger = await readRows(connection, 'load/ledger.sql', ledgerRow)
  return new Map(ledger.map(({ day, fingerprint }) => [day, fingerprint]))
}

/**
 * Counts every day whose rows changed since it was last counted, or every day of the run's range; days the source
 * no longer has are forgotten.
 * All days are tried, so that one run names every broken one.
 * @throws DataError when a day cannot be read or has too many rejected rows.
 */
export async function load(run: Run): Promise<StageResult> {
  const shipped = await ship(run)
  const source = await openSource(run.config, run.rawFolder)
  try {
    const { facts, ...result } = await loadFrom(run, source)
    return { ...result, facts: { ...facts, ...shipped } }
  } finally {
    await source.close()
  }
}

/** Where a cluster counts, it gets this machine's usage records first. */
async function ship({ config }: Run): Promise<{ records_shipped?: number }> {
  if (config.usageSource === undefined) return {}
  // Only those who have a cluster wait for its client to load.
  const { shipRecords } = await import('../sources/clickhouse/ship.ts')
  const { records } = await shipRecords(config.dataDir, config.usageSource)
  return { records_shipped: records }
}

async function loadFrom(run: Run, source: UsageSource): Promise<StageResult> {
  const ledger = await readLedger(run.connection)
  const days = planDays(await source.listDays(), ledger, run.lastDay, run.options.range)
  for (const day of days.gone) await forgetDay(run, day)
  await countDays(run, source, days.read)
  return summarise(run, days)
}

async function summarise(run: Run, days: DayPlan): Promise<StageResult> {
  const { rows_read, tokens_read, ...totals } = await readRow(run.connection, 'load/totals.sql', totalsRow)
  const reasons = await readRows(run.connection, 'load/reject-reasons.sql', reasonRow)
  const left = days.left === 0 ? '' : `, ${days.left} left for the next full run`
  return {
    summary:
      `${pluralize(days.read.length, 'day')} counted, ${days.unchanged} unchanged${left}; ` +
      `${pluralize(rows_read, 'row')} in all, ${totals.rows_rejected} rejected, ${pluralize(totals.rows_duplicate, 'duplicate')}`,
    facts: {
      days_loaded: days.read.length,
      days_unchanged: days.unchanged,
      days_removed: days.gone.length,
      days_left: days.left,
      days_before_floor: days.beforeFloor,
      days_not_completed: days.notCompleted,
      ...totals,
      reject_reasons: reasons,
    },
    // Less what is published, they would be the traffic of the hidden apps.
    privateFacts: { rows_read, tokens_read },
  }
}

async function countDays(run: Run, source: UsageSource, days: readonly SourceDay[]): Promise<void> {
  const faults: string[] = []
  for (const [index, day] of days.entries()) {
    try {
      await loadDay(run, source, day)
    } catch (error) {
      // A full disk is no fault of the day: the others would meet it as well.
      const refused = error instanceof ProgramError ? undefined : machineFault(error, run.config.dataDir)
      if (refused !== undefined) throw refused
      faults.push(
        error instanceof ProgramError
          ? error.message
          : `Day ${day.day} cannot be counted: ${messageOf(error)}`,
      )
    }
    run.effects.progress.step('load', index + 1, days.length)
  }
  if (faults.length > 0) throw new DataError(faults.join('\n'))
}

function dayFingerprint({ fingerprint }: SourceDay): string {
  return `v${COUNTING_VERSION}\n${fingerprint}`
}

/** Replaces a day as a whole, in one transaction. */
async function loadDay(run: Run, source: UsageSource, day: SourceDay): Promise<void> {
  await setDay(run, day.day)
  await source.countDay(run.connection, day)
  const { rows_read, rows_rejected, wide } = await readRow(run.connection, 'load/rejects.sql', rejectsRow)
  if (wide) await execute(run.connection, 'load/widen.sql')
  const tooMany = rows_rejected * 100n > rows_read * REJECT_LIMIT_PERCENT
  await transaction(run.connection, async () => {
    await run.connection.run("DELETE FROM quarantine WHERE day = getvariable('day')")
    if (rows_rejected > 0n) await execute(run.connection, 'load/quarantine.sql')
    if (!tooMany) await storeDay(run, day)
  })
  if (tooMany) throw await tooManyRejects(run, day.day, rows_rejected, rows_read)
}

async function storeDay(run: Run, day: SourceDay): Promise<void> {
  await setVariables(run.connection, {
    fingerprint: dayFingerprint(day),
    counted_at: timeValue(run.effects.now()),
  })
  await execute(run.connection, 'load/store-day.sql')
}

async function tooManyRejects(run: Run, day: string, rejected: bigint, read: bigint): Promise<DataError> {
  const worst = await readRows(run.connection, 'load/worst.sql', worstRow, { day })
  const lines = worst.map(
    ({ file, reason, rows: count, first_row, example }) =>
      `  ${file}: ${pluralize(count, 'row')}: ${reason}; first at row ${first_row}: ${example.trimEnd().slice(0, 200)}`,
  )
  return new DataError(
    `Day ${day}: ${rejected} of ${read} rows are rejected, more than ${REJECT_LIMIT_PERCENT} %. ` +
      `Correct or remove the files; npm run nightly -- quarantine ${day} lists the rejected rows\n${lines.join('\n')}`,
  )
}

async function forgetDay(run: Run, day: string): Promise<void> {
  await setDay(run, day)
  await transaction(run.connection, () => execute(run.connection, 'load/forget-day.sql'))
}

async function setDay(run: Run, day: string): Promise<void> {
  await setVariables(run.connection, { day: dateValue(day) })
}
