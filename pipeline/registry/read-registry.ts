/** The app registry as the next nightly run would read it, in a database of its own that takes no lock. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { join } from 'node:path'
import { RAW_FOLDER } from '../contract/files.ts'
import { UsageError } from '../contract/program.ts'
import type { Config } from '../config.ts'
import { withMemoryDatabase } from '../duckdb/memory-database.ts'
import { decodeRegistry, findViolations, resolveAliases, stageRegistry } from './registry.ts'
import { execute } from '../duckdb/statements.ts'

/** Columns beside those of CONTRACT 7: an app's address, and what an operator decided and why. */
const NOTES = ['action', 'reason']

/**
 * Gives `work` a database with the decoded registry.
 * @throws DataError when a file cannot be read, UsageError when there is none.
 */
export async function withRegistry<T>(
  config: Config,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  const rawFolder = join(config.dataDir, RAW_FOLDER)
  return await withMemoryDatabase(config, async (connection) => {
    for (const name of ['warehouse.sql', 'load/values.sql']) await execute(connection, name)
    const files = await stageRegistry(connection, rawFolder, NOTES)
    if (files === 0) throw new UsageError(`There is no app registry under ${rawFolder}/apps`)
    await decodeRegistry(connection)
    return await work(connection)
  })
}

/** What would stop a nightly run, in words. */
export async function findFaults(connection: DuckDBConnection): Promise<string[]> {
  return [...(await findViolations(connection)), ...(await resolveAliases(connection))]
}
