/** CONTRACT 8: the published DuckDB file for a stranger: opened alone, without this project. */
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TAXONOMY } from '../../../pipeline/contract/taxonomy.ts'
import { currentSnapshot, publish, query, TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { REPOSITORY } from '../../support/processes.ts'
import type { TextRow } from '../../support/pipeline/nightly.ts'

const RANKING_COLUMNS = ['rank', 'app_id', 'app_name', 'total_requests', 'total_tokens']

/** CONTRACT 8: names, and types, which never change. */
const COLUMNS = {
  apps: 'app_id BIGINT, app_name VARCHAR, subcategories VARCHAR[]',
  app_daily: 'day DATE, app_id BIGINT, requests BIGINT, prompt_tokens BIGINT, completion_tokens BIGINT',
  model_daily:
    'day DATE, model_permaslug VARCHAR, requests BIGINT, prompt_tokens BIGINT, completion_tokens BIGINT',
  categories: 'category VARCHAR, subcategory VARCHAR',
  rankings:
    'window_days INTEGER, start_date DATE, end_date DATE, sort VARCHAR, category VARCHAR, subcategory VARCHAR, ' +
    'rank BIGINT, app_id BIGINT, app_name VARCHAR, total_requests BIGINT, total_tokens BIGINT',
}

const folders = new TemporaryFolders()
let file = ''

beforeAll(async () => {
  const dataDir = folders.make()
  await publish(dataDir, '2026-09-01T02:00:00Z', '--with-sample')
  file = join(currentSnapshot(dataDir), 'app-rankings.duckdb')
})

afterAll(() => folders.removeAll())

describe('shape', () => {
  it.each(Object.entries(COLUMNS))(
    'the table %s has exactly its columns and types',
    async (table, columns) => {
      const found = await ask(`SELECT column_name || ' ' || column_type AS found FROM (DESCRIBE ${table})`)
      expect(found.map((row) => row['found']).join(', ')).toBe(columns)
    },
  )

  it('coverage, restatements and meta exist; meta has one row with time, last day, licence and publisher', async () => {
    for (const table of ['coverage', 'restatements', 'meta'])
      expect(await columnsOf(`SELECT * FROM ${table}`)).not.toEqual([])
    const named = 'as_of, data_through, version, licence, attribution, sources, comparability'
    expect(await ask(`SELECT ${named} FROM meta`)).toHaveLength(1)
  })

  it('the macros return exactly their columns', async () => {
    const window = "'2026-08-25', '2026-08-31'"
    expect(await columnsOf(`SELECT * FROM popular(${window})`)).toEqual(RANKING_COLUMNS)
    expect(await columnsOf(`SELECT * FROM trending(${window})`)).toEqual([
      ...RANKING_COLUMNS,
      'excess_tokens',
    ])
  })

  it('a misspelt filter is an error', async () => {
    await expect(
      ask("SELECT * FROM popular('2026-08-25', '2026-08-31', category := 'codign')"),
    ).rejects.toThrow(/codign/)
  })

  it('the table categories is the taxonomy of the contract', async () => {
    const rows = await ask('SELECT category, subcategory FROM categories')
    const pairs = Object.entries(TAXONOMY).flatMap(([category, tags]) =>
      tags.map((tag) => `${category}/${tag}`),
    )
    expect(rows.map((row) => `${row['category']}/${row['subcategory']}`).toSorted()).toEqual(pairs.toSorted())
  })
})

describe('the DuckDB file', () => {
  it('has a comment on every table, view, column and macro', async () => {
    const bare = await ask(`
      SELECT 'table ' || table_name AS what, comment FROM duckdb_tables() WHERE NOT internal
      UNION ALL SELECT 'view ' || view_name, comment FROM duckdb_views() WHERE NOT internal
      UNION ALL SELECT 'column ' || table_name || '.' || column_name, comment FROM duckdb_columns() WHERE NOT internal
      UNION ALL SELECT 'macro ' || function_name, comment FROM duckdb_functions()
        WHERE function_type LIKE '%macro' AND NOT internal`)
    expect(bare.length).toBeGreaterThan(40)
    expect(bare.filter((row) => (row['comment'] ?? '') === '')).toEqual([])
  })

  it('has no column that Parquet would store as DOUBLE', async () => {
    expect(
      await ask(
        "SELECT * FROM duckdb_columns() WHERE NOT internal AND data_type SIMILAR TO '.*(HUGEINT|DOUBLE|FLOAT).*'",
      ),
    ).toEqual([])
    for (const sort of ['popular', 'trending']) {
      const types = await ask(`SELECT typeof(COLUMNS(*)) FROM ${sort}('2026-08-25', '2026-08-31') LIMIT 1`)
      expect(Object.values(types[0] ?? {}).filter((type) => /HUGEINT|DOUBLE|FLOAT/.test(type ?? ''))).toEqual(
        [],
      )
    }
  })

  it('has the storage version that every DuckDB 1.x opens', () => {
    const header = Buffer.alloc(20)
    const descriptor = openSync(file, 'r')
    readSync(descriptor, header, 0, 20, 0)
    closeSync(descriptor)
    expect(header.toString('latin1', 8, 12)).toBe('DUCK')
    expect(header.readBigUInt64LE(12)).toBe(64n)
  })

  it('leaves no write-ahead log and no unfinished file', () => {
    const names = readdirSync(join(file, '..'), { recursive: true, encoding: 'utf8' })
    expect(names).toContain('app-rankings.duckdb')
    expect(names).toContain('report.json')
    expect(names.filter((name) => /\.(wal|tmp|part)|^[._]/.test(name))).toEqual([])
  })

  it('works with the queries of data/README.md', async () => {
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
})

function ask(sql: string): Promise<TextRow[]> {
  return query(file, sql)
}

async function columnsOf(sql: string): Promise<string[]> {
  const rows = await ask(`SELECT column_name FROM (DESCRIBE ${sql})`)
  return rows.map((row) => row['column_name'] ?? '')
}
