/**
 * CONTRACT 4.2 and 8: the pipeline over the bundled sample gives the tables that were published for the same weeks
 * (test/golden/published/), row for row, in a DuckDB file that a stranger opens alone, without this project.
 */
import { readFileSync, statSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { addDays } from '../../pipeline/contract/calendar.ts'
import { SNAPSHOT_FILE } from '../../pipeline/contract/files.ts'
import { TAXONOMY } from '../../pipeline/contract/taxonomy.ts'
import { filesBelow, makeFolder } from '../support/folders.ts'
import { currentSnapshot, publish, queryCurrent } from '../support/pipeline/nightly.ts'
import { REPOSITORY } from '../support/processes.ts'

const PUBLISHED = join(REPOSITORY, 'test', 'golden', 'published')
const SAMPLE = join(REPOSITORY, 'data', 'sample')

/** The published tables end at this rank. */
const PUBLISHED_ROWS = 50

const USAGE = `read_csv('${join(PUBLISHED, 'usage_weekly.csv')}') AS usage`
const RANKINGS = `read_csv('${join(PUBLISHED, 'rankings_weekly.csv')}') AS rankings`

/** The last days of the published weeks. */
const weeks = [0, 1, 2, 3, 4, 5].map((week) => addDays('2026-07-27', 7 * week))
const lists = [
  { category: 'all', subcategory: '' },
  { category: 'coding', subcategory: '' },
  { category: 'coding', subcategory: 'cli-agent' },
  { category: 'coding', subcategory: 'cloud-agent' },
  { category: 'coding', subcategory: 'ide-extension' },
  { category: 'coding', subcategory: 'programming-app' },
] as const

const ZCODE = '2823243'
/**
 * The ranks of ZCode in our lists where the published ones lack it. It got its tag between 2026-08-17 and 2026-08-24: it is
 * in both lists from then on and in neither before, though its tokens would have put it there. A snapshot has the tags of
 * its own time for all days.
 */
const NOT_YET_TAGGED: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  '2026-07-27': { 'coding/': 17, 'coding/programming-app': 6 },
  '2026-08-03': { 'coding/': 18, 'coding/programming-app': 6 },
  '2026-08-10': { 'coding/': 20, 'coding/programming-app': 7 },
  '2026-08-17': { 'coding/': 20, 'coding/programming-app': 7 },
}

/**
 * Apps with a published trending rank that contradicts the published figures of the weeks before. Each has the rank of an app without earlier traffic:
 * its growth is the whole week. The source restates its figures, so the earlier weeks probably came under this id after the
 * table was made. Multi-Agent Arena grew by 9 011 792 791 tokens to 14 616 405 508 and by 8 134 602 442 to 17 689 137 841,
 * while its neighbours in the table grew by 15.2 and 11.5, and by 18.2 and 17.4 billion; pi grew by 6 446 602 725 to
 * 16 466 172 967, its neighbours by 16.5 and 16.3 billion.
 */
const COUNTED_AS_NEW = [
  { week: '2026-08-17', app: '4069892' },
  { week: '2026-08-24', app: '4069892' },
  { week: '2026-08-31', app: '3282295' },
] as const

const dataDir = makeFolder()

beforeAll(async () => {
  await publish(dataDir, '2026-09-01T02:00:00Z', '--with-sample')
})

it('the sample equals its source figures byte for byte, and is under 1 MB', () => {
  const output = makeFolder('sample')
  const made = spawnSync(process.execPath, [join(SAMPLE, 'make.ts'), PUBLISHED, output], { encoding: 'utf8' })
  expect(made.stderr).toContain('42 days and 215 apps')
  expect(made.status).toBe(0)
  const files = filesBelow(output)
  expect(files).toEqual(filesBelow(SAMPLE).filter((file) => !['make.ts', 'README.md'].includes(file)))
  for (const file of files) {
    expect(readFileSync(join(output, file), 'utf8'), file).toBe(readFileSync(join(SAMPLE, file), 'utf8'))
  }
  const bytes = files.reduce((total, file) => total + statSync(join(SAMPLE, file)).size, 0)
  expect(bytes).toBeLessThan(1_000_000)
})

