/**
 * The private warehouse, DATA_DIR/warehouse.duckdb, and the SQL files that work on it. DuckDB's lock on the
 * file is the lock of the run: a second run gets a LockedError.
 */
import { DuckDBDateValue, DuckDBInstance, DuckDBListValue, DuckDBTimestampTZValue } from '@duckdb/node-api'
import type { DuckDBConnection, DuckDBValue } from '@duckdb/node-api'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { Config } from './config.ts'
import { DataError, LockedError, firstLineOf, machineFault, messageOf } from './errors.ts'
import { clearSpilled } from './memory-database.ts'

export type Parameters = Readonly<Record<string, DuckDBValue>>

export type Warehouse = {
  readonly connection: DuckDBConnection
  /** Closes the file and so gives the lock back. */
  close(): void
}

/** Name of the private warehouse in DATA_DIR. */
export const WAREHOUSE_FILE = 'warehouse.duckdb'
const SQL_FOLDER = new URL('sql/', import.meta.url)

/** DuckDB has no error code for a held lock, only this sentence. */
const LOCK_HELD = /Could not set lock on file.*?(?:\(PID (\d+)\)|$)/s

/**
 * Opens the warehouse and makes its tables where they are missing.
 * @param memory DuckDB's memory limit, such as `2GB`; what does not fit is spilled beside the file.
 * @throws LockedError when another process has the file open; DataError when it is not a DuckDB file.
 */
export async function openWarehouse(dataDir: string, memory: string): Promise<Warehouse> {
  const path = join(dataDir, WAREHOUSE_FILE)
  const instance = await createInstance(path, { memory_limit: memory })
  // What a killed run or command had spilled; DuckDB itself clears it away only when it spills again.
  rmSync(`${path}.tmp`, { recursive: true, force: true })
  clearSpilled(dataDir)
  const warehouse = await connectTo(instance)
  try {
    await setVariables(warehouse.connection, { memory_limit: memory })
    for (const name of ['warehouse.sql', 'array-bits.sql', 'load/values.sql', 'load/judgement.sql']) {
      await execute(warehouse.connection, name)
    }
    return warehouse
  } catch (error) {
    warehouse.close()
    throw openingError(path, error)
  }
}

/**
 * Opens the warehouse read-only, as it is; undefined where there is none yet.
 * @throws LockedError while a run is under way.
 */
export async function openWarehouseToRead(dataDir: string, memory: string): Promise<Warehouse | undefined> {
  const path = join(dataDir, WAREHOUSE_FILE)
  if (!existsSync(path)) return undefined
  return connectTo(await createInstance(path, { memory_limit: memory, access_mode: 'READ_ONLY' }))
}

/**
 * Runs `work` under the lock of a run, so that no snapshot comes or becomes current meanwhile.
 * @throws LockedError when a run is under way.
 */
export async function underLock<T>(
  { dataDir, memory }: Pick<Config, 'dataDir' | 'memory'>,
  work: () => T,
): Promise<T> {
  const warehouse = await openWarehouse(dataDir, memory)
  try {
    return work()
  } finally {
    warehouse.close()
  }
}

async function connectTo(instance: DuckDBInstance): Promise<Warehouse> {
  const connection = await instance.connect()
  await connection.run("SET TimeZone = 'UTC'")
  return {
    connection,
    close() {
      connection.closeSync()
      instance.closeSync()
    },
  }
}

async function createInstance(path: string, options: Record<string, string>): Promise<DuckDBInstance> {
  try {
    // Nothing is downloaded at run time; what is needed is built in.
    return await DuckDBInstance.create(path, { ...options, autoinstall_known_extensions: 'false' })
  } catch (error) {
    throw openingError(path, error)
  }
}

