/** The tables of a snapshot that serve speed alone: see sql/fast/. */
import { z } from 'zod'
import type { DuckDBConnection } from '@duckdb/node-api'
import { FLOOR_DATE, addDays } from './contract.ts'
import { countSchema, dateValue, execute, literal, readRow } from './warehouse.ts'

/** How the heads are chosen. */
interface HeadRules {
  /** How many apps of each tag and block are heads: the first level that fits, from the largest. */
  readonly levels: readonly number[]
  /** Share of all app-days that the heads may have. */
  readonly share: number
  /** Share of all apps above which the first ones of all tags together are not worth looking for. */
  readonly appShare: number
}

// A page ends at rank 200 at most. The heads beyond it keep the bound on all others low, so that small excesses are
// above it too; what they take of the file is what limits them.
const HEAD_RULES: HeadRules = { levels: [1000, 300], share: 1 / 5, appShare: 1 / 10 }

/** The bounds on those who are no heads are kept for blocks of days, counted from the floor. */
const BLOCK_DAYS = 16

const appsRow = z.object({ apps: countSchema, tags: countSchema })
const widthRow = z.object({ wide: z.boolean() })
const rowsRow = z.object({ all_rows: countSchema, head_rows: countSchema })

/** The days between which a snapshot has data, `YYYY-MM-DD`. */
interface Days {
  readonly firstDay: string
  readonly dataThrough: string
}

/**
 * Fills the schema `fast` of the attached snapshot, which is the current database. Where so many apps come and go
 * that no level fits, or everything is small, it stays empty.
 */
export async function fillFast(
  connection: DuckDBConnection,
  days: Days,
  rules: HeadRules = HEAD_RULES,
): Promise<void> {
  await execute(connection, 'fast/schema.sql')
  await findHeads(connection, days, rules)
  await execute(connection, 'fast/tables.sql')
  const { wide } = await readRow(connection, 'fast/width.sql', widthRow)
  if (wide) await execute(connection, 'fast/widen.sql')
  await execute(connection, 'fast/running.sql', { data_through: days.dataThrough })
  // A macro is bound to no values, but may hold one.
  await connection.run(`CREATE MACRO snapshot.fast.last_day() AS DATE ${literal(days.dataThrough)}`)
  await execute(connection, 'fast/macros.sql')
}

/** The candidates of the first level that fits; none where no level does. */
async function findHeads(connection: DuckDBConnection, days: Days, rules: HeadRules): Promise<void> {
  const { apps, tags } = await readRow(connection, 'fast/apps.sql', appsRow)
  for (const level of rules.levels.filter((each) => each * tags <= apps * rules.appShare)) {
    await findCandidates(connection, days, level)
    const { all_rows, head_rows } = await readRow(connection, 'fast/rows.sql', rowsRow)
    if (head_rows <= all_rows * rules.share) return
  }
  await execute(connection, 'fast/candidates.sql')
}

async function findCandidates(connection: DuckDBConnection, days: Days, level: number): Promise<void> {
  await execute(connection, 'fast/candidates.sql')
  for (let first = blockOf(days.firstDay); first <= days.dataThrough; first = addDays(first, BLOCK_DAYS)) {
    await execute(connection, 'fast/block.sql', { first_day: first })
    await execute(connection, 'fast/tops.sql', { first_day: first, level })
    await execute(connection, 'fast/first-ones.sql', { first_day: first })
  }
}

/** First day of the block that a day lies in. */
function blockOf(day: string): string {
  const since = dateValue(day).days - dateValue(FLOOR_DATE).days
  return addDays(FLOOR_DATE, BLOCK_DAYS * Math.floor(since / BLOCK_DAYS))
}
