/**
 * The schema `fast` of a snapshot, for speed alone: the candidates, their prefix sums, and an upper bound on all other
 * apps.
 */
import { z } from 'zod'
import type { DuckDBConnection } from '@duckdb/node-api'
import { FLOOR_DATE, addDays, daysBetween, type DayRange } from '../contract/calendar.ts'
import { countSchema, execute, readRow } from '../duckdb/statements.ts'
import { piecesOf, sqlWithTotals, type Extent } from '../snapshot/create.ts'
import { createFastMacros } from './macros.ts'

// A page ends at rank 200 at most. Further candidates lower the upper bound, so that it stays below small excesses too, but
// every window adds them up. A prefix sum takes nearly as much space as two app-days.
const RULES = {
  /** Over fewer apps all are read as fast, and a window that the candidates cannot prove would take twice as long. */
  leastApps: 16_000,
  /** Least and most candidates of each subcategory and block. */
  fewest: 100,
  most: 1000,
  /** Largest share of all apps that may be candidates of one block, if that is more than the fewest. */
  appShare: 1 / 8,
  /** Largest share of all apps that may be candidates of any block. */
  candidateShare: 1 / 2,
  /** Most prefix sums per app-day of the snapshot. */
  rowShare: 1 / 8,
  /** Most of a small snapshot with a checkpoint on each day, for which windows are planned faster, up to FEW_ROWS_SHARE. */
  rows: 1_250_000,
}
const FEW_ROWS_SHARE = 0.3

type Rules = typeof RULES

/** Days of a block, which shares one upper bound. Blocks are counted from the floor. */
const BLOCK_DAYS = 32

/** Days of candidates that one statement adds up: few enough for memory. */
const SUMS_AT_ONCE = 1_000_000

/** Stride in days between checkpoints: the smallest whose prefix sums fit. A stride divides a block. */
const STRIDES = [1, 2, 4, 8, 16, 32]

const sizesRow = z.object({
  apps: countSchema,
  subcategories: countSchema,
  app_days: countSchema,
  candidates: countSchema,
})
type Sizes = z.infer<typeof sizesRow>

/**
 * Fills the schema `fast` of the attached snapshot, which is the current database and otherwise complete. The tables stay
 * empty if there are few apps, or if so many apps lead in turn that their prefix sums would not fit.
 */
export async function fillFast(
  connection: DuckDBConnection,
  { days, totals }: Extent,
  rules = RULES,
): Promise<void> {
  await connection.run(sqlWithTotals('fast.sql#schema', totals))
  const { apps, subcategories } = await readRow(connection, 'fast.sql#sizes', sizesRow)
  const share = Math.floor((apps * rules.appShare) / subcategories)
  const level = Math.max(rules.fewest, Math.min(rules.most, share))
  const leaders = sqlWithTotals('fast.sql#leaders', totals)
  const from = blockOf(days.from)
  // An upper bound covers a whole block, even if the data ends inside it.
  const blocks = piecesOf({ from, to: addDays(blockOf(days.to), BLOCK_DAYS - 1) }, BLOCK_DAYS)
  for (const block of apps < rules.leastApps ? [] : blocks)
    await connection.run(leaders, { first_day: block.from, last_day: block.to, level })
  await execute(connection, 'fast.sql#candidates')
  const sizes = await readRow(connection, 'fast.sql#sizes', sizesRow)
  const stride = strideOf(sizes, days, rules)
  await createFastMacros(connection, stride ?? 1, totals)
  if (stride === undefined) {
    await connection.run('TRUNCATE snapshot.fast.apps; TRUNCATE snapshot.fast.upper_bounds')
    return
  }
  const prefixSums = sqlWithTotals('fast.sql#prefix-sums', totals)
  const blocksAtOnce = Math.ceil(SUMS_AT_ONCE / (sizes.candidates * BLOCK_DAYS))
  for (const piece of piecesOf({ from, to: days.to }, blocksAtOnce * BLOCK_DAYS))
    await connection.run(prefixSums, { first_day: piece.from, last_day: piece.to })
}

function strideOf({ apps, candidates, app_days }: Sizes, days: DayRange, rules: Rules): number | undefined {
  if (candidates === 0 || candidates > apps * rules.candidateShare) return undefined
  const rows = candidates * (1 + daysBetween(days.from, days.to))
  if (rows <= Math.min(rules.rows, app_days * FEW_ROWS_SHARE)) return 1
  return STRIDES.find((each) => rows / each <= app_days * rules.rowShare)
}

/** First day of the block around a day. */
function blockOf(day: string): string {
  return addDays(FLOOR_DATE, BLOCK_DAYS * Math.floor(daysBetween(FLOOR_DATE, day) / BLOCK_DAYS))
}
