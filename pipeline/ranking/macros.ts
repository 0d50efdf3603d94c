/**
 * The ranking rules as table macros. One text makes the app rankings twice in a snapshot: over all apps, and over the
 * candidates.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { literal } from '../duckdb/sql-values.ts'
import { execute, sqlFile } from '../duckdb/statements.ts'

const RULE_FILE = 'ranking.sql'

/**
 * Creates the ranking macros of the attached snapshot, which is the current database.
 * @param dataThrough last day of the data. As a constant it lets scans skip the days outside a window; a subquery on meta
 * would not.
 */
export async function createMacros(connection: DuckDBConnection, dataThrough: string): Promise<void> {
  await connection.run(`CREATE MACRO data_through() AS DATE ${literal(dataThrough)}`)
  await execute(connection, 'window.sql')
  await execute(connection, RULE_FILE)
  await execute(connection, 'models.sql')
}

/**
 * Creates the macros of the schema `fast`; its tables must exist.
 * @param stride days between checkpoints.
 */
export async function createFastMacros(connection: DuckDBConnection, stride: number): Promise<void> {
  await connection.run(`CREATE MACRO fast.stride() AS ${stride}`)
  await execute(connection, 'fast/macros.sql')
  await connection.run(sqlFile(RULE_FILE).replaceAll('main.', 'fast.'))
}
