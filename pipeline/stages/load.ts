/** The stage load: counts the raw usage of each new or changed day into the warehouse. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { FLOOR_DATE, type DayRange } from '../contract/calendar.ts'
import { dateListValue, listValue, timeValue } from '../duckdb/sql-values.ts'
import { execute, readRow, readRows, setVariables, transaction } from '../duckdb/statements.ts'
import { DataError, isShortage, messageOf } from '../errors.ts'
import { ProgramError } from '../program/program.ts'
import { pluralize, printable } from '../program/terminal.ts'
import { pullCluster } from '../sources/cluster.ts'
import { countUsage } from '../sources/count.ts'
import { listUsageDays, type UsageDay } from '../sources/drop-folder.ts'
import type { Run, StageResult } from './stage.ts'

/** Raised when the rules of counting change, so that every day is counted again. */
const COUNTING_VERSION = 8

const ledgerRow = z.object({ day: z.string(), fingerprint: z.string() })
const refusedRow = z.object({ day: z.string(), reason: z.string() })
const providerRow = z.object({
  provider: z.string(),
  requests: z.number(),
  requests_without_tokens: z.number(),
})

/** Further totals are facts of the report, as they are. */
const reportRow = z.looseObject({
  rows_rejected: z.number(),
  rows_duplicate: z.number(),
  rows_conflicting: z.number(),
  not_published: z.object({
    rows_read: z.number(),
    tokens_read: z.string(),
    providers: z.array(providerRow),
  }),
})

/** A run's plan for the days it finds. */
export type DayPlan = {
  /** To count: new, changed, or in the range to count again. */
  readonly read: readonly UsageDay[]
  /** Counted earlier, but their files are gone. */
  readonly gone: readonly string[]
  /** Numbers of the other days; those `left` have changed or are gone outside the range, for the next full run. */
  readonly counts: Readonly<Record<'unchanged' | 'left' | 'before_floor' | 'not_completed', number>>
}

/**
 * Decides by fingerprint which days to count.
 * @param ledger the days counted so far, with the fingerprints of their files.
 * @param range if given, all days in it are counted again, and no other day is.
 */
export function planDays(
  found: readonly UsageDay[],
  ledger: ReadonlyMap<string, string>,
  lastDay: string,
  range?: DayRange,
): DayPlan {
  const isInRange = (day: string) => range === undefined || (day >= range.from && day <= range.to)
  const days = found.filter(({ day }) => day >= FLOOR_DATE && day <= lastDay)
  const changed = days.filter((day) => ledger.get(day.day) !== dayFingerprint(day))
  const read = range === undefined ? changed : days.filter(({ day }) => isInRange(day))
  const onDisk = new Set(found.map(({ day }) => day))
  const gone = [...ledger.keys()].filter((day) => !onDisk.has(day))
  const leftChanged = changed.filter(({ day }) => !isInRange(day)).length
  return {
    read,
    gone: gone.filter(isInRange),
    counts: {
      unchanged: days.length - read.length - leftChanged,
      left: leftChanged + gone.filter((day) => !isInRange(day)).length,
      before_floor: found.filter(({ day }) => day < FLOOR_DATE).length,
      not_completed: found.filter(({ day }) => day > lastDay).length,
    },
  }
}

/** The counted days with their fingerprints; the fingerprint is empty if too many rows were rejected. */
export async function readLedger(connection: DuckDBConnection): Promise<ReadonlyMap<string, string>> {
  const ledger = await readRows(connection, 'load.sql#counted-days', ledgerRow)
  return new Map(ledger.map(({ day, fingerprint }) => [day, fingerprint]))
}

/**
 * Brings the changed days of a cluster into the drop folder. Counts every day with changed rows, or every day of the run's
 * range, and removes days that are gone from the source. Tries all days, so that one run names every broken one.
 * @throws DataError if a day cannot be read or has too many rejected rows, or if there is no usage at all.
 */
export async function load(run: Run): Promise<StageResult> {
  const { connection, rawFolder, lastDay, progress } = run
  const { usageSource: address } = run.config
  const pulled = address && (await pullCluster({ address, rawFolder, lastDay, progress }, connection))
  const ledger = await readLedger(connection)
  const days = planDays(listUsageDays(rawFolder), ledger, lastDay, run.options.range)
  if (days.gone.length > 0) await removeDays(run, days.gone)
  await countDays(run, days.read)
  const { facts, ...result } = await summarise(run, days)
  return { ...result, facts: { ...facts, ...(pulled && { days_pulled: pulled.length }) } }
}

async function summarise(run: Run, { read, gone, counts }: DayPlan): Promise<StageResult> {
  const { not_published, ...totals } = await readRow(run.connection, 'load.sql#report', reportRow)
  const { rows_rejected: rejected, rows_duplicate: duplicates, rows_conflicting: conflicts } = totals
  if (not_published.rows_read === rejected) throw new DataError(describeNothing(run, counts.not_completed))
  const left = counts.left === 0 ? '' : `, ${counts.left} left for the next full run`
  const others = Object.entries(counts).map(([name, days]) => [`days_${name}`, days])
  return {
    summary:
      `${pluralize(read.length, 'day')} counted, ${counts.unchanged} unchanged${left}; ` +
      `${pluralize(not_published.rows_read, 'row')} in all, ${rejected} rejected, ${pluralize(duplicates, 'duplicate')}` +
      (conflicts === 0 ? '' : `, ${conflicts} of them in conflict`) +
      describeUnknownTokens(not_published.providers),
    facts: {
      days_loaded: read.length,
      days_removed: gone.length,
      ...Object.fromEntries(others),
      ...totals,
    },
    // Subtracting the published figures from these would reveal the traffic of hidden apps.
    privateFacts: not_published,
  }
}

