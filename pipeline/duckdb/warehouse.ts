/**
 * The private warehouse, DATA_DIR/warehouse.duckdb. DuckDB's lock on the file is the lock of the run: a second run gets a
 * LockedOutError.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { existsSync, globSync, lstatSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { WAREHOUSE_FILE } from '../contract/files.ts'
import { DataError, LockedOutError, firstLineOf, heldLock, isShortage, messageOf } from '../errors.ts'
import { removeLeftovers } from '../snapshot/own-files.ts'
import { SPILL_PREFIX, openDatabase, type Database, type DatabaseSettings } from './database.ts'
import { literal, pathPattern } from './sql-values.ts'
import { execute, setVariables, transaction } from './statements.ts'

/**
 * Opens the warehouse and creates missing tables. What exceeds the memory limit is spilled beside the file.
 * @throws LockedOutError when another process has the file open; DataError if it is not a DuckDB file, or damaged.
 */
export async function openWarehouse({ dataDir, memory, spill }: DatabaseSettings): Promise<Database> {
  const path = join(dataDir, WAREHOUSE_FILE)
  const warehouse = await openFile(path, { memory_limit: memory }, spill)
  try {
    const { connection } = warehouse
    // Leftovers of a killed process; DuckDB clears them only when it spills again.
    rmSync(`${path}.tmp`, { recursive: true, force: true })
    removeLeftovers(dataDir, SPILL_PREFIX)
    await allowOnly(connection, dataDir)
    await setVariables(connection, { memory_limit: memory })
    await transaction(connection, () => execute(connection, 'warehouse.sql'))
    await execute(connection, 'values.sql')
    return warehouse
  } catch (error) {
    warehouse.close()
    explainFailure(path, error)
  }
}

/**
 * Runs `work` with the warehouse, read-only and without changing it; resolves to undefined if there is none yet.
 * @throws LockedOutError while a run is under way.
 */
export async function readWarehouse<T>(
  { dataDir, memory }: DatabaseSettings,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T | undefined> {
  const path = join(dataDir, WAREHOUSE_FILE)
  if (!existsSync(path)) return undefined
  using warehouse = await openFile(path, { memory_limit: memory, access_mode: 'READ_ONLY' })
  // All tables are created in one transaction: a first run that was stopped earlier left an empty file.
  const days = "FROM duckdb_tables() WHERE table_name = 'days'"
  const { currentRowCount } = await warehouse.connection.runAndReadAll(days)
  return currentRowCount === 0 ? undefined : await work(warehouse.connection)
}

/**
 * Runs `work` under the lock of a run, so that no snapshot appears or becomes current meanwhile.
 * @throws LockedOutError when a run is under way.
 */
export async function underLock<T>(config: DatabaseSettings, work: () => T): Promise<T> {
  using lock = new DisposableStack()
  lock.use(await openWarehouse(config))
  return work()
}

/** Where operators may put links to other disks and to producers' files. */
const LINKED = ['*', 'snapshots/*', 'raw/*', 'raw/apps/*', 'raw/usage/*', 'raw/usage/*/*']

/** Forbids all other files, extensions and the network to the database of a connection, until it is closed. */
async function allowOnly(connection: DuckDBConnection, dataDir: string): Promise<void> {
  // DuckDB resolves links before it compares; a broken link leads nowhere.
  const targets = globSync(LINKED, { cwd: dataDir })
    .map((name) => join(dataDir, name))
    .filter((path) => lstatSync(path).isSymbolicLink() && existsSync(path))
    .map((path) => realpathSync(path))
  const paths = [dataDir, realpathSync(dataDir), ...targets]
  // It compares a path as its reader received it: as a pattern.
  const literals = (ending: string) =>
    paths.flatMap((path) => [path, pathPattern(path)].map((each) => literal(`${each}${ending}`))).join(', ')
  await connection.run(`
    SET allowed_directories = [${literals('/')}];
    SET allowed_paths = [${literals('')}];
    SET enable_external_access = false`)
}

async function openFile(...[path, ...others]: Parameters<typeof openDatabase>): Promise<Database> {
  const isNew = !existsSync(path)
  try {
    return await openDatabase(path, ...others)
  } catch (error) {
    // On a full disk DuckDB leaves a file that no run can open.
    if (isNew && isShortage(error) && existsSync(path)) rmSync(realpathSync(path))
    explainFailure(path, error)
  }
}

function explainFailure(path: string, error: unknown): never {
  const held = heldLock(error)
  if (held !== undefined) {
    throw new LockedOutError(
      `${held}: another run is under way, or another program reads the warehouse. Nothing was changed; run again when ` +
        'it has finished',
      { cause: error },
    )
  }
  // Says nothing about the contents of the file.
  if (isShortage(error) || /permission denied/i.test(messageOf(error))) throw error
  throw new DataError(
    `Cannot open the warehouse ${path}: ${firstLineOf(error)}. If it is damaged, npm run nightly -- rebuild sets it ` +
      'aside and rebuilds it from raw/',
    { cause: error },
  )
}
