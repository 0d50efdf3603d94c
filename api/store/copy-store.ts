/** Copies a whole store into an empty one: every table of the migrations. */
import { z } from 'zod'
import { OperatorError } from '../http/errors.ts'
import { appliedMigrations, LEDGER, migrationFiles, updateSchema } from './schema.ts'
import { openSqlite } from './sqlite-store.ts'
import type { Queries, Store } from './store.ts'

export interface CopiedTable {
  readonly name: string
  readonly rows: number
}

interface Table {
  readonly name: string
  readonly columns: readonly string[]
  /** The tables that its rows reference. */
  readonly parents: readonly string[]
}

const TABLES = `
  SELECT t.name,
    (SELECT json_group_array(name) FROM pragma_table_info(t.name)) AS columns,
    (SELECT json_group_array("table") FROM pragma_foreign_key_list(t.name)) AS parents
  FROM sqlite_schema AS t
  WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite~_%' ESCAPE '~' AND t.name <> $1
  ORDER BY t.name`

const namesSchema = z.string().transform((text) => z.array(z.string()).parse(JSON.parse(text)))
const tableSchema = z.object({ name: z.string(), columns: namesSchema, parents: namesSchema })
const rowSchema = z.record(z.string(), z.union([z.string(), z.number(), z.null()]))

// Both databases allow more parameters per statement.
const VALUES_PER_STATEMENT = 10_000

/**
 * Copies all rows of `source` into `target`, in one transaction, and leaves the source unchanged. The target has the
 * tables of all migrations, without rows.
 * @throws {OperatorError} if the source's tables are not up to date or the target holds rows.
 */
export async function copyStore(source: Store, target: Store): Promise<readonly CopiedTable[]> {
  await refuseOtherSchema(source)
  const tables = parentsFirst(await listTables())
  return await target.transaction(async (to) => {
    await refuseRows(to, tables)
    return await source.transaction(async (from) => {
      const copied: CopiedTable[] = []
      for (const table of tables) copied.push(await copyTable(from, to, table))
      return copied
    })
  })
}

async function refuseOtherSchema(source: Store): Promise<void> {
  const [applied, known] = [await appliedMigrations(source), migrationFiles()]
  const missing = known.filter((name) => !applied.includes(name))
  const unknown = applied.filter((name) => !known.includes(name))
  if (missing.length > 0) {
    const remedy = 'start the service on it once to apply them'
    throw new OperatorError(`The source lacks the migrations ${missing.join(', ')}: ${remedy}`)
  }
  if (unknown.length > 0) {
    throw new OperatorError(
      `The source has migrations of a newer version (${unknown.join(', ')}): update this installation first`,
    )
  }
}

async function refuseRows(target: Queries, tables: readonly Table[]): Promise<void> {
  for (const { name } of tables) {
    const rows = await countRows(target, name)
    if (rows > 0) {
      throw new OperatorError(`The target already holds data (${name}: ${rows}): name an empty one`)
    }
  }
}

// Every store has the same tables, so an in-memory one lists them.
async function listTables(): Promise<readonly Table[]> {
  const store = await openSqlite(':memory:')
  try {
    await updateSchema(store, new Date(0))
    return z.array(tableSchema).parse(await store.query(TABLES, [LEDGER]))
  } finally {
    await store.close()
  }
}

function parentsFirst(tables: readonly Table[]): readonly Table[] {
  const ordered: Table[] = []
  const waiting = new Set(tables)
  while (waiting.size > 0) {
    const isWaitedFor = (name: string) => [...waiting].some((other) => other.name === name)
    const next = [...waiting].find(({ name, parents }) => !parents.some((p) => p !== name && isWaitedFor(p)))
    if (next === undefined) throw new Error('The tables refer to one another in a circle')
    waiting.delete(next)
    ordered.push(next)
  }
  return ordered
}

async function copyTable(from: Queries, to: Queries, { name, columns }: Table): Promise<CopiedTable> {
  const list = columns.map((column) => `"${column}"`).join(', ')
  const rows = z.array(rowSchema).parse(await from.query(`SELECT ${list} FROM "${name}"`))
  const perStatement = Math.floor(VALUES_PER_STATEMENT / columns.length)
  for (let first = 0; first < rows.length; first += perStatement) {
    const part = rows.slice(first, first + perStatement)
    const values = part.flatMap((row) => columns.map((column) => row[column] ?? null))
    await to.query(
      `INSERT INTO "${name}" (${list}) VALUES ${placeholders(part.length, columns.length)}`,
      values,
    )
  }
  const arrived = await countRows(to, name)
  if (arrived !== rows.length) {
    throw new Error(`Only ${arrived} of ${rows.length} rows of ${name} arrived: nothing was copied`)
  }
  return { name, rows: rows.length }
}

// ($1, $2), ($3, $4) …
function placeholders(rows: number, columns: number): string {
  const row = (index: number) =>
    Array.from({ length: columns }, (_, column) => `$${index * columns + column + 1}`).join(', ')
  return Array.from({ length: rows }, (_, index) => `(${row(index)})`).join(', ')
}

async function countRows(queries: Queries, table: string): Promise<number> {
  const [row] = await queries.query(`SELECT count(*) AS rows FROM "${table}"`)
  return z.object({ rows: z.number() }).parse(row).rows
}
