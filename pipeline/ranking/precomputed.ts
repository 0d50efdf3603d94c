/**
 * The table `rankings` of a snapshot: the usual windows, both sorts, every filter. Order and filters come from the public
 * macros.
 */
import { FLOOR_DATE, addDays } from '../contract/calendar.ts'
import { SORTS } from '../contract/dataset.ts'
import type { Run } from '../stages/stage.ts'
import { execute, returnMemory } from '../duckdb/statements.ts'

/** Lengths in days of the precomputed windows; they end on the last day of the data. */
export const WINDOWS = [1, 7, 30, 90] as const

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
    run.dependencies.progress.step('rank', index + 1, WINDOWS.length)
  }
  await connection.run('DROP TABLE whole; DROP TABLE members; DROP TABLE filters')
}
