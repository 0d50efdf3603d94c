/** CONTRACT 4.6: the rankings in every format: negotiation, equal rows, read back with other programs. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tableFromIPC } from 'apache-arrow'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { RANKING_COLUMNS } from '../../../pipeline/contract/dataset.ts'
import { envelopeSchema, rankingsSchema, startApi, type Api } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { queryCurrent } from '../../support/pipeline/nightly.ts'
import { publishSnapshot } from '../../support/pipeline/snapshot.ts'

const LAST_DAY = '2026-11-19'
const PATH = '/datasets/app-rankings'
const HUGE = 2n ** 63n - 1n
const TYPES = {
  json: 'application/json; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
  parquet: 'application/vnd.apache.parquet',
  arrow: 'application/vnd.apache.arrow.stream',
} as const

const dataDir = makeFolder()
let api: Api

beforeAll(async () => {
  await publishSnapshot(dataDir, {
    asOf: new Date('2026-11-20T02:00:07Z'),
    dataThrough: LAST_DAY,
    apps: [
      { id: 1, name: '=cmd|"x", y', tags: ['cli-agent'] },
      { id: 2, name: 'Plain' },
      { id: 3, name: "O'Neill\n😀", tags: ['game'] },
    ],
    daily: [
      { day: LAST_DAY, app: 1, requests: 3, tokens: HUGE, completion: HUGE },
      { day: LAST_DAY, app: 2, requests: 2, tokens: 50 },
      { day: LAST_DAY, app: 3, requests: 1, tokens: 7 },
    ],
  })
  api = await startApi(dataDir)
})

const get = (search: string, Accept?: string) =>
  api.getAsNewAccount(`${PATH}${search}`, Accept === undefined ? {} : { headers: { Accept } })

describe('the choice of a format', () => {
  it.each([
    ['', undefined, 'json'],
    ['', '*/*', 'json'],
    ['', 'text/html,application/xhtml+xml,*/*;q=0.8', 'json'],
    ['', 'text/csv', 'csv'],
    ['', 'application/json;q=0.1, text/csv;q=0.9', 'csv'],
    ['', 'application/json; charset=utf-8', 'json'],
    ['', 'application/json;charset=UTF-8;q=0.1, text/csv ; header="a;b,c" ;q=0.9', 'csv'],
    ['', TYPES.csv, 'csv'],
    ['', TYPES.parquet, 'parquet'],
    ['', TYPES.arrow, 'arrow'],
    ['?format=csv', undefined, 'csv'],
    ['?format=json', 'text/csv', 'json'],
    ['?format=parquet', 'image/png', 'parquet'],
  ] as const)('%s with Accept %s is %s', async (search, accept, format) => {
    const response = await get(search, accept)
    expect(response.status).toBe(200)
    expect(response.headers.get('Content-Type')).toBe(TYPES[format])
  })

  it('is a 406 that lists the formats if none fits', async () => {
    const response = await get('', 'image/png')
    expect(response.status).toBe(406)
    const { error } = envelopeSchema.parse(await response.json())
    expect(error.message).toContain('format=json|csv|parquet|arrow')
    const available = ['application/json', 'text/csv', TYPES.parquet, TYPES.arrow]
    expect(error.metadata).toEqual({ available })
  })

  const PAGE = '2026-10-21.2026-11-19.50.0.20261120T020007Z'
  it.each([
    ['?format=csv', `app-rankings.popular.${PAGE}.csv`],
    ['?format=parquet&sort=trending', `app-rankings.trending.${PAGE}.parquet`],
    ['?format=arrow&category=coding', `app-rankings.popular.coding.${PAGE}.arrow`],
    [
      '/daily?app_id=1&app_id=2&format=csv',
      'app-rankings-daily.1-2.2026-10-21.2026-11-19.366.0.20261120T020007Z.csv',
    ],
    // Programs read JSON.
    ['', null],
  ])('of %s gives the file name %s, and a tag with it', async (search, name) => {
    const { headers } = await get(search)
    expect(headers.get('Content-Disposition')).toBe(name && `attachment; filename="${name}"`)
    expect(headers.get('ETag')).toContain(name ?? `${PAGE}.json`)
  })
})

describe('the rows', () => {
  it('as CSV have no text that a spreadsheet would run, and unchanged numbers', async () => {
    expect(await (await get('?format=csv')).text()).toBe(
      'app_id,app_name,rank,total_requests,total_tokens\n' +
        `1,"'=cmd|""x"", y",1,3,${2n * HUGE}\n` +
        '2,Plain,2,2,50\n' +
        `3,"O'Neill\n😀",3,1,7\n`,
    )
  })

  it.each(['?', '?sort=trending&limit=1&offset=1', '?category=creative'])(
    'of %s are the same in Parquet and Arrow, with every digit, and describe themselves',
    async (search) => {
      const { data } = rankingsSchema.parse(await (await get(search)).json())
      const rows = data.map((row) => Object.values(row).map(String))
      const path = join(makeFolder(), 'page.parquet')
      writeFileSync(path, await (await get(`${search}&format=parquet`)).bytes())
      const read = (sql: string) => queryCurrent(dataDir, sql)
      const parquet = await read(`FROM read_parquet('${path}')`)
      expect(parquet.map((row) => Object.values(row))).toEqual(rows)
      const types = (await read(`DESCRIBE FROM read_parquet('${path}')`)).map(
        (column) => column['column_type'],
      )
      expect(types.join(' ')).toBe('BIGINT VARCHAR BIGINT BIGINT DECIMAL(38,0)')
      const pairs = await read(
        `SELECT decode(key) AS key, decode(value) AS value FROM parquet_kv_metadata('${path}')`,
      )
      const metadata = { as_of: '2026-11-20T02:00:07Z', end_date: LAST_DAY, license: 'CC-BY-4.0' }
      expect(Object.fromEntries(pairs.map((pair) => [pair['key'], pair['value']]))).toMatchObject(metadata)

      const arrow = tableFromIPC(await (await get(`${search}&format=arrow`)).bytes())
      expect(Object.fromEntries(arrow.schema.metadata)).toMatchObject(metadata)
      expect(arrow.schema.fields.map(({ name }) => name)).toEqual(Object.keys(RANKING_COLUMNS))
      const cells = z.array(z.union([z.string(), z.bigint(), tokensSchema]))
      const found = arrow.toArray().map((row) => cells.parse(Object.values(row.toJSON())).map(String))
      expect(found).toEqual(rows)
    },
  )
})

/** Arrow's words of a decimal, as a number. */
const tokensSchema = z
  .instanceof(Uint32Array)
  .transform((words) => words.reduceRight((value, word) => (value << 32n) + BigInt(word), 0n))
