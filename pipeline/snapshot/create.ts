/** Creates the snapshot's file with the table app_daily. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { addDays, type DayRange } from '../contract/calendar.ts'
import { SNAPSHOT_FILE } from '../contract/files.ts'
import { literal } from '../duckdb/sql-values.ts'
import { execute, sqlFile } from '../duckdb/statements.ts'
import type { Run } from '../stages/stage.ts'

// An interrupted build is thrown away, so a WAL synced to disk would be useless.
const UNLOGGED = 'RECOVERY_MODE NO_WAL_WRITES'

/**
 * Type of totals of tokens: BIGINT while all usage together fits, since pandas and others turn DECIMAL into a
 * floating-point number; then DECIMAL, which is exact.
 */
export type TotalType = 'BIGINT' | 'DECIMAL(38, 0)'

/** The statements of a SQL file, with the type of totals in the place of TOKEN_TOTAL. */
export function sqlWithTotals(name: string, totals: TotalType): string {
  return sqlFile(name).replaceAll('TOKEN_TOTAL', totals)
}

/** Size of the history. */
export type Extent = {
  /** Days between which the snapshot has data. */
  readonly days: DayRange
  readonly totals: TotalType
}

/**
 * Attaches a new snapshot as `snapshot`, creates its tables, and fills app_daily.
 * @param daysAtOnce days written by one statement.
 */
export async function createSnapshot(run: Run, { days, totals }: Extent, daysAtOnce: number): Promise<void> {
  const { connection, buildFolder } = run
  mkdirSync(buildFolder, { recursive: true })
  // Every DuckDB since 0.10 opens this storage version.
  const file = literal(join(buildFolder, SNAPSHOT_FILE))
  await connection.run(`ATTACH ${file} AS snapshot (STORAGE_VERSION 'v1.0.0', ${UNLOGGED})`)
  await connection.run(`USE snapshot; ${sqlWithTotals('snapshot.sql#tables', totals)}`)
  // A few days at a time, in order, so that readers skip the days outside their window.
  for (const { from, to } of piecesOf(days, daysAtOnce)) {
    await execute(connection, 'rank.sql#app-daily', { first_day: from, last_day: to })
  }
}

/** Splits a range into chunks of days; none if it ends before it begins. */
export function piecesOf({ from, to }: DayRange, length: number): DayRange[] {
  const pieces: DayRange[] = []
  for (let first = from; first <= to; first = addDays(first, length)) {
    const last = addDays(first, length - 1)
    pieces.push({ from: first, to: last < to ? last : to })
  }
  return pieces
}
