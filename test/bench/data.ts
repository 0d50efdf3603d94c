/** Raw input, registries and warehouses of any size; app ids run from 1. */
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { addDays } from '../../pipeline/contract/calendar.ts'
import { SUBCATEGORIES } from '../../pipeline/contract/taxonomy.ts'
import { dateValue, literal } from '../../pipeline/duckdb/sql-values.ts'
import { openWarehouse } from '../../pipeline/duckdb/warehouse.ts'
import { withDatabase, writeParquet } from '../support/pipeline/nightly.ts'

/** The last day of the data. */
export const LAST_DAY = '2026-12-31'

/** 02:00 UTC after the day is over. */
export function nightAfter(day: string): string {
  return `${addDays(day, 1)}T02:00:00Z`
}

/** Path of the one file of a day. */
function dayFile(dataDir: string, day: string, name = 'rows.parquet'): string {
  return join(dataDir, 'raw', 'usage', `date=${day}`, name)
}

/** The model of a request: each app has a favourite and three rarer ones. */
const MODEL = "'acme/model-' || ((hash(app_id) + CAST(floor(4 * pow(random(), 3)) AS BIGINT)) % 40) AS model"

/** Rows and apps of a day, and whether each row has a request_id. */
export type DaySize = { readonly rows: number; readonly apps: number; readonly identified?: boolean }

/** Single requests of a day: few apps with much traffic, many with little. */
function requestsOf(day: string, size: DaySize): string {
  const identifier = size.identified ? ", 'request-' || i AS request_id" : ''
  return `
    SELECT *, ${MODEL}
    FROM (
      SELECT TIMESTAMP '${day}' + to_milliseconds(CAST(hash(i) % 86400000 AS BIGINT)) AS ts,
        1 + CAST(${size.apps - 1} * pow(random(), 4) AS BIGINT) AS app_id,
        CAST(random() * 5000 AS BIGINT) AS prompt_tokens,
        CAST(random() * 1000 AS BIGINT) AS completion_tokens${identifier}
      FROM range(${size.rows}) AS t (i)
    )`
}

/** How a day of single requests is written: its file, its columns, and the options of COPY. */
const KINDS = {
  parquet: { name: 'rows.parquet', columns: '*', options: '(FORMAT parquet)' },
  csv: { name: 'rows.csv.gz', columns: '*', options: '(FORMAT csv, COMPRESSION gzip)' },
  /** As data warehouses unload it: times in UTC, numbers without a size. */
  unloaded: {
    name: 'rows.parquet',
    columns: `make_timestamptz(epoch_us(ts)) AS ts, model,
      ${['app_id', 'prompt_tokens', 'completion_tokens'].map((column) => `CAST(${column} AS DECIMAL(38, 0)) AS ${column}`).join(', ')}`,
    options: '(FORMAT parquet)',
  },
  /** As pandas writes times in UTC, and counts where some are missing. */
  pandas: {
    name: 'rows.csv.gz',
    columns: `strftime(ts, '%Y-%m-%d %H:%M:%S.%f+00:00') AS ts, app_id, model,
      prompt_tokens || '.0' AS prompt_tokens, completion_tokens || '.0' AS completion_tokens`,
    options: '(FORMAT csv, COMPRESSION gzip)',
  },
  /** Chat's usage records, as `api/chat/records.ts` writes them; apps have addresses. */
  records: {
    name: 'chat.ndjson',
    columns: `strftime(ts, '%Y-%m-%dT%H:%M:%S.%gZ') AS ts, CAST(uuid() AS VARCHAR) AS request_id,
      'https://app-' || app_id || '.example' AS app, 'App ' || app_id AS app_title, 'cli-agent' AS app_categories,
      prompt_tokens, completion_tokens, 0 AS reasoning_tokens, 0 AS cached_tokens, 1 AS requests, model, 'acme' AS provider,
      'account-' || app_id % 50 AS account_id, true AS stream, 200 AS status, 'completed' AS outcome,
      NULL AS usage_missing, 310 AS first_token_ms, 2100 AS duration_ms,
      [{model: model, provider: 'acme', status: 200, error_type: NULL, duration_ms: 2090}] AS attempts`,
    options: '(FORMAT json)',
  },
} as const
export type DayKind = keyof typeof KINDS

/** Writes a day of single requests. Resolves to the file. */
export async function makeDay(
  dataDir: string,
  day: string,
  size: DaySize,
  kind: DayKind = 'parquet',
): Promise<string> {
  const { name, columns, options } = KINDS[kind]
  const file = dayFile(dataDir, day, name)
  mkdirSync(dirname(file), { recursive: true })
  const rows = `SELECT ${columns} FROM (${requestsOf(day, size)})`
  await withDatabase((connection) => connection.run(`COPY (${rows}) TO ${literal(file)} ${options}`))
  return file
}

