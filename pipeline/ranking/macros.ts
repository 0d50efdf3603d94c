/**
 * The ranking rules as table macros. One text makes the app rankings twice in a snapshot: over all apps, and over the
 * candidates. The table of the usual rankings is made by the macros themselves.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { FLOOR_DATE, addDays } from '../contract/calendar.ts'
import { SORTS } from '../contract/dataset.ts'
import { literal } from '../duckdb/sql-values.ts'
import { execute, returnMemory } from '../duckdb/statements.ts'
import { sqlWithTotals, type TotalType } from '../snapshot/create.ts'
import type { Run } from '../stages/stage.ts'

/**
 * Creates the ranking macros of the attached snapshot, which is the current database.
 * @param dataThrough last day of the data. As a constant it lets scans skip the days outside a window; a subquery on meta
 * would not.
 */
export async function createMacros(
  connection: DuckDBConnection,
  dataThrough: string,
  totals: TotalType,
): Promise<void> {
  await connection.run(`CREATE MACRO data_through() AS DATE ${literal(dataThrough)}`)
  await execute(connection, 'macros.sql#window')
  await connection.run(sqlWithTotals('macros.sql#ranking', totals))
  await connection.run(sqlWithTotals('models.sql#macros', totals))
}

/**
 * Creates the macros of the schema `fast`; its tables must exist.
 * @param stride days between checkpoints.
 */
export async function createFastMacros(
  connection: DuckDBConnection,
  stride: number,
  totals: TotalType,
): Promise<void> {
  // With a checkpoint on each day the macros are simpler: half of the time of a query is their planning.
  const eve = `DATE ${literal(addDays(FLOOR_DATE, -1))}`
  const last = stride === 1 ? 'day' : `${eve} + CAST(${stride} * ((day - ${eve}) // ${stride}) AS INTEGER)`
  const until = sqlWithTotals('fast.sql#macros', totals)
  const daysAfter = stride === 1 ? '' : sqlWithTotals('fast.sql#days-after', totals)
  await connection.run(`CREATE MACRO fast.stride() AS ${stride}; CREATE MACRO fast.checkpoint_of(day) AS ${last};
    ${until} ${daysAfter};`)
  await execute(connection, 'fast.sql#window-macros')
  await connection.run(sqlWithTotals('macros.sql#ranking', totals).replaceAll('main.', 'fast.'))
}

/** Lengths in days of the precomputed windows; they end on the last day of the data. */
export const WINDOWS = [1, 7, 30, 90] as const

/** Fills the table `rankings`: the usual windows, both sorts, every filter. The order is that of the public macros. */
export async function fillRankings(run: Run, dataThrough: string): Promise<void> {
  const { connection } = run
  await execute(connection, 'rank.sql#filters')
  for (const [index, days] of WINDOWS.entries()) {
    const start = addDays(dataThrough, 1 - days)
    const window = { start_date: start < FLOOR_DATE ? FLOOR_DATE : start, end_date: dataThrough }
    for (const sort of SORTS) {
      // Every app of the window in rank order; the trending list has the growing apps alone.
      const ranking = `SELECT rank, app_id, total_requests, total_tokens FROM ${sort}($start_date, $end_date)`
      await connection.run(`CREATE OR REPLACE TEMP TABLE whole AS ${ranking}`, window)
      await execute(connection, 'rank.sql#lists', { window_days: days, ...window, sort })
    }
    await returnMemory(connection)
    run.progress.step('rank', index + 1, WINDOWS.length)
  }
  await connection.run('DROP TABLE whole; DROP TABLE members; DROP TABLE filters')
}
