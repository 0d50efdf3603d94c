/** Raw input and warehouses of any size for the pipeline's part of the bench; app ids run from 1. */
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SUBCATEGORIES } from '../../../pipeline/contract/taxonomy.ts'
import { dateValue, literal } from '../../../pipeline/duckdb/sql-values.ts'
import { openWarehouse } from '../../../pipeline/duckdb/warehouse.ts'

/** The day of the raw files; earlier days are history. */
export const DAY = '2026-12-31'

async function inMemory(work: (connection: DuckDBConnection) => Promise<unknown>): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  try {
    await work(connection)
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** Path of the one Parquet file of a day. */
export function dayFile(dataDir: string, day: string): string {
  return join(dataDir, 'raw', 'usage', `date=${day}`, 'rows.parquet')
}

/** The model of a request: each app has a favourite and three rarer ones. */
const MODEL = "'acme/model-' || ((hash(app_id) + CAST(floor(4 * pow(random(), 3)) AS BIGINT)) % 40) AS model"

/** Writes a day of single requests: few apps with much traffic, many with little. */
export async function makeDay(
  dataDir: string,
  day: string,
  size: { readonly rows: number; readonly apps: number; readonly identified?: boolean },
): Promise<void> {
  const path = dayFile(dataDir, day)
  mkdirSync(dirname(path), { recursive: true })
  const identifier = size.identified ? ", 'request-' || i AS request_id" : ''
  await inMemory((connection) =>
    connection.run(`COPY (
      SELECT *, ${MODEL}
      FROM (
        SELECT TIMESTAMP '${day}' + to_milliseconds(CAST(hash(i) % 86400000 AS BIGINT)) AS ts,
          1 + CAST(${size.apps - 1} * pow(random(), 4) AS BIGINT) AS app_id,
          CAST(random() * 5000 AS BIGINT) AS prompt_tokens,
          CAST(random() * 1000 AS BIGINT) AS completion_tokens${identifier}
        FROM range(${size.rows}) AS t (i)
      )
    ) TO ${literal(path)} (FORMAT parquet)`),
  )
}

/** Writes aggregated raw days that end on `last`, a file each: one row per app and day. */
export async function makeHistory(
  dataDir: string,
  last: string,
  size: { readonly days: number; readonly apps: number; readonly requests: number },
): Promise<void> {
  await inMemory(async (connection) => {
    for (let back = size.days - 1; back >= 0; back -= 1) {
      const day = addDays(last, -back)
      const path = dayFile(dataDir, day)
      mkdirSync(dirname(path), { recursive: true })
      await connection.run(`COPY (
        SELECT TIMESTAMP '${day}' AS ts, a.app_id, ${size.requests} AS requests,
          CAST(random() * ${size.requests * 5000} AS BIGINT) AS prompt_tokens,
          CAST(random() * ${size.requests * 1000} AS BIGINT) AS completion_tokens
        FROM range(1, ${size.apps + 1}) AS a (app_id)
      ) TO ${literal(path)} (FORMAT parquet)`)
    }
  })
}

/** Writes a registry: most apps are public, some hidden or aliases, two in three have one or two tags. */
export async function makeRegistry(dataDir: string, apps: number): Promise<void> {
  const folder = join(dataDir, 'raw', 'apps')
  mkdirSync(folder, { recursive: true })
  const tags = SUBCATEGORIES.map(literal).join(', ')
  await inMemory((connection) =>
    connection.run(`COPY (
      SELECT i AS app_id, 'App ' || i AS app_name,
        CASE i % 20 WHEN 0 THEN 'hidden' WHEN 1 THEN 'private' ELSE 'public' END AS visibility,
        CASE WHEN i % 3 = 0 THEN [] ELSE list_distinct([[${tags}][1 + i % 15], 'legal']) END AS subcategories,
        CASE WHEN i % 50 = 7 THEN i - 5 END AS alias_of,
        TIMESTAMP '2025-01-01' AS updated_at
      FROM range(1, ${apps + 1}) AS t (i)
    ) TO ${literal(join(folder, 'registry.parquet'))} (FORMAT parquet)`),
  )
}

/**
 * Fills a warehouse without raw files: each app has usage on a quarter of the days. The order of the volumes
 * changes from day to day.
 */
export async function makeWarehouse(
  dataDir: string,
  memory: string,
  size: { readonly days: number; readonly apps: number },
): Promise<void> {
  const warehouse = await openWarehouse(dataDir, memory)
  const { connection } = warehouse
  try {
    for (let back = size.days - 1; back >= 0; back -= 1) {
      const day = dateValue(addDays(DAY, -back))
      await connection.run(
        `INSERT INTO usage_daily
         SELECT $1, i, 1 + i % 100, (h >> 8) % (100000000 // i + 5000), (h >> 24) % (20000000 // i + 1000)
         FROM (SELECT i, CAST(hash(i, ${back}) >> 2 AS BIGINT) AS h FROM range(1, ${size.apps + 1}) AS t (i))
         WHERE h % 4 = 0`,
        [day],
      )
    }
    await connection.run(
      `INSERT INTO days
       SELECT day, 'made', CAST(sum(prompt_tokens) AS VARCHAR), now(), count(*), 0, 0, 0,
         sum(prompt_tokens) + sum(completion_tokens), 0, 0, 0
       FROM usage_daily GROUP BY day`,
    )
  } finally {
    warehouse.close()
  }
}
