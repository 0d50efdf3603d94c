/** Reads and validates the app registry, raw/apps, in DuckDB, for the nightly run and `npm run apps`. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { join } from 'node:path'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { FIRST_APP_ID } from '../contract/app-identity.ts'
import { UNATTRIBUTED_APP_ID } from '../contract/dataset.ts'
import { RAW_FOLDER } from '../contract/files.ts'
import { SUBCATEGORIES } from '../contract/taxonomy.ts'
import { withMemoryDatabase } from '../duckdb/database.ts'
import { listValue } from '../duckdb/sql-values.ts'
import { execute, readRows, setVariables } from '../duckdb/statements.ts'
import { UsageError } from '../program/program.ts'
import type { Columns } from '../sources/columns.ts'
import { listFiles } from '../sources/drop-folder.ts'
import { appTextRow, nameApps } from '../sources/names.ts'
import { createStagingTable, stageFiles } from '../sources/staging.ts'

/** The columns of the registry (CONTRACT 7). */
const REGISTRY_COLUMNS: Columns = {
  required: ['app_id', 'visibility', 'updated_at'],
  optional: ['app', 'app_name', 'subcategories', 'alias_of', 'referer', 'registered_at', 'account_id'],
}

const violationRow = z.object({ file: z.string(), row: z.int(), reason: z.string() })
const strandedRow = z.object({ app_id: z.string(), alias_of: z.string(), is_known: z.boolean() })

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
    if (files === 0)
      throw new UsageError(
        `There is no app registry under ${rawFolder}/apps: put a file there, or set DATA_DIR to the folder of the service`,
      )
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
  const files = listFiles(rawFolder, 'apps')
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
  const files = listFiles(rawFolder, 'apps').filter((file) => file.name === name)
  await stageFiles(connection, files, REGISTRY_COLUMNS)
}

/** Decodes `staged` into the temporary table `registry_rows`, and the winning rows into the table `registry`. */
export async function decodeRegistry(connection: DuckDBConnection): Promise<void> {
  await setVariables(connection, { first_app_id: BigInt(FIRST_APP_ID) })
  await nameApps(connection, await readRows(connection, 'resolve.sql#name-texts', appTextRow))
  await execute(connection, 'resolve.sql#registry')
}

/** The violations of single rows of a decoded registry, with file and row. */
export async function findViolations(connection: DuckDBConnection): Promise<string[]> {
  const violations = await readRows(connection, 'resolve.sql#violations', violationRow, {
    subcategories: listValue(SUBCATEGORIES),
    unattributed: UNATTRIBUTED_APP_ID,
  })
  return violations.map(({ file, row, reason }) => `${file}, row ${row}: ${reason}`)
}

/** Resolves the aliases of a decoded registry into the table `resolved`; returns the aliases that lead nowhere. */
export async function resolveAliases(connection: DuckDBConnection): Promise<string[]> {
  await execute(connection, 'resolve.sql#aliases')
  const stranded = await readRows(connection, 'resolve.sql#stranded', strandedRow)
  const unknown = stranded
    .filter(({ is_known }) => !is_known)
    .map(({ app_id, alias_of }) => `alias_of of app ${app_id} names the unknown app ${alias_of}`)
  const circles = circlesOf(new Map(stranded.map(({ app_id, alias_of }) => [app_id, alias_of])))
  const round = circles.map((path) => `aliases go round in a circle: ${[...path, path[0]].join(' -> ')}`)
  return [...unknown, ...round].toSorted()
}

/**
 * The circles of aliases, each once and from its smallest app on.
 * @param aliases the alias of each app, in the order of the apps.
 */
function circlesOf(aliases: ReadonlyMap<string, string>): string[][] {
  const seen = new Set<string>()
  return [...aliases.keys()].flatMap((start) => {
    const path: string[] = []
    let app: string | undefined = start
    while (app !== undefined && !seen.has(app)) {
      seen.add(app)
      path.push(app)
      app = aliases.get(app)
    }
    const entry = app === undefined ? -1 : path.indexOf(app)
    if (entry === -1) return []
    const circle = path.slice(entry)
    const smallest = circle.reduce((least, each) => (BigInt(each) < BigInt(least) ? each : least))
    const at = circle.indexOf(smallest)
    return [[...circle.slice(at), ...circle.slice(0, at)]]
  })
}
