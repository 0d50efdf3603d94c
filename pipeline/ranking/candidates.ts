/**
 * The heads of a snapshot: the apps that can stand in a top 200. They are the first ones of each tag in blocks of days,
 * and what the next one of a block has bounds all others there.
 */
import { z } from 'zod'
import type { DuckDBConnection } from '@duckdb/node-api'
import { FLOOR_DATE, addDays } from '../contract/calendar.ts'
import { piecesOf } from '../contract/day-ranges.ts'
import type { DayRange } from '../contract/day-ranges.ts'
import type { SettledDays } from '../snapshot/settled.ts'
import { dateValue } from '../duckdb/sql-values.ts'
import { countSchema, execute, readRow, setVariables, sqlFile } from '../duckdb/statements.ts'

/** How the heads are chosen. */
export type HeadRules = {
  /** How many apps of each tag and block are heads: the first level that fits, from the largest. */
  readonly levels: readonly number[]
  /** Running totals at most, for each app-day of the snapshot. */
  readonly share: number
  /** Share of all apps above which the first ones of all tags together are not worth looking for. */
  readonly appShare: number
}

/** The bounds on those who are no heads stand for blocks of days, counted from the floor. */
export const BLOCK_DAYS = 32

/** The SQL by which the first apps of each tag in a block are found; the table of tags is made with the schema. */
const SCHEMA_FILE = 'fast/schema.sql'
const BLOCK_FILE = 'fast/block.sql'
const TOPS_FILE = 'fast/tops.sql'

/** Days from one running total to the next, the fewest that fit; whole blocks begin just after one. */
const STEPS = [1, 2, 4, 8]

const appsRow = z.object({ apps: countSchema, tags: countSchema })
const rowsRow = z.object({ heads: countSchema, app_days: countSchema })
const knownRow = z.object({ tops: countSchema, retagged: countSchema })

/** Where heads are looked for. */
type Search = {
  readonly connection: DuckDBConnection
  /** Those between which the snapshot has data. */
  readonly days: DayRange
  readonly rules: HeadRules
  /** Days whose blocks are looked through once: the warehouse holds what was found, and it is taken over from there. */
  readonly settled: SettledDays | undefined
}

/**
 * Finds the heads of the first level that fits, none where no level does, and leaves them in the temporary tables
 * fast_heads and fast_tops.
 * @returns the days from one of their running totals to the next.
 */
export async function findHeads(search: Search): Promise<number> {
  const { connection, days, rules, settled } = search
  if (settled?.isNew === true) await execute(connection, 'fast/save-tags.sql')
  const { apps, tags } = await readRow(connection, 'fast/apps.sql', appsRow)
  const length = daysBetween(days.from, days.to) + 1
  for (const level of rules.levels.filter((each) => each * tags <= apps * rules.appShare)) {
    await findTops(search, level)
    const { heads, app_days } = await readRow(connection, 'fast/rows.sql', rowsRow)
    const step = STEPS.find((each) => (heads * length) / each <= app_days * rules.share)
    if (step !== undefined) return step
  }
  await execute(connection, 'fast/no-tops.sql')
  await execute(connection, 'fast/heads.sql')
  return 1
}

async function findTops({ connection, days, settled }: Search, level: number): Promise<void> {
  await execute(connection, 'fast/no-tops.sql')
  const isKnown = settled?.isNew === false && (await takeTops(connection, level))
  const first = blockOf(isKnown ? addDays(settled.through, 1) : days.from)
  // Bounds stand for whole blocks, the last one too, whatever day the data ends on.
  const blocks = piecesOf({ from: first, to: addDays(blockOf(days.to), BLOCK_DAYS - 1) }, BLOCK_DAYS)
  await setVariables(connection, { block_days: BLOCK_DAYS })
  await execute(connection, 'fast/array.sql')
  for (const { from, to } of blocks) {
    const block = { first_day: from, last_day: to }
    await execute(connection, BLOCK_FILE, block)
    await execute(connection, TOPS_FILE, { ...block, level })
  }
  await execute(connection, 'fast/no-array.sql')
  await execute(connection, 'fast/heads.sql')
  if (settled?.isNew === true)
    await execute(connection, 'fast/save-tops.sql', { level, through: settled.through })
}

/** Takes the tops of the settled days over, unless there are none or they say nothing of too many apps. */
async function takeTops(connection: DuckDBConnection, level: number): Promise<boolean> {
  await execute(connection, 'fast/retagged.sql')
  const { tops, retagged } = await readRow(connection, 'fast/known.sql', knownRow, { level })
  if (tops === 0 || retagged > level) {
    await execute(connection, 'fast/no-tops.sql')
    return false
  }
  await execute(connection, 'fast/take-tops.sql', { level })
  return true
}

/** What decides besides the rows and the tags which tops are found: earlier ones hold as long as it is the same. */
export function shapeOfTops(): string {
  return [BLOCK_DAYS, sqlFile(SCHEMA_FILE), sqlFile(BLOCK_FILE), sqlFile(TOPS_FILE)].join('\n')
}

/** First day of the block that a day lies in. */
export function blockOf(day: string): string {
  return addDays(FLOOR_DATE, BLOCK_DAYS * Math.floor(daysBetween(FLOOR_DATE, day) / BLOCK_DAYS))
}

function daysBetween(first: string, last: string): number {
  return dateValue(last).days - dateValue(first).days
}
