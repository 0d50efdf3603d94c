/** CONTRACT 8: the data files of a snapshot for whoever downloads them: complete, exact and safe to open. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../../support/folders.ts'
import {
  ATTRIBUTION,
  DATA_FILES,
  FIRST_DAY,
  HUGE,
  NAMES,
  NIGHTS,
  publishBundle,
  sha256,
  TEXT_FILES,
} from '../../support/pipeline/bundle.ts'
import { query, queryCurrent } from '../../support/pipeline/nightly.ts'

/** The Parquet files of each table. */
const FILES = {
  rankings: 'rankings.parquet',
  app_daily: 'app_daily/*.parquet',
  model_daily: 'model_daily/*.parquet',
  apps: 'apps.parquet',
} as const

let folder = ''
let dataDir = ''

beforeAll(async () => {
  dataDir = makeFolder()
  folder = await publishBundle(dataDir)
})

function read(name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}

/** Compares two queries row by row, ignoring column types. */
async function expectSameRows(file: string, published: string): Promise<void> {
  const rows = await query(join(folder, 'app-rankings.duckdb'), file)
  expect(rows.length).toBeGreaterThan(0)
  expect(rows).toEqual(await queryCurrent(dataDir, published))
}

describe('SHA256SUMS', () => {
  it('names every file of the bundle with its checksum', () => {
    const sums = read('SHA256SUMS')
      .trimEnd()
      .split('\n')
      .map((line) => line.split('  '))
    expect(sums.map(([, name]) => name)).toEqual([...DATA_FILES, ...TEXT_FILES])
    for (const [sum, name = ''] of sums) expect(sum).toBe(sha256(join(folder, name)))
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    const others = names.filter((name) => !sums.some(([, summed]) => summed === name))
    expect(others.toSorted()).toEqual([
      'SHA256SUMS',
      'app_daily',
      'croissant.json',
      'model_daily',
      'record.json',
      'report.json',
    ])
  })
})

describe('Parquet', () => {
  it.each(Object.entries(FILES))('%s holds the rows of the table in their order', async (table, files) => {
    await expectSameRows(`FROM read_parquet('${join(folder, files)}')`, `FROM ${table}`)
  })

  it('carries the licence and the attribution; monthly files, which several snapshots share, the licence alone', async () => {
    const about = async (file: string) => {
      const metadata = `parquet_kv_metadata('${join(folder, file)}')`
      return await queryCurrent(
        dataDir,
        `SELECT DISTINCT decode(key) || ': ' || decode(value) AS text FROM ${metadata}`,
      )
    }
    const licence = { text: 'license: CC-BY-4.0' }
    expect(await about(FILES.app_daily)).toEqual([licence])
    const rows = await about(FILES.rankings)
    expect(rows).toHaveLength(2)
    expect(rows).toEqual(expect.arrayContaining([licence, { text: `attribution: ${ATTRIBUTION}` }]))
  })

  it('has the same bytes when made again from the same input, and so does CSV', async () => {
    const again = await publishBundle(makeFolder())
    for (const name of DATA_FILES.slice(1)) {
      expect(readFileSync(join(again, name)).equals(readFileSync(join(folder, name))), name).toBe(true)
    }
  })
})

describe('CSV', () => {
  it('gives no cell to a spreadsheet as a formula', async () => {
    const cells = await queryCurrent(
      dataDir,
      `SELECT app_name FROM read_csv('${join(folder, 'apps')}.csv', all_varchar = true) ORDER BY app_id::INT`,
    )
    // A name is one line without control characters.
    const lines = NAMES.map((name) => name.replaceAll(/[\t\n]/g, ' ').trim())
    const expected = lines.map((name) => (/^[=+\-@＝＋－＠]/.test(name) ? `'${name}` : name))
    expect(cells.map(({ app_name }) => app_name)).toEqual(expected)
  })

  it('holds the same figures as the tables', async () => {
    const columns = 'window_days, sort, category, subcategory, rank, app_id, total_requests, total_tokens'
    await expectSameRows(
      `SELECT ${columns} FROM read_csv('${join(folder, 'rankings')}.csv', all_varchar = true)`,
      `SELECT ${columns} FROM rankings`,
    )
    for (const table of ['coverage', 'categories'])
      await expectSameRows(`FROM read_csv('${join(folder, table)}.csv', all_varchar = true)`, `FROM ${table}`)
  })

  it('has times in ISO 8601, and both figures of restated days', () => {
    const [first, second, third] = Object.keys(NIGHTS)
    expect(read('restatements.csv').split('\n').slice(1)).toEqual([
      `${second},${first},${FIRST_DAY},figures,1,1,1,8,9`,
      `${third},${second},${FIRST_DAY},figures,1,1,1,9,10`,
      '',
    ])
  })

  it('separates the tags of an app by |, and has an empty text for none, which DuckDB reads as null', async () => {
    expect(read('apps.csv')).toContain('cli-agent|legal')
    expect(read('apps.csv')).toContain('\n2,\'+1,""\n')
    const untagged = 'SELECT app_id, subcategories FROM'
    const csv = `${untagged} read_csv('${join(folder, 'apps.csv')}') WHERE app_id = 2`
    expect(await queryCurrent(dataDir, csv)).toEqual([{ app_id: '2', subcategories: null }])
    const parquet = `${untagged} '${join(folder, 'apps.parquet')}' WHERE app_id = 2`
    expect(await queryCurrent(dataDir, parquet)).toEqual([{ app_id: '2', subcategories: '[]' }])
  })
})

describe('the views of the DuckDB file', () => {
  it('latest_popular and latest_trending equal the 30-day lists', async () => {
    const popular = await queryCurrent(dataDir, 'FROM latest_popular')
    expect(popular).toEqual(await queryCurrent(dataDir, "FROM popular('2025-12-08', '2026-01-06')"))
    expect(popular).toHaveLength(NAMES.length)
    const trending = await queryCurrent(dataDir, 'FROM latest_trending')
    expect(trending).toEqual(
      await queryCurrent(
        dataDir,
        "SELECT * EXCLUDE (excess_tokens) FROM trending('2025-12-08', '2026-01-06')",
      ),
    )
  })

  it('app_history adds names and sums to app_daily', async () => {
    const [row] = await queryCurrent(dataDir, 'FROM app_history WHERE app_id = 2')
    expect(row).toMatchObject({ day: '2026-01-06', app_name: '+1', total_tokens: String(BigInt(HUGE) + 1n) })
  })
})
