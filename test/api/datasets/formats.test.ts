/** CONTRACT 4.6: the rankings in every format: negotiation, equal rows, read back with other programs. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tableFromIPC } from 'apache-arrow'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { envelopeSchema, rankingsSchema, startApi, type Api } from '../../support/api.ts'
import { queryCurrent, TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { publishSnapshot } from '../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const LAST_DAY = '2026-11-19'
const PATH = '/datasets/app-rankings'
const HUGE = 2n ** 63n - 1n
const PARQUET = 'application/vnd.apache.parquet'
const ARROW = 'application/vnd.apache.arrow.stream'

const dataDir = folders.make()
let api: Api
let key = ''

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
  key = await api.makeKey()
})

afterAll(() => api.close())

async function get(search: string, accept?: string): Promise<Response> {
  key = await api.makeKey('inference', `account ${Math.random()}`)
  return await api.get(`${PATH}${search}`, key, accept === undefined ? {} : { headers: { Accept: accept } })
}

/** The rows of the JSON reply as text, with columns in key order. */
async function jsonRows(search: string): Promise<string[][]> {
  const { data } = rankingsSchema.parse(await (await get(search)).json())
  return data.map((row) => Object.values(row).map(String))
}

const SEARCHES = ['', '?sort=trending&limit=1&offset=1', '?category=creative']

describe('the name of a file', () => {
  it.each([
    ['?format=csv', 'app-rankings_popular_2026-10-21_2026-11-19.csv'],
    ['?format=parquet&sort=trending', 'app-rankings_trending_2026-10-21_2026-11-19.parquet'],
    ['?format=arrow&category=coding', 'app-rankings_popular_coding_2026-10-21_2026-11-19.arrow'],
    ['/daily?app_id=1&app_id=2&format=csv', 'app-rankings-daily_1-2_2026-10-21_2026-11-19.csv'],
  ])('of %s is %s', async (search, name) => {
    const disposition = (await get(search)).headers.get('Content-Disposition')
    expect(disposition).toBe(`attachment; filename="${name}"`)
  })

  it('is missing for JSON, which programs read', async () => {
    expect((await get('')).headers.get('Content-Disposition')).toBeNull()
  })
})

