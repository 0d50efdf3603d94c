/** The tables of a snapshot that serve speed alone: see sql/fast/. */
import { z } from 'zod'
import type { DuckDBConnection } from '@duckdb/node-api'
import { FLOOR_DATE, addDays } from './contract.ts'
import { countSchema, dateValue, execute, literal, readRow } from './warehouse.ts'

/** How the heads are chosen. */
interface HeadRules {
  /** How many apps of each tag and block are heads: the first level that fits, from the largest. */
  readonly levels: readonly number[]
  /** Running totals at most, for each app-day of the snapshot. */
  readonly share: number
  /** Share of all apps above which the first ones of all tags together are not worth looking for. */
  readonly appShare: number
}

// A page ends at rank 200 at most. The heads beyond it keep the bound on all others low, so that small excesses are
// above it too; what they take of the file is what limits them, and a running total takes nearly two app-days.
const HEAD_RULES: HeadRules = { levels: [1000, 600, 300], share: 1 / 8, appShare: 1 / 10 }

/** The bounds on those who are no heads are kept for blocks of days, counted from the floor. */
const BLOCK_DAYS = 32

/** Days from one running total to the next, the fewest that fit; whole blocks begin just after one. */
const STEPS = [1, 2, 4, 8]

/** Days whose running totals are written in one go: few enough to be sorted in memory, and whole blocks. */
const DAYS_AT_ONCE = 2 * BLOCK_DAYS

const appsRow = z.object({ apps: countSchema, tags: countSchema })
const widthRow = z.object({ wide: z.boolean() })
const rowsRow = z.object({ heads: countSchema, app_days: countSchema })

/** The days between which a snapshot has data, `YYYY-MM-DD`. */
interface Days {
  readonly firstDay: string
  readonly dataThrough: string
}

/**
 * Fills the schema `fast` of the attached snapshot, which is the current database and complete but for it. Where so
 * many apps come and go that no level fits, or everything is small, it stays empty.
 */
export async function fillFast(
  connection: DuckDBConnection,
  days: Days,
  rules: HeadRules = HEAD_RULES,
): Promise<void> {
  await execute(connection, 'fast/schema.sql')
  const { wide } = await readRow(connection, 'fast/width.sql', widthRow)
  await execute(connection, wide ? 'fast/widen.sql' : 'fast/narrow.sql')
  const step = await findHeads(connection, days, rules)
  await execute(connection, 'fast/tables.sql')
  // Macros are bound to no values, but may be made of them.
  await connection.run(`CREATE MACRO snapshot.fast.step() AS ${step}`)
  await connection.run(`CREATE MACRO snapshot.fast.data_through() AS DATE ${literal(days.dataThrough)}`)
  await execute(connection, 'fast/marks.sql')
  await fillRunning(connection, days)
  await execute(connection, 'fast/tidy.sql')
  // Fewer tables to look into are less to plan, which is most of a short query.
  await execute(connection, step === 1 ? 'fast/until-day.sql' : 'fast/until-mark.sql')
  await execute(connection, 'fast/between.sql')
  await execute(connection, 'fast/outside.sql')
}

/** Finds the heads of the first level that fits, none where no level does; gives the step of their totals. */
async function findHeads(connection: DuckDBConnection, days: Days, rules: HeadRules): Promise<number> {
  const { apps, tags } = await readRow(connection, 'fast/apps.sql', appsRow)
  const length = daysBetween(days.firstDay, days.dataThrough) + 1
  for (const level of rules.levels.filter((each) => each * tags <= apps * rules.appShare)) {
    await findTops(connection, days, level)
    const { heads, app_days } = await readRow(connection, 'fast/rows.sql', rowsRow)
    const step = STEPS.find((each) => (heads * length) / each <= app_days * rules.share)
    if (step !== undefined) return step
  }
  await execute(connection, 'fast/no-tops.sql')
  await execute(connection, 'fast/heads.sql')
  return 1
}

async function findTops(connection: DuckDBConnection, days: Days, level: number): Promise<void> {
  await execute(connection, 'fast/no-tops.sql')
  for (let first = blockOf(days.firstDay); first <= days.dataThrough; first = addDays(first, BLOCK_DAYS)) {
    const block = { first_day: first, last_day: addDays(first, BLOCK_DAYS - 1) }
    await execute(connection, 'fast/block.sql', block)
    await execute(connection, 'fast/tops.sql', { ...block, level })
  }
  await execute(connection, 'fast/heads.sql')
}

async function fillRunning(connection: DuckDBConnection, { firstDay, dataThrough }: Days): Promise<void> {
  for (let first = blockOf(firstDay); first <= dataThrough; first = addDays(first, DAYS_AT_ONCE)) {
    const last = addDays(first, DAYS_AT_ONCE - 1)
    await execute(connection, 'fast/running.sql', {
      first_day: first,
      last_day: last < dataThrough ? last : dataThrough,
    })
  }
}

/** First day of the block that a day lies in. */
function blockOf(day: string): string {
  return addDays(FLOOR_DATE, BLOCK_DAYS * Math.floor(daysBetween(FLOOR_DATE, day) / BLOCK_DAYS))
}

function daysBetween(first: string, last: string): number {
  return dateValue(last).days - dateValue(first).days
}
