/** Reads the app registry as the next nightly run would, in a separate database without a lock. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { join } from 'node:path'
import { RAW_FOLDER } from '../contract/files.ts'
import { UsageError } from '../program/program.ts'
import type { Config } from '../config.ts'
import { withMemoryDatabase } from '../duckdb/memory-database.ts'
import { decodeRegistry, findViolations, resolveAliases, stageRegistry } from './registry.ts'
import { execute } from '../duckdb/statements.ts'

/** Columns beside CONTRACT 7: an app's address, and the operator's action and reason. */
const NOTES = ['action', 'reason']

/**
 * Runs `work` with a database that holds the decoded registry.
 * @throws DataError if a file cannot be read, UsageError if there is no registry.
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

/** The violations that would stop a nightly run. */
export async function findFaults(connection: DuckDBConnection): Promise<string[]> {
  return [...(await findViolations(connection)), ...(await resolveAliases(connection))]
}