describe('the choice of a format', () => {
  it.each([
    ['', undefined, 'application/json; charset=utf-8'],
    ['', '*/*', 'application/json; charset=utf-8'],
    ['', 'text/html,application/xhtml+xml,*/*;q=0.8', 'application/json; charset=utf-8'],
    ['', 'text/csv', 'text/csv; charset=utf-8; header=present'],
    ['', 'application/json;q=0.1, text/csv;q=0.9', 'text/csv; charset=utf-8; header=present'],
    ['', 'application/json; charset=utf-8', 'application/json; charset=utf-8'],
    [
      '',
      'application/json;charset=UTF-8;q=0.1, text/csv ; header="a;b,c" ;q=0.9',
      'text/csv; charset=utf-8; header=present',
    ],
    ['', 'text/csv; charset=utf-8; header=present', 'text/csv; charset=utf-8; header=present'],
    ['', PARQUET, PARQUET],
    ['', ARROW, ARROW],
    ['?format=csv', undefined, 'text/csv; charset=utf-8; header=present'],
    ['?format=json', 'text/csv', 'application/json; charset=utf-8'],
    ['?format=parquet', 'image/png', PARQUET],
  ])('%s with Accept %s is %s', async (search, accept, contentType) => {
    const response = await get(search, accept)
    expect(response.status).toBe(200)
    expect(response.headers.get('Content-Type')).toBe(contentType)
    expect(response.headers.get('Vary')).toContain('Accept')
  })

  it('sends Parquet, which is itself compressed, without a coding', async () => {
    const parquet = await api.get(`${PATH}?format=parquet`, key, { headers: { 'Accept-Encoding': 'gzip' } })
    expect(parquet.headers.get('Content-Encoding')).toBeNull()
    const csv = await api.get(`${PATH}?format=csv`, key, { headers: { 'Accept-Encoding': 'gzip' } })
    expect(csv.headers.get('Content-Encoding')).toBe('gzip')
  })

  it('is a 406 that lists the formats if none fits', async () => {
    const response = await get('', 'image/png')
    expect(response.status).toBe(406)
    const { error } = envelopeSchema.parse(await response.json())
    expect(error.message).toContain('format=json|csv|parquet|arrow')
    expect(error.metadata).toEqual({ available: ['application/json', 'text/csv', PARQUET, ARROW] })
  })

  it('gives every format its own tag', async () => {
    const formats = ['json', 'csv', 'parquet', 'arrow']
    const tags = await Promise.all(
      formats.map(async (format) => (await get(`?format=${format}`)).headers.get('ETag')),
    )
    expect(new Set(tags).size).toBe(formats.length)
  })

  it('gives a HEAD the headers of a GET', async () => {
    const head = await api.get(`${PATH}?format=arrow`, key, { method: 'HEAD' })
    expect(head.headers.get('Content-Type')).toBe(ARROW)
    expect(head.headers.get('Link')).toContain('rel="license"')
    expect(await head.text()).toBe('')
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

  it.each(SEARCHES)('as Parquet equal the JSON rows: %s', async (search) => {
    const path = join(folders.make(), 'page.parquet')
    const response = await get(`${search === '' ? '?' : `${search}&`}format=parquet`)
    writeFileSync(path, new Uint8Array(await response.arrayBuffer()))
    const rows = await queryCurrent(dataDir, `FROM read_parquet('${path}')`)
    expect(rows.map((row) => Object.values(row))).toEqual(await jsonRows(search))
  })

  it('as Parquet keep every digit and describe themselves', async () => {
    const path = join(folders.make(), 'page.parquet')
    writeFileSync(path, new Uint8Array(await (await get('?format=parquet')).arrayBuffer()))
    const types = await queryCurrent(dataDir, `DESCRIBE FROM read_parquet('${path}')`)
    expect(types.map((column) => column['column_type'])).toEqual([
      'BIGINT',
      'VARCHAR',
      'BIGINT',
      'BIGINT',
      'DECIMAL(38,0)',
    ])
    const pairs = await queryCurrent(
      dataDir,
      `SELECT decode(key) AS key, decode(value) AS value FROM parquet_kv_metadata('${path}')`,
    )
    expect(Object.fromEntries(pairs.map((pair) => [pair['key'], pair['value']]))).toMatchObject({
      as_of: '2026-11-20T02:00:07Z',
      end_date: LAST_DAY,
      license: 'CC-BY-4.0',
    })
  })

  it.each(SEARCHES)('as an Arrow stream equal the JSON rows: %s', async (search) => {
    const response = await get(`${search === '' ? '?' : `${search}&`}format=arrow`)
    const table = tableFromIPC(new Uint8Array(await response.arrayBuffer()))
    expect(table.schema.metadata.get('as_of')).toBe('2026-11-20T02:00:07Z')
    expect(table.schema.fields.map(({ name }) => name)).toEqual([
      'app_id',
      'app_name',
      'rank',
      'total_requests',
      'total_tokens',
    ])
    const rows = table.toArray().map((row) => {
      const values = arrowRow.parse(row.toJSON())
      return Object.values({ ...values, total_tokens: fromWords(values.total_tokens) }).map(String)
    })
    expect(rows).toEqual(await jsonRows(search))
  })
})

const arrowRow = z.object({
  app_id: z.bigint(),
  app_name: z.string(),
  rank: z.bigint(),
  total_requests: z.bigint(),
  total_tokens: z.instanceof(Uint32Array),
})

function fromWords(words: Uint32Array): bigint {
  return words.reduceRight((value, word) => (value << 32n) + BigInt(word), 0n)
}