function openingError(path: string, error: unknown): Error {
  const held = LOCK_HELD.exec(messageOf(error))
  if (held !== null) {
    const holder = held[1] === undefined ? 'Another process' : `Process ${held[1]}`
    return new LockedError(
      `${holder} has ${path} open: another run is under way, or somebody looks into the warehouse. ` +
        'Nothing was changed; run again when it has finished',
      { cause: error },
    )
  }
  const refused = machineFault(error, path)
  if (refused !== undefined) return refused
  return new DataError(
    `Cannot open the warehouse ${path}: ${firstLineOf(error)}. npm run nightly -- rebuild makes it anew from raw/`,
    { cause: error },
  )
}

/** A count in a decoded row: BIGINT arrives as text. */
export const countSchema = z.string().transform(Number)

/** The text of a file under sql/. */
export function sqlFile(name: string): string {
  return readFileSync(new URL(name, SQL_FOLDER), 'utf8')
}

/** Runs a SQL file: several statements without parameters, or one statement with `$name` parameters. */
export async function execute(
  connection: DuckDBConnection,
  name: string,
  parameters?: Parameters,
): Promise<void> {
  await connection.run(sqlFile(name), parameters && { ...parameters })
}

/** The rows of a SQL file's one query, decoded by a schema; BIGINT and larger arrive as decimal strings. */
export async function readRows<T>(
  connection: DuckDBConnection,
  name: string,
  schema: z.ZodType<T>,
  parameters?: Parameters,
): Promise<T[]> {
  return queryRows(connection, sqlFile(name), schema, parameters)
}

/** The one row of a SQL file's query. */
export async function readRow<T>(
  connection: DuckDBConnection,
  name: string,
  schema: z.ZodType<T>,
  parameters?: Parameters,
): Promise<T> {
  const [only] = await readRows(connection, name, schema, parameters)
  if (only === undefined) throw new Error(`${name} gave no row`)
  return only
}

/** The rows of a query that names a file or a database, which cannot be bound as parameters. */
export async function queryRows<T>(
  connection: DuckDBConnection,
  sql: string,
  schema: z.ZodType<T>,
  parameters?: Parameters,
): Promise<T[]> {
  const reader = await connection.runAndReadAll(sql, parameters && { ...parameters })
  return reader.getRowObjectsJson().map((row) => schema.parse(row))
}

/** Sets session variables, which SQL files read with getvariable(). */
export async function setVariables(connection: DuckDBConnection, values: Parameters): Promise<void> {
  for (const [name, value] of Object.entries(values)) {
    await connection.run(`SET VARIABLE ${identifier(name)} = $1`, [value])
  }
}

/**
 * Gives back to the system what DuckDB has freed, on the connection of an open warehouse: after a large sort some
 * hundred MB, which the allocator would keep beside the limit. DuckDB asks it to when the limit is set.
 */
export async function returnMemory(connection: DuckDBConnection): Promise<void> {
  await connection.run("SET memory_limit = getvariable('memory_limit')")
}

/** A UTC day, `YYYY-MM-DD`, as DuckDB DATE. */
export function dateValue(day: string): DuckDBDateValue {
  return new DuckDBDateValue(Date.parse(`${day}T00:00:00Z`) / 86_400_000)
}

/** Texts as DuckDB list. */
export function listValue(texts: readonly string[]): DuckDBListValue {
  return new DuckDBListValue([...texts])
}

/** A time as DuckDB TIMESTAMPTZ. */
export function timeValue(time: Date): DuckDBTimestampTZValue {
  return new DuckDBTimestampTZValue(BigInt(time.getTime()) * 1000n)
}

/** Runs `work` in a transaction that is rolled back when it throws. */
export async function transaction<T>(connection: DuckDBConnection, work: () => Promise<T>): Promise<T> {
  await connection.run('BEGIN')
  try {
    const result = await work()
    await connection.run('COMMIT')
    return result
  } catch (error) {
    // A failed COMMIT, on a full disk for instance, has rolled back already; the first fault is the one to tell.
    await connection.run('ROLLBACK').catch(() => undefined)
    throw error
  }
}

/** A text as SQL literal, for the few places where DuckDB takes no parameter. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** An identifier for SQL, quoted. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