it('meta has the time of the run, the days, and the credit line of the sample, which names its source', async () => {
  const credit = readFileSync(join(SAMPLE, 'ATTRIBUTION'), 'utf8').trim()
  expect(credit).toMatch(/OpenRouter \(openrouter\.ai\/apps\).*CC BY 4\.0/)
  const [meta] = await queryCurrent(
    dataDir,
    'SELECT as_of, data_through, first_day, version, sources FROM meta',
  )
  const about = { as_of: '2026-09-01 02:00:00+00', version: 'v1', sources: credit }
  expect(meta).toEqual({ ...about, data_through: '2026-08-31', first_day: '2026-07-21' })
})

const ask = (sql: string) => queryCurrent(dataDir, sql)

/** The seven days that end on `lastDay`, as the two arguments of a macro. */
const windowOf = (lastDay: string) => `'${addDays(lastDay, -6)}', '${lastDay}'`

describe.each(weeks)('popular in the week to %s', (week) => {
  it.each(lists)('$category $subcategory equals the published table', async ({ category, subcategory }) => {
    const columns = 'rank, app_id, total_tokens, total_requests'
    const published = await ask(`SELECT ${columns} FROM ${RANKINGS} JOIN ${USAGE} USING (window_end, app_id)
      WHERE window_end = '${week}' AND sort = 'popular'
        AND category = '${category}' AND coalesce(subcategory, '') = '${subcategory}' ORDER BY rank`)
    expect(published.length).toBeGreaterThan(0)
    const absent = NOT_YET_TAGGED[week]?.[`${category}/${subcategory}`]
    const filter = `category := nullif('${category}', 'all'), subcategory := nullif('${subcategory}', '')`
    const ours = await ask(`SELECT ${columns} FROM popular(${windowOf(week)}, ${filter})`)
    if (absent !== undefined) expect(ours.splice(absent - 1, 1)).toMatchObject([{ app_id: ZCODE }])
    const ranked = ours.map((row, index) => ({ ...row, rank: String(index + 1) }))
    expect(ranked.slice(0, PUBLISHED_ROWS)).toEqual(published)
  })
})

/** Compares apps with three earlier weeks in the data; the first three weeks have none. */
it.each(weeks.slice(3))('trending in the week to %s has the published order', async (week) => {
  const complete = `app_id IN (
    SELECT app_id FROM ${USAGE} WHERE window_end BETWEEN DATE '${week}' - 21 AND '${week}'
    GROUP BY app_id HAVING count(*) = 4)`
  const published = await ask(
    `SELECT app_id FROM ${RANKINGS} WHERE window_end = '${week}' AND sort = 'trending' AND ${complete} ORDER BY rank`,
  )
  expect(published.length).toBeGreaterThan(20)
  // The growth of newcomers is all their tokens.
  const newcomers = COUNTED_AS_NEW.filter((exception) => exception.week === week).map(({ app }) => app)
  const growth = `CASE WHEN app_id IN (${['NULL', ...newcomers].join(', ')}) THEN total_tokens ELSE excess_tokens END`
  // No app of the published table may be missing: our list is cut at the same rank.
  const ours = await ask(
    `SELECT app_id FROM trending(${windowOf(week)}) WHERE ${complete} ORDER BY ${growth} DESC, rank`,
  )
  expect(ours.slice(0, published.length)).toEqual(published)
})

const WEEK = "'2026-08-25', '2026-08-31'"
const RANKING = 'rank BIGINT, app_id BIGINT, app_name VARCHAR, total_requests BIGINT, total_tokens BIGINT'
const COUNTS = 'requests BIGINT, prompt_tokens BIGINT, completion_tokens BIGINT'

/** Names and types, which never change. None is a HUGEINT, which Parquet would store as DOUBLE. */
const COLUMNS = {
  apps: 'app_id BIGINT, app_name VARCHAR, subcategories VARCHAR[]',
  app_daily: `day DATE, app_id BIGINT, ${COUNTS}`,
  model_daily: `day DATE, model_permaslug VARCHAR, ${COUNTS}`,
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
  const header = readFileSync(join(currentSnapshot(dataDir), SNAPSHOT_FILE)).subarray(0, 20)
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
    .map((sql) => sql.replaceAll("'app_daily/", `'${currentSnapshot(dataDir)}/app_daily/`))
  expect(queries.length).toBeGreaterThan(2)
  for (const sql of queries) expect(await ask(sql), sql).not.toEqual([])
})
