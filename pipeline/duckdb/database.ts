/** Opens databases: in memory, which needs no lock, or a file; and what spills from one to disk. */
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { Config } from '../config.ts'
import { ownPath } from '../snapshot/own-files.ts'
import { literal } from './sql-values.ts'
import { queryRows } from './statements.ts'

/** DATA_DIR, and how much memory and disk DuckDB may use. */
export type DatabaseSettings = Pick<Config, 'dataDir' | 'memory'> & Partial<Pick<Config, 'spill'>>

/** Prefix of the temporary folders in DATA_DIR. */
export const SPILL_PREFIX = '.spilled-'

/** An open database and its connection; disposing it closes both, and so releases the lock of a file. */
export type Database = Disposable & { readonly connection: DuckDBConnection; readonly close: () => void }

/**
 * Opens a database with times in UTC. It installs and loads no extension by itself, for a file of another database for
 * instance; all that are required are built in.
 * @param spill most bytes to spill to disk; undefined for DuckDB's default, nine tenths of the free space.
 */
export async function openDatabase(
  path: string,
  options: Readonly<Record<string, string>>,
  spill?: string,
): Promise<Database> {
  const instance = await DuckDBInstance.create(path, {
    ...options,
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
  })
  const connection = await instance.connect()
  const close = () => {
    connection.closeSync()
    instance.closeSync()
  }
  await connection.run("SET TimeZone = 'UTC'")
  // DuckDB accepts it as an option of a new database, but ignores it.
  if (spill !== undefined) await connection.run(`SET max_temp_directory_size = ${literal(spill)}`)
  return { connection, close, [Symbol.dispose]: close }
}

/** Runs `work` with a database in memory. Beyond its memory limit it spills into DATA_DIR. */
export async function withMemoryDatabase<T>(
  { memory, dataDir, spill }: DatabaseSettings,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  // The default is the working directory, which other databases may share.
  using spilled = ownPath(dataDir, SPILL_PREFIX)
  const options = { memory_limit: memory, temp_directory: spilled.path }
  using database = await openDatabase(':memory:', options, spill)
  return await work(database.connection)
}

const settingRow = z.object({ folder: z.string() })

/** The path of a new file in the folder of spilled rows, which is cleared after a kill; the caller removes the file. */
export async function scratchPath(connection: DuckDBConnection): Promise<string> {
  const sql = "SELECT current_setting('temp_directory') AS folder"
  const [{ folder } = { folder: '' }] = await queryRows(connection, sql, settingRow)
  mkdirSync(folder, { recursive: true })
  return join(folder, `scratch-${randomUUID()}`)
}
