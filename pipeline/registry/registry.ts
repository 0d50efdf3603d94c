/** Reads and validates the app registry, raw/apps, in DuckDB, for the nightly run and `npm run apps`. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { join } from 'node:path'
import { z } from 'zod'
import { FIRST_APP_ID } from '../contract/app-identity.ts'
import { UNATTRIBUTED_APP_ID } from '../contract/dataset.ts'
import { RAW_FOLDER } from '../contract/files.ts'
import { SUBCATEGORIES } from '../contract/taxonomy.ts'
import { UsageError } from '../program/program.ts'
import type { Config } from '../config.ts'
import { withMemoryDatabase } from '../duckdb/memory-database.ts'
import { listValue } from '../duckdb/sql-values.ts'
import { execute, readRows, setVariables } from '../duckdb/statements.ts'
import type { Columns } from '../sources/columns.ts'
import { listRegistryFiles } from '../sources/drop-folder.ts'
import { nameApps } from '../sources/names.ts'
import { createStagingTable, stageFiles } from '../sources/staging.ts'

/** The columns of the registry (CONTRACT 7). */
const REGISTRY_COLUMNS: Columns = {
  required: ['app_id', 'visibility', 'updated_at'],
  optional: ['app', 'app_name', 'subcategories', 'alias_of', 'referer', 'registered_at', 'account_id'],
  alternative: { app_id: 'app' },
  lists: ['subcategories'],
}

const textRow = z.object({ app: z.string() })
const violationRow = z.object({ file: z.string(), row: z.int(), reason: z.string() })
const aliasRow = z.object({ violation: z.string() })

/** Columns beside CONTRACT 7 for `npm run apps`: the operator's action and reason. */
const NOTES = ['action', 'reason']

/**
 * Runs `work` with a separate database, without a lock, that holds the registry decoded as the next nightly run would.
 * @throws DataError if a file cannot be read, UsageError if there is no registry.
 */
export async function withRegistry<T>(
  config: Config,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  const rawFolder = join(config.dataDir, RAW_FOLDER)
  return await withMemoryDatabase(config, async (connection) => {
    for (const name of ['warehouse.sql', 'values.sql']) await execute(connection, name)
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

/**
 * Reads every file of the registry into the temporary table `staged`, with the `further` columns if a file has them.
 * @returns the number of files.
 * @throws DataError that names a file which cannot be read.
 */
export async function stageRegistry(
  connection: DuckDBConnection,
  rawFolder: string,
  further: readonly string[] = [],
): Promise<number> {
  const columns = { ...REGISTRY_COLUMNS, optional: [...REGISTRY_COLUMNS.optional, ...further] }
  const files = listRegistryFiles(rawFolder)
  await createStagingTable(connection, columns)
  await stageFiles(connection, files, columns)
  return files.length
}

/** Reads one file of the registry again, below raw/, instead of its rows in the table `staged`. */
export async function stageAgain(
  connection: DuckDBConnection,
  rawFolder: string,
  name: string,
): Promise<void> {
  await connection.run('DELETE FROM staged WHERE file = $1', [name])
  const files = listRegistryFiles(rawFolder).filter((file) => file.name === name)
  await stageFiles(connection, files, REGISTRY_COLUMNS)
}

/** Decodes `staged` into the temporary table `registry_rows`, and the winning rows into the table `registry`. */
export async function decodeRegistry(connection: DuckDBConnection): Promise<void> {
  await setVariables(connection, { first_app_id: BigInt(FIRST_APP_ID) })
  const named = await readRows(connection, 'resolve.sql#name-texts', textRow)
  await nameApps(
    connection,
    named.map(({ app }) => app),
  )
  await execute(connection, 'resolve.sql#registry')
}

/** The violations of single rows of a decoded registry, with file and row. */
export async function findViolations(connection: DuckDBConnection): Promise<string[]> {
  const violations = await readRows(connection, 'resolve.sql#violations', violationRow, {
    subcategories: listValue(SUBCATEGORIES),
    unattributed: UNATTRIBUTED_APP_ID,
    replacement: '\uFFFD',
  })
  return violations.map(({ file, row, reason }) => `${file}, row ${row}: ${reason}`)
}

/** Resolves the aliases of a decoded registry into the table `resolved`; returns the aliases that lead nowhere. */
export async function resolveAliases(connection: DuckDBConnection): Promise<string[]> {
  const violations = await readRows(connection, 'resolve.sql#aliases', aliasRow)
  return violations.map(({ violation }) => violation)
}
