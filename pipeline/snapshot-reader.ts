/** Opens published snapshots to read them, without the warehouse and so without its lock. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { SNAPSHOTS_FOLDER, SNAPSHOT_FILE } from './contract.ts'
import { UsageError } from './errors.ts'
import { withMemoryDatabase } from './memory-database.ts'
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
  return await withMemoryDatabase(memory, async (connection) => {
    for (const [name, id] of Object.entries(snapshots)) {
      await connection.run(`ATTACH ${literal(fileOf(dataDir, id))} AS ${identifier(name)} (READ_ONLY)`)
    }
    return await work(connection)
  })
}

function fileOf(dataDir: string, id: string): string {
  const file = join(dataDir, SNAPSHOTS_FOLDER, id, SNAPSHOT_FILE)
  if (existsSync(file)) return file
  const known = listSnapshots(dataDir).slice(-5)
  throw new UsageError(`There is no snapshot "${id}". The newest are: ${known.join(', ') || 'none'}`)
}
