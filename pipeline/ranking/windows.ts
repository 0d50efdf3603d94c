/** The tables of a snapshot that serve speed alone: see sql/fast/. */
import { z } from 'zod'
import type { DuckDBConnection } from '@duckdb/node-api'
import { piecesOf } from '../contract/day-ranges.ts'
import type { DayRange } from '../contract/day-ranges.ts'
import { BLOCK_DAYS, blockOf, findHeads } from './candidates.ts'
import type { HeadRules } from './candidates.ts'
import type { SettledDays } from '../snapshot/settled.ts'
import { literal } from '../duckdb/sql-values.ts'
import { execute, readRow } from '../duckdb/statements.ts'

// A page ends at rank 200 at most. The heads beyond it keep the bound on all others low, so that small excesses are
// above it too; what they take of the file is what limits them, and a running total takes nearly two app-days.
const HEAD_RULES: HeadRules = { levels: [1000, 600, 300], share: 1 / 8, appShare: 1 / 10 }

/** Days whose running totals are written in one go, with so many days from one total to the next: whole blocks. */
function daysAtOnce(step: number): number {
  // Few enough totals to be sorted in memory, and enough of each app: it takes its time, however few they are.
  return BLOCK_DAYS * Math.max(2, step / 2)
}

const widthRow = z.object({ wide: z.boolean() })

type Options = {
  readonly rules?: HeadRules
  /** In a run, which has a warehouse to take them over from. */
  readonly settled?: SettledDays | undefined
}

/**
 * Fills the schema `fast` of the attached snapshot, which is the current database and complete but for it. Where so
 * many apps come and go that no level fits, or everything is small, it stays empty.
 * @param days those between which the snapshot has data.
 */
export async function fillFast(
  connection: DuckDBConnection,
  days: DayRange,
  { rules = HEAD_RULES, settled }: Options = {},
): Promise<void> {
  await execute(connection, 'array-bits.sql')
  await execute(connection, 'fast/schema.sql')
  const { wide } = await readRow(connection, 'fast/width.sql', widthRow)
  await execute(connection, wide ? 'fast/widen.sql' : 'fast/narrow.sql')
  const step = await findHeads({ connection, days, rules, settled })
  await execute(connection, 'fast/tables.sql')
  // Macros are bound to no values, but may be made of them.
  await connection.run(`CREATE MACRO snapshot.fast.step() AS ${step}`)
  await connection.run(`CREATE MACRO snapshot.fast.data_through() AS DATE ${literal(days.to)}`)
  await execute(connection, 'fast/marks.sql')
  await fillRunning(connection, days, step)
  await execute(connection, 'fast/tidy.sql')
  // Fewer tables to look into are less to plan, which is most of a short query.
  await execute(connection, step === 1 ? 'fast/until-day.sql' : 'fast/until-mark.sql')
  await execute(connection, 'fast/between.sql')
  await execute(connection, 'fast/outside.sql')
}

async function fillRunning(connection: DuckDBConnection, days: DayRange, step: number): Promise<void> {
  for (const { from, to } of piecesOf({ ...days, from: blockOf(days.from) }, daysAtOnce(step))) {
    await execute(connection, 'fast/running.sql', { first_day: from, last_day: to })
  }
}
