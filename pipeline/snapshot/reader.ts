/** Opens published snapshots for reading, without the warehouse and its lock. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { asOfFromId } from '../contract/calendar.ts'
import { SNAPSHOTS_FOLDER } from '../contract/files.ts'
import { withMemoryDatabase } from '../duckdb/memory-database.ts'
import { attachPublished } from './attach.ts'
import { noSuchSnapshot } from './list.ts'

/**
 * Attaches each snapshot, read-only, under its key in `snapshots` while `work` runs.
 * @throws UsageError when an identifier names no snapshot, DataError when its file is damaged.
 */
export async function withSnapshots<T>(
  config: Config,
  snapshots: Readonly<Record<string, string>>,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  const { dataDir } = config
  return await withMemoryDatabase(config, async (connection) => {
    for (const [name, id] of Object.entries(snapshots)) {
      refuseUnknown(dataDir, id)
      await attachPublished(connection, { dataDir, id, name })
    }
    return await work(connection)
  })
}

function refuseUnknown(dataDir: string, id: string): void {
  if (asOfFromId(id) !== undefined && existsSync(join(dataDir, SNAPSHOTS_FOLDER, id))) return
  throw noSuchSnapshot(dataDir, id)
}
