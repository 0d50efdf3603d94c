/** CONTRACT 8: the published DuckDB file for a stranger: opened alone, without this project. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { TAXONOMY } from '../../../pipeline/contract/taxonomy.ts'
import { makeFolder } from '../../support/folders.ts'
import { currentSnapshot, publish, query } from '../../support/pipeline/nightly.ts'
import { REPOSITORY } from '../../support/processes.ts'

const WEEK = "'2026-08-25', '2026-08-31'"
const RANKING = 'rank BIGINT, app_id BIGINT, app_name VARCHAR, total_requests BIGINT, total_tokens BIGINT'
const USAGE = 'requests BIGINT, prompt_tokens BIGINT, completion_tokens BIGINT'

/** Names and types, which never change. None is a HUGEINT, which Parquet would store as DOUBLE. */
const COLUMNS = {
  apps: 'app_id BIGINT, app_name VARCHAR, subcategories VARCHAR[]',
  app_daily: `day DATE, app_id BIGINT, ${USAGE}`,
  model_daily: `day DATE, model_permaslug VARCHAR, ${USAGE}`,
  categories: 'category VARCHAR, subcategory VARCHAR',
  rankings:
    'window_days INTEGER, start_date DATE, end_date DATE, sort VARCHAR, category VARCHAR, subcategory VARCHAR, ' +
    RANKING,
  coverage: 'day DATE, status VARCHAR, total_requests BIGINT, total_tokens BIGINT',
  restatements:
    'as_of TIMESTAMP WITH TIME ZONE, previous_as_of TIMESTAMP WITH TIME ZONE, day DATE, cause VARCHAR, apps_changed BIGINT, ' +
    'requests_before BIGINT, requests_after BIGINT, tokens_before BIGINT, tokens_after BIGINT',
  meta:
    'as_of TIMESTAMP WITH TIME ZONE, as_of_text VARCHAR, data_through DATE, first_day DATE, version VARCHAR, licence VARCHAR, ' +
    'licence_url VARCHAR, publisher VARCHAR, attribution VARCHAR, sources VARCHAR, comparability VARCHAR, input_fingerprint VARCHAR',
  [`popular(${WEEK})`]: RANKING,
  [`popular_by_requests(${WEEK})`]: RANKING,
  [`trending(${WEEK})`]: `${RANKING}, excess_tokens BIGINT`,
}

let file = ''

beforeAll(async () => {
  const dataDir = makeFolder()
  await publish(dataDir, '2026-09-01T02:00:00Z', '--with-sample')
  file = join(currentSnapshot(dataDir), 'app-rankings.duckdb')
})

const ask = (sql: string) => query(file, sql)

it.each(Object.entries(COLUMNS))('%s has exactly its columns and types', async (table, columns) => {
  const found = await ask(`SELECT column_name || ' ' || column_type AS found FROM (DESCRIBE FROM ${table})`)
  expect(found.map((row) => row['found']).join(', ')).toBe(columns)
})

it('a misspelt filter is an error', async () => {
  await expect(ask(`FROM popular(${WEEK}, category := 'codign')`)).rejects.toThrow(/codign/)
})

it('the table categories is the taxonomy of the contract', async () => {
  const rows = await ask('FROM categories')
  const pairs = Object.entries(TAXONOMY).flatMap(([category, tags]) =>
    tags.map((tag) => `${category}/${tag}`),
  )
  expect(rows.map((row) => `${row['category']}/${row['subcategory']}`).toSorted()).toEqual(pairs.toSorted())
})

it('every table, view, column and macro has a comment', async () => {
  const bare = await ask(`
    SELECT 'table ' || table_name AS what, comment FROM duckdb_tables() WHERE NOT internal
    UNION ALL SELECT 'view ' || view_name, comment FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT 'column ' || table_name || '.' || column_name, comment FROM duckdb_columns() WHERE NOT internal
    UNION ALL SELECT 'macro ' || function_name, comment FROM duckdb_functions()
      WHERE function_type LIKE '%macro' AND NOT internal`)
  expect(bare.length).toBeGreaterThan(40)
  expect(bare.filter((row) => (row['comment'] ?? '') === '')).toEqual([])
})

it('the storage version is one that every DuckDB 1.x opens', () => {
  const header = readFileSync(file).subarray(0, 20)
  expect(header.toString('latin1', 8, 12)).toBe('DUCK')
  expect(header.readBigUInt64LE(12)).toBe(64n)
})

it('the queries of data/README.md find rows', async () => {
  const readme = readFileSync(join(REPOSITORY, 'data', 'README.md'), 'utf8')
  const blocks = [...readme.matchAll(/```sql\n(.*?)```/gs)].map(([, sql = '']) => sql)
  const queries = blocks
    .flatMap((block) => block.trim().split(/;\n|;$/))
    .filter((sql) => sql !== '')
    // The file names are relative to the snapshot's folder.
    .map((sql) => sql.replaceAll("'app_daily/", `'${dirname(file)}/app_daily/`))
  expect(queries.length).toBeGreaterThan(2)
  for (const sql of queries) expect(await ask(sql), sql).not.toEqual([])
})
