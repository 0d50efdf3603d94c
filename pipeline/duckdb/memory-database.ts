import { DuckDBInstance } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'
import type { Config } from '../config.ts'
import { NO_EXTENSIONS } from './foreign-files.ts'
import { literal } from './sql-values.ts'
import { clearLeft, withOwnPath } from '../snapshot/own-files.ts'

/** Begins the names of what is kept in DATA_DIR for as long as one command works. */
export const SPILL_PREFIX = '.spilled-'

/**
 * A DuckDB of its own while `work` runs, without any file and so without the lock of the warehouse. What passes
 * its memory limit is spilled into DATA_DIR.
 */
export async function withMemoryDatabase<T>(
  { memory, dataDir, spill }: Pick<Config, 'memory' | 'dataDir'> & Partial<Pick<Config, 'spill'>>,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  // By default it would be the working directory, whoever else spills there.
  return await withOwnPath(dataDir, SPILL_PREFIX, async (spilled) => {
    const instance = await DuckDBInstance.create(':memory:', {
      memory_limit: memory,
      temp_directory: spilled,
      ...NO_EXTENSIONS,
    })
    const connection = await instance.connect()
    try {
      await connection.run("SET TimeZone = 'UTC'")
      await limitSpill(connection, spill)
      return await work(connection)
    } finally {
      connection.closeSync()
      instance.closeSync()
    }
  })
}

/** Bounds what a database spills to disk; without a bound DuckDB takes up to nine tenths of what is free. */
export async function limitSpill(connection: DuckDBConnection, spill: string | undefined): Promise<void> {
  // As an option of a new database it is taken, and not obeyed.
  if (spill !== undefined) await connection.run(`SET max_temp_directory_size = ${literal(spill)}`)
}

/** Removes what databases of killed processes had spilled into DATA_DIR. */
export function clearSpilled(dataDir: string): void {
  clearLeft(dataDir, SPILL_PREFIX)
}