/** Writes aggregated raw days that end on the last day, a file each: one row per app and day. */
export async function makeHistory(
  dataDir: string,
  size: { readonly days: number; readonly apps: number; readonly requests: number },
): Promise<void> {
  for (let back = size.days - 1; back >= 0; back -= 1) {
    const day = addDays(LAST_DAY, -back)
    const rows = `
      SELECT TIMESTAMP '${day}' AS ts, a.app_id, ${size.requests} AS requests,
        CAST(random() * ${size.requests * 5000} AS BIGINT) AS prompt_tokens,
        CAST(random() * ${size.requests * 1000} AS BIGINT) AS completion_tokens
      FROM range(1, ${size.apps + 1}) AS a (app_id)`
    await writeParquet(dayFile(dataDir, day), rows)
  }
}

/** Two apps in three have one or two tags. */
const tags = SUBCATEGORIES.map(literal).join(', ')
const anyTag = (salt: number) => `[${tags}][1 + CAST(hash(i, ${salt}) % ${SUBCATEGORIES.length} AS INTEGER)]`

/** Writes a registry; unless all are public, some apps are hidden or aliases. */
export async function makeRegistry(dataDir: string, apps: number, allPublic = false): Promise<void> {
  const someHidden = "CASE i % 20 WHEN 0 THEN 'hidden' WHEN 1 THEN 'private' ELSE 'public' END"
  const rows = `
    SELECT i AS app_id, 'App ' || i AS app_name, ${allPublic ? "'public'" : someHidden} AS visibility,
      CASE WHEN hash(i, 3) % 3 = 0 THEN [] ELSE list_distinct([${anyTag(1)}, ${anyTag(2)}]) END AS subcategories,
      CASE WHEN ${!allPublic} AND i % 50 = 7 THEN i - 5 END AS alias_of, TIMESTAMP '2025-01-01' AS updated_at
    FROM range(1, ${apps + 1}) AS t (i)`
  await writeParquet(join(dataDir, 'raw', 'apps', 'registry.parquet'), rows)
}

/** Numbers of apps and of days up to the last day. */
export type WarehouseSize = { readonly apps: number; readonly days: number }

/** Adds the day `$day`, number `$number`: each app has usage on a quarter of the days, in another order each day. */
export const EVEN_VOLUMES = `
  INSERT INTO usage_daily
  SELECT $day, i, 1 + i % 100, (h >> 8) % (100000000 // i + 5000), (h >> 24) % (20000000 // i + 1000)
  FROM (SELECT i, CAST(hash(i, $number) >> 2 AS BIGINT) AS h FROM range(1, $apps + 1) AS t (i)) AS v
  WHERE h % 4 = 0`

/**
 * Adds a day likewise: volumes follow a power law that the apps keep over time, with noise from day to day and slow ups and
 * downs, each app's at a time of its own. The first hundredth has usage every day, the others on the share `tail` of them.
 */
export const powerLaw = (tail = 1 / 8) => `
  INSERT INTO usage_daily
  SELECT $day, v.app_id, 1 + CAST(v.tokens / 20000 AS BIGINT), CAST(v.tokens * 0.8 AS BIGINT),
    CAST(v.tokens * 0.2 AS BIGINT)
  FROM (
    SELECT h.app_id,
      5e10 / pow(h.app_id, 1.1)
        * exp(2 * ((h.noise >> 40) % 1000 / 1000.0 - 0.5))
        * exp(sin(($number + hash(h.app_id) % 700) / 100.0)) AS tokens
    FROM (SELECT i AS app_id, hash(i, $number) AS noise FROM range(1, $apps + 1) AS t (i)) AS h
    WHERE h.noise % 1000 < 1000 * least(1, ${tail} + $apps / 100.0 / h.app_id)
  ) AS v`

const ADD_LEDGER = `
  INSERT INTO days
  SELECT day, 'made', CAST(sum(prompt_tokens) AS VARCHAR), now(), count(*), 0, 0, 0,
    sum(prompt_tokens) + sum(completion_tokens), 0, 0, 0
  FROM usage_daily GROUP BY day`

/** Fills a warehouse without raw files, a day by each call of the statement. */
export async function makeWarehouse(
  dataDir: string,
  addDay: string,
  { memory, apps, days }: WarehouseSize & { readonly memory: string },
): Promise<void> {
  mkdirSync(join(dataDir, 'snapshots'))
  const warehouse = await openWarehouse({ dataDir, memory })
  const { connection } = warehouse
  try {
    for (let number = 0; number < days; number += 1) {
      const day = dateValue(addDays(LAST_DAY, number + 1 - days))
      await connection.run(addDay, { day, number, apps })
    }
    await connection.run(ADD_LEDGER)
  } finally {
    warehouse.close()
  }
}
