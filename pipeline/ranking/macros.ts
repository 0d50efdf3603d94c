/**
 * The ranking rules as table macros. One text makes the app rankings twice in a snapshot: over all apps, and over the
 * candidates.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { literal } from '../duckdb/sql-values.ts'
import { execute } from '../duckdb/statements.ts'
import { sqlWithTotals, type TotalType } from '../snapshot/create.ts'

const RULE = 'macros.sql#ranking'

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
  await connection.run(sqlWithTotals(RULE, totals))
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
  const until = sqlWithTotals('fast.sql#macros', totals)
  const daysAfter = stride === 1 ? '' : sqlWithTotals('fast.sql#days-after', totals)
  await connection.run(`CREATE MACRO fast.stride() AS ${stride}; ${until} ${daysAfter};`)
  await execute(connection, 'fast.sql#window-macros')
  await connection.run(sqlWithTotals(RULE, totals).replaceAll('main.', 'fast.'))
}