/** Where a run without any usage looked. */
function describeNothing({ lastDay, rawFolder }: Run, notCompleted: number): string {
  const later = notCompleted === 0 ? '' : ` (${pluralize(notCompleted, 'day')} there: not over yet)`
  return (
    `There is no usage between ${FLOOR_DATE} and ${lastDay} in ${rawFolder}/usage${later}: put files into the folders ` +
    'date=YYYY-MM-DD there, or set DATA_DIR to the folder of the service'
  )
}

/** Share of served requests with unknown tokens, by provider; empty if there are none. */
function describeUnknownTokens(providers: readonly z.infer<typeof providerRow>[]): string {
  const shares = providers
    .filter(({ requests_without_tokens: unknown }) => unknown > 0)
    .map(({ provider, requests, requests_without_tokens: unknown }) => {
      const percent = Math.max(0.1, (100 * unknown) / requests).toFixed(1)
      return `${percent} % of the requests that ${printable(provider)} served`
    })
  return shares.length === 0 ? '' : `; tokens are unknown for ${shares.join(', ')}`
}

/** Days with about this many rows are counted together: planning the queries of a day takes longer than reading few rows. */
const BATCH_ROWS = 10_000_000

/** Usual bytes of a row. Compressed text takes about a sixth of its size. */
const ROW_BYTES = { parquet: 12, arrow: 60, csv: 60, ndjson: 200 } as const
const COMPRESSION_RATIO = 6

function estimateRows({ files }: UsageDay): number {
  return files.reduce((sum, { bytes, format, compression }) => {
    const size = compression === 'none' ? bytes : COMPRESSION_RATIO * bytes
    return sum + size / ROW_BYTES[format]
  }, 0)
}

function inBatches(days: readonly UsageDay[]): UsageDay[][] {
  const batches: UsageDay[][] = []
  let room = -1
  for (const day of days) {
    const rows = estimateRows(day)
    if (rows > room) {
      batches.push([])
      room = BATCH_ROWS
    }
    batches.at(-1)?.push(day)
    room -= rows
  }
  return batches
}

async function countDays(run: Run, days: readonly UsageDay[]): Promise<void> {
  const faults: string[] = []
  let done = 0
  for (const batch of inBatches(days)) {
    faults.push(...(await countBatch(run, batch)))
    done += batch.length
    run.progress.step('load', done, days.length)
  }
  if (faults.length > 0) throw new DataError(faults.join('\n'))
}

/** Counts days together; after an error one by one, so that a broken day does not stop the others. Resolves to the faults. */
async function countBatch(run: Run, batch: readonly UsageDay[]): Promise<string[]> {
  try {
    return await replaceDays(run, batch)
  } catch (error) {
    // A full disk would stop the other days too.
    if (isShortage(error)) throw error
    if (batch.length === 1) {
      const isKnown = error instanceof ProgramError
      return [isKnown ? error.message : `Day ${batch[0]?.day} cannot be counted: ${messageOf(error)}`]
    }
    return (await Array.fromAsync(batch, (day) => countBatch(run, [day]))).flat()
  }
}

const dayOf = ({ day }: UsageDay): string => day

function dayFingerprint({ fingerprint }: UsageDay): string {
  return `v${COUNTING_VERSION}\n${fingerprint}`
}

/**
 * Replaces days completely, in one transaction.
 * @returns the messages for days with too many rejected rows or tokens, which keep their figures.
 */
async function replaceDays(run: Run, batch: readonly UsageDay[]): Promise<string[]> {
  const { connection } = run
  await setDays(run, batch.map(dayOf))
  const notes = await countUsage(connection, batch)
  const refused = await readRows(connection, 'load.sql#refused-days', refusedRow)
  const accepted = batch.filter(({ day }) => !refused.some((other) => other.day === day))
  await transaction(connection, async () => {
    await execute(connection, 'load.sql#forget-rejected')
    await execute(connection, 'load.sql#quarantine')
    if (accepted.length > 0) await storeDays(run, accepted)
  })
  for (const note of notes) run.progress.note(note)
  return refused.map(({ reason }) => reason)
}

async function storeDays(run: Run, days: readonly UsageDay[]): Promise<void> {
  await setDays(run, days.map(dayOf))
  await setVariables(run.connection, {
    fingerprints: listValue(days.map(dayFingerprint)),
    counted_at: timeValue(run.now()),
  })
  await execute(run.connection, 'load.sql#remove-days')
  await execute(run.connection, 'load.sql#store-days')
}

async function removeDays(run: Run, days: readonly string[]): Promise<void> {
  await setDays(run, days)
  await transaction(run.connection, async () => {
    await execute(run.connection, 'load.sql#forget-rejected')
    await execute(run.connection, 'load.sql#remove-days')
  })
}

async function setDays({ connection }: Run, days: readonly string[]): Promise<void> {
  await setVariables(connection, { days: dateListValue(days) })
}
