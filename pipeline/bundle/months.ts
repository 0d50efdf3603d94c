/**
 * The rows of app_daily as Parquet, month after month: each month has row groups of its own, so that a file can be
 * carried on, and what was written in many nights is the same to the last byte as what is written in one.
 */
import { UTCDate } from '@date-fns/utc'
import type { DuckDBConnection } from '@duckdb/node-api'
import { endOfMonth } from 'date-fns/endOfMonth'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { addDays, utcDay } from '../contract/calendar.ts'
import type { DayRange } from '../contract/day-ranges.ts'
import { literal } from '../duckdb/sql-values.ts'
import { returnMemory } from '../duckdb/statements.ts'
import { appendParquet } from './append-parquet.ts'
import { parquetOptions } from './table-files.ts'
import { DAYS_TABLE } from './tables.ts'

/** Name of the file in a snapshot. */
export const DAYS_FILE = `${DAYS_TABLE}.parquet`

/**
 * Appends days of the attached snapshot to a Parquet file, which is made where it is missing.
 * @param connection to the warehouse.
 * @param options of DuckDB's COPY.
 */
export async function appendMonths(
  connection: DuckDBConnection,
  path: string,
  days: DayRange,
  options = parquetOptions(),
): Promise<void> {
  const part = `${path}.part`
  for (const { from, to } of monthsOf(days)) {
    // Sorted once more: how rows come out of a table depends on how they went in, and with that the row groups.
    await connection.run(
      `COPY (
        FROM snapshot.${DAYS_TABLE}
        WHERE day BETWEEN ${literal(from)} AND ${literal(to)}
        ORDER BY day, app_id
      ) TO ${literal(part)} ${options}`,
    )
    if (existsSync(path)) {
      appendParquet(path, part)
      rmSync(part)
    } else renameSync(part, path)
    await returnMemory(connection)
  }
}

/** The days cut at the ends of months. */
function monthsOf({ from, to }: DayRange): DayRange[] {
  const months: DayRange[] = []
  for (let start = from; start <= to;) {
    const end = utcDay(endOfMonth(new UTCDate(start)))
    months.push({ from: start, to: end < to ? end : to })
    start = addDays(end, 1)
  }
  return months
}
