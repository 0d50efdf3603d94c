import type { DuckDBAppender, DuckDBConnection } from '@duckdb/node-api'

/**
 * Appends rows to a temporary table while `work` runs. If it fails, DuckDB's buffered rows are discarded; rows that are
 * already in the table stay.
 */
export async function withAppender(
  connection: DuckDBConnection,
  table: string,
  work: (appender: DuckDBAppender) => Promise<void>,
): Promise<void> {
  const appender = await connection.createAppender(table, 'main', 'temp')
  try {
    await work(appender)
    appender.closeSync()
  } catch (error) {
    // Otherwise the garbage collector would flush them by table name: into the table of the next day.
    appender.clear()
    throw error
  }
}
