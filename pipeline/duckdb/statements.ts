/** Runs SQL on a connection: the files of sql/, and a few generated statements. */
import type { DuckDBAppender, DuckDBConnection, DuckDBValue } from '@duckdb/node-api'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { identifier } from './sql-values.ts'

type Bindings = Readonly<Record<string, DuckDBValue>>

const SQL_FOLDER = new URL('../sql/', import.meta.url)

/** A count in a decoded row: BIGINT arrives as text. */
export const countSchema = z.string().transform(Number)

/** The text of a file under sql/, or, as `file.sql#name`, one of its statements. */
export function sqlFile(path: string): string {
  const [file = '', name] = path.split('#')
  if (name === undefined) return readFileSync(new URL(file, SQL_FOLDER), 'utf8')
  const statement = sqlSections(file).get(name)
  if (statement === undefined) throw new Error(`${file} has no statement ${name}`)
  return statement
}

/** The statements of a file under sql/, by name, in their order: each starts below a line `-- name: …`. */
export function sqlSections(file: string): ReadonlyMap<string, string> {
  const parts = sqlFile(file)
    .split(/^-- name: (.*)\n/m)
    .slice(1)
  return new Map(parts.flatMap((name, at) => (at % 2 === 0 ? [[name, parts[at + 1] ?? '']] : [])))
}

/** Runs a SQL file: several statements without parameters, or one statement with `$name` parameters. */
export async function execute(
  connection: DuckDBConnection,
  name: string,
  parameters?: Bindings,
): Promise<void> {
  await connection.run(sqlFile(name), parameters && { ...parameters })
}

/** The rows of a SQL file's only query, decoded by a schema; BIGINT and larger arrive as decimal strings. */
export async function readRows<T>(
  connection: DuckDBConnection,
  name: string,
  schema: z.ZodType<T>,
  parameters?: Bindings,
): Promise<T[]> {
  return queryRows(connection, sqlFile(name), schema, parameters)
}

/** The only row of a SQL file's query. */
export async function readRow<T>(...query: Parameters<typeof readRows<T>>): Promise<T> {
  const [only] = await readRows(...query)
  if (only === undefined) throw new Error(`${query[1]} returned no row`)
  return only
}

/** The rows of a query with the name of a file or a database, which cannot be a parameter. */
export async function queryRows<T>(
  connection: DuckDBConnection,
  sql: string,
  schema: z.ZodType<T>,
  parameters?: Bindings,
): Promise<T[]> {
  const reader = await connection.runAndReadAll(sql, parameters && { ...parameters })
  return reader.getRowObjectsJson().map((row) => schema.parse(row))
}

/** Sets session variables, which SQL files read with getvariable(). */
export async function setVariables(connection: DuckDBConnection, values: Bindings): Promise<void> {
  for (const [name, value] of Object.entries(values)) {
    await connection.run(`SET VARIABLE ${identifier(name)} = $1`, [value])
  }
}

/**
 * Returns memory that DuckDB has freed to the system; the connection is to an open warehouse. After a large sort the
 * allocator would keep some hundred MB beyond the limit. Setting the limit again makes it release them.
 */
export async function returnMemory(connection: DuckDBConnection): Promise<void> {
  await connection.run("SET memory_limit = getvariable('memory_limit')")
}

/**
 * Appends rows to a temporary table while `work` runs. If it fails, DuckDB's buffered rows are discarded; rows that are
 * already in the table stay.
 */
export async function withAppender(
  connection: DuckDBConnection,
  table: string,
  work: (appender: DuckDBAppender) => Promise<void>,
): Promise<void> {
  const appender = await connection.createAppender(table, 'main', 'temp')
  try {
    await work(appender)
    appender.closeSync()
  } catch (error) {
    // Otherwise the garbage collector would flush them by table name: into the table of the next day.
    appender.clear()
    throw error
  }
}

/** Runs `work` as one transaction; rolls back if it throws. */
export async function transaction<T>(connection: DuckDBConnection, work: () => Promise<T>): Promise<T> {
  await connection.run('BEGIN')
  try {
    const result = await work()
    await connection.run('COMMIT')
    return result
  } catch (error) {
    // A failed COMMIT, on a full disk for instance, has already rolled back; the first error is the one to report.
    await connection.run('ROLLBACK').catch(() => undefined)
    throw error
  }
}
