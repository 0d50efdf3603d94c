import type { DuckDBAppender, DuckDBConnection } from '@duckdb/node-api'

/**
 * Appends rows to a temporary table while `work` runs. When it fails, what DuckDB holds back of them is thrown away,
 * what it wrote already stays in the table.
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
    // The garbage collector would have them written, by the name of the table: into that of the next day.
    appender.clear()
    throw error
  }
}
