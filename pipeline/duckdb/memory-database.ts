/** Databases in memory, which need no lock, and what spills from a database to disk. */
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { ownPath } from '../snapshot/own-files.ts'
import { literal } from './sql-values.ts'
import { queryRows } from './statements.ts'

/** Prefix of the temporary folders in DATA_DIR. */
export const SPILL_PREFIX = '.spilled-'

/**
 * Stops DuckDB from installing or loading extensions by itself, for a file of another database for instance; all that
 * are required are built in.
 */
export const NO_EXTENSIONS = {
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
}

type MemoryConfig = Pick<Config, 'memory' | 'dataDir'> & Partial<Pick<Config, 'spill'>>

/**
 * Opens an in-memory DuckDB, which needs no warehouse lock, until the end of the scope. Beyond its memory limit it spills into
 * DATA_DIR.
 */
export async function openMemoryDatabase({
  memory,
  dataDir,
  spill,
}: MemoryConfig): Promise<AsyncDisposable & { readonly connection: DuckDBConnection }> {
  await using resources = new AsyncDisposableStack()
  // The default is the working directory, which other databases may share.
  const spilled = resources.use(ownPath(dataDir, SPILL_PREFIX))
  const instance = await DuckDBInstance.create(':memory:', {
    memory_limit: memory,
    temp_directory: spilled.path,
    ...NO_EXTENSIONS,
  })
  resources.defer(() => instance.closeSync())
  const connection = await instance.connect()
  resources.defer(() => connection.closeSync())
  await connection.run("SET TimeZone = 'UTC'")
  await limitSpill(connection, spill)
  const open = resources.move()
  return { connection, [Symbol.asyncDispose]: () => open.disposeAsync() }
}

/** Runs `work` with such a database. */
export async function withMemoryDatabase<T>(
  config: MemoryConfig,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  await using database = await openMemoryDatabase(config)
  return await work(database.connection)
}

/** Limits what a database spills to disk; DuckDB's default is nine tenths of the free space. */
export async function limitSpill(connection: DuckDBConnection, spill: string | undefined): Promise<void> {
  // DuckDB accepts it as an option of a new database, but ignores it.
  if (spill !== undefined) await connection.run(`SET max_temp_directory_size = ${literal(spill)}`)
}

const settingRow = z.object({ folder: z.string() })

/** The path of a new file in the folder of spilled rows, which is cleared after a kill; the caller removes the file. */
export async function scratchPath(connection: DuckDBConnection): Promise<string> {
  const sql = "SELECT current_setting('temp_directory') AS folder"
  const [{ folder } = { folder: '' }] = await queryRows(connection, sql, settingRow)
  mkdirSync(folder, { recursive: true })
  return join(folder, `scratch-${randomUUID()}`)
}
