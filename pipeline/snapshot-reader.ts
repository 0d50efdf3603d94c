/** Opens published snapshots to read them, without the warehouse and so without its lock. */
import { DuckDBInstance } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { SNAPSHOTS_FOLDER, SNAPSHOT_FILE } from './contract.ts'
import { UsageError } from './errors.ts'
import { listSnapshots } from './snapshots.ts'
import { identifier, literal } from './warehouse.ts'

/**
 * Attaches each snapshot, read-only, under its key in `snapshots` while `work` runs.
 * @throws UsageError when an identifier names no snapshot.
 */
export async function withSnapshots<T>(
  { dataDir, memory }: Config,
  snapshots: Readonly<Record<string, string>>,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  const instance = await DuckDBInstance.create(':memory:', {
    memory_limit: memory,
    autoinstall_known_extensions: 'false',
  })
  const connection = await instance.connect()
  try {
    await connection.run("SET TimeZone = 'UTC'")
    for (const [name, id] of Object.entries(snapshots)) {
      await connection.run(`ATTACH ${literal(fileOf(dataDir, id))} AS ${identifier(name)} (READ_ONLY)`)
    }
    return await work(connection)
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

function fileOf(dataDir: string, id: string): string {
  const file = join(dataDir, SNAPSHOTS_FOLDER, id, SNAPSHOT_FILE)
  if (existsSync(file)) return file
  const known = listSnapshots(dataDir).slice(-5)
  throw new UsageError(`There is no snapshot "${id}". The newest are: ${known.join(', ') || 'none'}`)
}
