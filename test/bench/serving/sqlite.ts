/** The usual alternative: the same daily rows and windows in SQLite. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { DuckDBInstance } from '@duckdb/node-api'
import { z } from 'zod'
import { type Sort } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { percentile, timed } from '../measure.ts'
import { KINDS, nameOf, windowsOf } from './windows.ts'

// Ordered by its key, the table is its own covering index on (day, app_id).
const TABLES = `
  CREATE TABLE apps (app_id INTEGER PRIMARY KEY, app_name TEXT NOT NULL);
  CREATE TABLE app_daily (
    day INTEGER, app_id INTEGER, requests INTEGER, prompt_tokens INTEGER, completion_tokens INTEGER,
    PRIMARY KEY (day, app_id)
  ) WITHOUT ROWID;`

const POPULAR = `
  SELECT d.app_id, a.app_name, sum(d.requests) AS total_requests,
    sum(d.prompt_tokens + d.completion_tokens) AS total_tokens
  FROM app_daily AS d JOIN apps AS a ON a.app_id = d.app_id
  WHERE d.day BETWEEN $first AND $last
  GROUP BY d.app_id
  ORDER BY total_tokens DESC, d.app_id LIMIT 100`

const TRENDING = `
  SELECT d.app_id, a.app_name, sum(d.requests) FILTER (WHERE d.day >= $first) AS total_requests,
    sum(d.prompt_tokens + d.completion_tokens) FILTER (WHERE d.day >= $first) AS total_tokens,
    sum((d.prompt_tokens + d.completion_tokens) * CASE WHEN d.day >= $first THEN 3 ELSE -1 END) AS triple_excess
  FROM app_daily AS d JOIN apps AS a ON a.app_id = d.app_id
  WHERE d.day BETWEEN $first - 3 * ($last - $first + 1) AND $last
  GROUP BY d.app_id
  HAVING triple_excess > 0 AND total_requests > 0
  ORDER BY triple_excess DESC, total_tokens DESC, d.app_id LIMIT 100`

const SQL: Readonly<Record<Sort, string>> = { popular: POPULAR, trending: TRENDING }

const metaSchema = z.tuple([z.object({ firstDay: z.string(), dataThrough: z.string() })])
const firstRowSchema = z.object({ app_id: z.number() })
const BATCH = 100

/** Copies the current snapshot's rows into SQLite and queries `count` windows of each kind without filter. */
export async function measureSqlite(dataDir: string, count: number): Promise<Record<string, number>> {
  const file = join(dataDir, 'plain.sqlite')
  const instance = await DuckDBInstance.create(join(dataDir, 'current', SNAPSHOT_FILE), {
    access_mode: 'READ_ONLY',
  })
  const database = new DatabaseSync(file)
  try {
    database.exec(
      `PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -500000; ${TABLES}`,
    )
    await copyRows(instance, database, { into: 'apps', columns: 'app_id, app_name', width: 2 })
    const daily = "day - DATE '1970-01-01' AS day, app_id, requests, prompt_tokens, completion_tokens"
    await copyRows(instance, database, { into: 'app_daily', columns: daily, width: 5 })
    return await askAll(database, await readDays(instance), count)
  } finally {
    database.close()
    rmSync(file)
  }
}

interface Copy {
  readonly into: string
  readonly columns: string
  readonly width: number
}

/** In key order, the fastest for SQLite. */
async function copyRows(
  instance: DuckDBInstance,
  database: DatabaseSync,
  { into, columns, width }: Copy,
): Promise<void> {
  const connection = await instance.connect()
  const result = await connection.stream(`SELECT ${columns} FROM ${into} ORDER BY ALL`)
  const row = `(${Array.from({ length: width }, () => '?').join(', ')})`
  const insert = (rows: number) =>
    database.prepare(`INSERT INTO ${into} VALUES ${Array.from({ length: rows }, () => row).join(', ')}`)
  const many = insert(BATCH)
  const one = insert(1)
  database.exec('BEGIN')
  for await (const rows of result.yieldRowsJs()) {
    const values = rows.map((each) =>
      each.map((value) => (typeof value === 'string' ? value : Number(value))),
    )
    let done = 0
    for (; done + BATCH <= values.length; done += BATCH) many.run(...values.slice(done, done + BATCH).flat())
    for (const rest of values.slice(done)) one.run(...rest)
  }
  database.exec('COMMIT')
  connection.closeSync()
}

async function readDays(instance: DuckDBInstance): Promise<z.infer<typeof metaSchema>[0]> {
  const connection = await instance.connect()
  const reader = await connection.runAndReadAll(
    'SELECT CAST(first_day AS VARCHAR) AS "firstDay", CAST(data_through AS VARCHAR) AS "dataThrough" FROM meta',
  )
  return metaSchema.parse(reader.getRowObjectsJS())[0]
}

async function askAll(
  database: DatabaseSync,
  days: { readonly firstDay: string; readonly dataThrough: string },
  count: number,
): Promise<Record<string, number>> {
  const figures: Record<string, number> = {}
  for (const kind of KINDS.filter(({ filter }) => filter === 'none')) {
    const statement = database.prepare(SQL[kind.sort])
    const taken: number[] = []
    for (const { start, end } of windowsOf(kind, { ...days, count })) {
      const values = { first: dayNumber(start), last: dayNumber(end) }
      taken.push(await timed(async () => void firstRowSchema.parse(statement.all(values)[0])))
    }
    figures[`${nameOf(kind)}.sqlite`] = percentile(taken, 0.5)
  }
  return figures
}

function dayNumber(day: string): number {
  return Date.parse(day) / 86_400_000
}
