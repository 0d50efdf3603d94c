/** GET /datasets/app-rankings/daily (CONTRACT 4.6). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { envelopeSchema, sendRaw, startApi, type Api } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { publishSnapshot, type SnapshotContent } from '../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
const seriesSchema = z.object({ data: z.array(z.object({ day: z.string() })) })
const LAST_DAY = '2026-11-19'

const LONG_IDS = Array.from({ length: 10 }, (_, n) => 742_307_818_684_000 + n)

const CONTENT: SnapshotContent = {
  asOf: new Date('2026-11-20T02:00:00Z'),
  dataThrough: LAST_DAY,
  firstDay: '2025-01-01',
  apps: [
    { id: 1, name: 'One, "quoted"' },
    { id: 2, name: 'Two' },
    { id: 3, name: 'Three' },
    ...LONG_IDS.map((id) => ({ id, name: 'Long' })),
  ],
  daily: [
    { day: LAST_DAY, app: 1, requests: 3, tokens: 2n ** 63n - 1n, completion: 2n ** 63n - 1n },
    { day: '2026-11-17', app: 1, requests: 2, tokens: 40, completion: 2 },
    { day: LAST_DAY, app: 2, requests: 1, tokens: 7 },
    { day: '2025-01-01', app: 3, requests: 1, tokens: 5 },
  ],
  missing: ['2026-11-18'],
}

let api: Api

beforeAll(async () => {
  const dataDir = folders.make()
  await publishSnapshot(dataDir, CONTENT)
  api = await startApi(dataDir, { clock: () => CONTENT.asOf })
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

const ask = (query: string, init?: RequestInit) =>
  api.getAsNewAccount(`/datasets/app-rankings/daily${query}`, init)

function linksOf(response: Response): Record<string, string | undefined> {
  const links = [...(response.headers.get('Link') ?? '').matchAll(/<([^>]*)>; rel="([^"]*)"/g)]
  return Object.fromEntries(links.map(([, target, relation]) => [relation, target]))
}

describe('the series of apps by day', () => {
  it('has these bytes, with a row for each day and app, also without usage or data', async () => {
    const response = await ask('?app_id=2&app_id=1&start_date=2026-11-18&end_date=2026-11-19')
    expect(response.status).toBe(200)
    const zero =
      '"requests":0,"prompt_tokens":"0","completion_tokens":"0","total_tokens":"0","coverage":"missing"}'
    expect(await response.text()).toBe(
      '{"data":[' +
        `{"day":"2026-11-18","app_id":1,"app_name":"One, \\"quoted\\"",${zero},` +
        `{"day":"2026-11-18","app_id":2,"app_name":"Two",${zero},` +
        '{"day":"2026-11-19","app_id":1,"app_name":"One, \\"quoted\\"","requests":3,"prompt_tokens":"9223372036854775807",' +
        '"completion_tokens":"9223372036854775807","total_tokens":"18446744073709551614","coverage":"complete"},' +
        '{"day":"2026-11-19","app_id":2,"app_name":"Two","requests":1,"prompt_tokens":"7","completion_tokens":"0",' +
        '"total_tokens":"7","coverage":"complete"}' +
        '],"meta":{"as_of":"2026-11-20T02:00:00Z","start_date":"2026-11-18","end_date":"2026-11-19","version":"v1"}}',
    )
  })

  // nginx reads 4 KB by default.
  it.each([
    ['in one page', '', ['license']],
    ['in the middle of pages', '&limit=100&offset=200', ['prev', 'next', 'last']],
  ])('has headers under 2 KB %s, with ten ids of 15 digits', async (_where, page, relations) => {
    const ids = LONG_IDS.map((id) => `app_id=${id}`).join('&')
    const path = `/api/v1/datasets/app-rankings/daily?${ids}&start_date=2025-06-01${page}`
    const key = await api.makeKey('inference', 'long ids')
    const answer = await sendRaw(
      api.origin,
      `GET ${path} HTTP/1.1\r\nHost: rankings.example\r\nAuthorization: Bearer ${key}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n`,
    )
    const [head = ''] = answer.split('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1.1 200 /)
    for (const relation of relations) expect(head).toContain(`rel="${relation}"`)
    expect(head.length).toBeLessThan(2048)
  })

  it('is rejected for a negative app id', async () => {
    expect((await ask('?app_id=-3')).status).toBe(400)
  })

  it('is CSV on request', async () => {
    const response = await ask('?app_id=3&start_date=2025-01-01&end_date=2025-01-01&format=csv')
    expect(await response.text()).toBe(
      'day,app_id,app_name,requests,prompt_tokens,completion_tokens,total_tokens,coverage\n' +
        '2025-01-01,3,Three,1,5,0,5,complete\n',
    )
  })

  it('spans by default the 30 days that end with the data, and clamps both dates', async () => {
    expect(await (await ask('?app_id=1')).json()).toMatchObject({
      data: { length: 30 },
      meta: { start_date: '2026-10-21', end_date: LAST_DAY },
    })
    expect(await (await ask('?app_id=1&start_date=2024-01-01&end_date=2025-01-02')).json()).toMatchObject({
      data: [{ day: '2025-01-01' }, { day: '2025-01-02' }],
      meta: { start_date: '2025-01-01', end_date: '2025-01-02' },
    })
  })

  it('has pages of 366 days, with links to the last', async () => {
    const days: string[] = []
    let response = await ask('?app_id=1&start_date=2025-01-01')
    expect(response.headers.get('X-Total-Count')).toBe('688')
    const { last } = linksOf(response)
    for (;;) {
      const { data } = seriesSchema.parse(await response.json())
      expect(data.length).toBeGreaterThan(0)
      days.push(...data.map(({ day }) => day))
      const { next } = linksOf(response)
      if (next === undefined) break
      response = await ask(next.slice('/api/v1/datasets/app-rankings/daily'.length))
      expect(linksOf(response)['last']).toBe(last)
    }
    expect(new Set(days).size).toBe(688)
    expect([days[0], days[365], days[366], days.at(-1)]).toEqual([
      '2025-01-01',
      '2026-01-01',
      '2026-01-02',
      LAST_DAY,
    ])
  })

  it('is the same for any order of the apps, and 304 for its tag', async () => {
    const tags = await Promise.all(
      ['?app_id=1&app_id=2', '?app_id=2&app_id=1&app_id=1'].map(async (query) =>
        (await ask(query)).headers.get('ETag'),
      ),
    )
    expect(tags[0]).toBe(tags[1])
    const headers = { 'If-None-Match': tags[0] ?? '' }
    expect((await ask('?app_id=1&app_id=2', { headers })).status).toBe(304)
    expect((await ask('?app_id=1', { headers })).status).toBe(200)
  })

  it.each([
    ['', 'app_id', 'is missing'],
    ['?app_id=', 'app_id', 'is empty'],
    ['?app_id=one', 'app_id', 'sent "one"'],
    ['?app_id=9223372036854775808', 'app_id', 'is not valid'],
    ['?app_id=1&app_id=77', 'app_id', 'sent "77"'],
    [`?${Array.from({ length: 11 }, (_, id) => `app_id=${id}`).join('&')}`, 'app_id', 'at most 10 times'],
    ['?app_id=1&limit=367', 'limit', 'from 1 to 366'],
    ['?app_id=1&sort=popular', 'sort', 'is unknown'],
    ['?app_id=1&end_date=2024-12-31', 'end_date', '2025-01-01'],
    ['?app_id=1&start_date=2026-11-19&end_date=2026-11-18', 'start_date', 'not after the end'],
    ['?app_id=1&start_date=2026-11-20', 'start_date', 'not after the end'],
    ['?app_id=1&as_of=2020-01-01T00:00:00Z', 'as_of', 'retained'],
  ])('%s is 400 and names %s', async (query, parameter, message) => {
    const response = await ask(query)
    expect(response.status).toBe(400)
    const { error } = envelopeSchema.parse(await response.json())
    expect(error.message).toContain(`"${parameter}"`)
    expect(error.message).toContain(message)
  })

  it('needs a key, and counts against the limits of the rankings', async () => {
    expect((await api.get('/datasets/app-rankings/daily?app_id=1')).status).toBe(401)
    expect((await ask('?app_id=1')).headers.get('RateLimit')).toContain('"per-minute";r=29')
  })
})
