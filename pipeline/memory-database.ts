import { DuckDBInstance } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'

/**
 * A DuckDB of its own while `work` runs, without any file and so without the lock of the warehouse.
 * @param memory DuckDB's memory limit, such as `2GB`.
 */
export async function withMemoryDatabase<T>(
  memory: string,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  const instance = await DuckDBInstance.create(':memory:', {
    memory_limit: memory,
    autoinstall_known_extensions: 'false',
  })
  const connection = await instance.connect()
  try {
    await connection.run("SET TimeZone = 'UTC'")
    return await work(connection)
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}
