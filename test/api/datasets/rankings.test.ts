/** CONTRACT 4.1, 4.2, 4.3, 4.4, 4.5 and 4.6: GET /datasets/app-rankings: order, pages, caching, limits. */
import { beforeAll, describe, expect, it } from 'vitest'
import { rankingsSchema, startApi, until, type Api } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { expectSamePages, makeShaped, SHAPES } from '../../support/pipeline/shaped-snapshot.ts'
import { publishSnapshot, type SnapshotContent } from '../../support/pipeline/snapshot.ts'

const AS_OF = new Date('2026-11-20T02:00:07Z')
const LAST_DAY = '2026-11-19'
const PATH = '/datasets/app-rankings'

const CONTENT: SnapshotContent = {
  asOf: AS_OF,
  dataThrough: LAST_DAY,
  apps: [
    { id: 7, name: 'Größe "quoted" 😀', tags: ['cli-agent', 'game'] },
    { id: 3, name: 'Third', tags: ['cli-agent'] },
    { id: 5, name: 'Fifth', tags: ['legal'] },
    { id: 9, name: 'Idle', tags: ['game'] },
    { id: 11, name: 'Old', tags: ['ide-extension'] },
  ],
  daily: [
    { day: LAST_DAY, app: 7, requests: 3, tokens: 2n ** 63n - 1n, completion: 2n ** 63n - 1n },
    { day: '2026-11-18', app: 7, requests: 4, tokens: 2n ** 63n - 1n },
    { day: LAST_DAY, app: 3, requests: 2, tokens: 60, completion: 40 },
    { day: '2026-10-21', app: 5, requests: 1, tokens: 100 },
    { day: '2026-10-20', app: 5, requests: 1, tokens: 1_000 },
    { day: '2026-10-01', app: 11, requests: 1, tokens: 5_000 },
  ],
}

/** 250 apps with the same total, so that only the tie-break orders them. */
const IDS = Array.from({ length: 250 }, (_, index) => (index * 97) % 250)
const TIES: SnapshotContent = {
  asOf: AS_OF,
  dataThrough: LAST_DAY,
  apps: IDS.map((id) => ({ id, name: `App ${id}`, tags: id < 20 ? ['game' as const] : [] })),
  daily: IDS.map((app) => ({ day: LAST_DAY, app, tokens: 10 })),
}

let api: Api
let ties: Api
let now = AS_OF

beforeAll(async () => {
  const [dataDir, dataOfTies] = [makeFolder(), makeFolder()]
  await publishSnapshot(dataDir, CONTENT)
  await publishSnapshot(dataOfTies, TIES)
  api = await startApi(dataDir, { clock: () => now })
  ties = await startApi(dataOfTies)
})

const ask = (query = '', init?: RequestInit) => api.getAsNewAccount(`${PATH}${query}`, init)

async function ranked(query: string): Promise<string[]> {
  const response = await ask(query)
  expect(response.status).toBe(200)
  return rankingsSchema.parse(await response.json()).data.map((row) => `${row.rank} ${row.app_id}`)
}

/** The rest of the minute and of the day. */
function remaining(response: Response): string[] | undefined {
  const field = response.headers.get('RateLimit') ?? ''
  return /"per-minute";r=(\d+);t=\d+, "per-day";r=(\d+);t=\d+/.exec(field)?.slice(1)
}

describe('GET /datasets/app-rankings', () => {
  it('replies with these bytes', async () => {
    const response = await ask('?limit=2')
    expect(response.headers.get('Content-Type')).toBe('application/json; charset=utf-8')
    expect(await response.text()).toBe(
      '{"data":[' +
        '{"app_id":7,"app_name":"Größe \\"quoted\\" 😀","rank":1,"total_requests":7,"total_tokens":"27670116110564327421"},' +
        '{"app_id":3,"app_name":"Third","rank":2,"total_requests":2,"total_tokens":"100"}' +
        '],"meta":{"as_of":"2026-11-20T02:00:07Z","start_date":"2026-10-21","end_date":"2026-11-19","version":"v1"}}',
    )
  })

  it.each([
    // Without apps that were idle in the window.
    ['', ['1 7', '2 3', '3 5']],
    // App 5 had 1000 tokens in the preceding window: three times 100 is no growth.
    ['?sort=trending', ['1 7', '2 3']],
    ['?category=coding', ['1 7', '2 3']],
    ['?category=entertainment', ['1 7']],
    ['?category=productivity', ['1 5']],
    ['?category=creative', []],
    ['?subcategory=cli-agent', ['1 7', '2 3']],
    ['?subcategory=ide-extension&start_date=2026-10-01', ['1 11']],
    ['?sort=trending&subcategory=legal', []],
    ['?end_date=2026-11-18&start_date=2026-11-18', ['1 7']],
    ['?offset=1', ['2 3', '3 5']],
    ['?offset=1&limit=1', ['2 3']],
    ['?offset=100', []],
  ])('%s gives %j', async (query, expected) => {
    expect(await ranked(query)).toEqual(expected)
  })
})

// test/system/ draws more windows over more shapes.
it.each(['steep', 'bursting'] as const)(
  'pages over data that are %s are the pages of all apps, whether or not the candidates prove them',
  async (name) => {
    const windows = 50
    const snapshot = await makeShaped(SHAPES[name], 1, { apps: 60, level: 3, rowShare: 100 })
    const proven = await expectSamePages(snapshot, windows, 1)
    expect(proven).toBeGreaterThan(0)
    expect(proven).toBeLessThan(windows)
    await snapshot.close()
  },
)

describe('pages of GET /datasets/app-rankings', () => {
  it.each(['popular', 'trending'])('of %s have absolute ranks without gap or overlap', async (sort) => {
    const pages = ['offset=0&limit=40', 'offset=40&limit=60', 'offset=100&limit=100'].map(async (page) => {
      const response = await ties.getAsNewAccount(`${PATH}?sort=${sort}&${page}`)
      return rankingsSchema.parse(await response.json()).data
    })
    const rows = (await Promise.all(pages)).flat().map(({ rank, app_id }) => [rank, app_id])
    expect(rows).toEqual(Array.from({ length: 200 }, (_, index) => [index + 1, index]))
  })

  // No link leads to an empty page, or to a rank twice; ranks end at 200.
  it.each([
    ['limit=50', '200', { next: [50, 50], last: [50, 100] }],
    ['limit=50&offset=50', '200', { prev: [50, 0], next: [50, 100], last: [50, 100] }],
    ['limit=50&offset=51', '200', { prev: [50, 1], last: [50, 51] }],
    ['limit=2&offset=1', '200', { prev: [1, 0], next: [2, 3], last: [2, 99] }],
    ['limit=100&offset=100', '200', { prev: [100, 0], last: [100, 100] }],
    ['limit=10&category=entertainment', '20', { next: [10, 10], last: [10, 10] }],
    ['limit=10&offset=10&category=entertainment', '20', { prev: [10, 0], last: [10, 10] }],
    ['limit=10&offset=90&category=entertainment', '20', { prev: [10, 10], last: [10, 10] }],
    ['limit=20&category=entertainment', '20', {}],
    ['limit=10&offset=90&category=coding', '0', {}],
  ])('%s of %s ranks link to %j', async (query, total, expected) => {
    const { headers } = await ties.getAsNewAccount(`${PATH}?${query}`)
    const pages = [
      ...(headers.get('Link') ?? '').matchAll(/limit=(\d+)&offset=(\d+)>; rel="(prev|next|last)"/g),
    ].map(([, limit, offset, relation]) => [relation, [Number(limit), Number(offset)]])
    expect(Object.fromEntries(pages)).toEqual(expected)
    expect(headers.get('X-Total-Count')).toBe(total)
  })
})

describe('caching of GET /datasets/app-rankings', () => {
  it('sends a strong tag, the time of the snapshot and the cache time, and for its tag 304 without a body', async () => {
    const query = '?category=coding&subcategory=cli-agent'
    const validators = {
      etag: '"app-rankings.popular.cli-agent.2026-10-21.2026-11-19.50.0.20261120T020007Z.json.gzip"',
      'last-modified': 'Fri, 20 Nov 2026 02:00:07 GMT',
      'cache-control': 'private, max-age=300, must-revalidate',
      vary: 'Accept, Accept-Encoding, Authorization',
    }
    const known = { headers: { 'If-None-Match': validators.etag } }
    const [whole, reply] = [await ask(query), await ask(query, known)]
    expect([whole.status, whole.headers.get('Content-Encoding')]).toEqual([200, 'gzip'])
    expect([reply.status, await reply.text()]).toEqual([304, ''])
    for (const { headers } of [whole, reply]) expect(Object.fromEntries(headers)).toMatchObject(validators)
    expect((await ask('?limit=3', known)).status).toBe(200)
  })

  it('uses the coding that the client prefers, each with its own tag and the same bytes', async () => {
    const tags = new Set<string | null>()
    const bodies = new Set<string>()
    for (const [accepted, coding] of [
      ['identity', null],
      ['gzip', 'gzip'],
      ['br;q=0.5, gzip', 'gzip'],
      ['br, gzip', 'br'],
      ['compress', null],
      ['', null],
    ] as const) {
      // The default limit is that of the first request, written out.
      for (const query of ['?sort=trending', '?limit=50&sort=trending']) {
        const response = await ask(query, { headers: { 'Accept-Encoding': accepted } })
        expect(response.headers.get('Content-Encoding')).toBe(coding)
        tags.add(response.headers.get('ETag'))
        bodies.add(await response.text())
      }
    }
    expect([tags.size, bodies.size]).toEqual([3, 1])
  })

  it.each(['json', 'arrow'])('answers HEAD as %s with the headers of GET and no body', async (format) => {
    const query = `?category=creative&format=${format}`
    const [get, head] = await Promise.all([ask(query), ask(query, { method: 'HEAD' })])
    expect([head.status, await head.text()]).toEqual([200, ''])
    const names = 'ETag Last-Modified Cache-Control Vary Link Content-Type RateLimit-Policy'.split(' ')
    const sent = names.map((name) => get.headers.get(name))
    expect(sent).not.toContain(null)
    expect(names.map((name) => head.headers.get(name))).toEqual(sent)
  })
})

describe('rate limits of GET /datasets/app-rankings', () => {
  it('are stated in full on a 401, which does not count, until the end of their time', async () => {
    const resetOfDay = async () => {
      const response = await api.get(`${PATH}?limit=x`)
      expect(response.status).toBe(401)
      expect(remaining(response)).toEqual(['30', '500'])
      expect(response.headers.get('RateLimit-Policy')).toBe('"per-minute";q=30;w=60, "per-day";q=500;w=86400')
      return Number(/"per-day";r=500;t=(\d+)/.exec(response.headers.get('RateLimit') ?? '')?.[1])
    }
    const before = await resetOfDay()
    now = new Date(AS_OF.getTime() + 10_000)
    expect(await resetOfDay()).toBe(before - 10)
    now = AS_OF
  })

  it('count 200 and 400 alone; past them what counts is refused before parameters are validated, by the name of the limit', async () => {
    const key = await api.makeKey('inference', 'counted')
    const tag = (await ask()).headers.get('ETag') ?? ''
    const known = { headers: { 'If-None-Match': tag } }
    const other = { headers: { 'If-None-Match': '"another"' } }
    const send = async (status: number, query: string, init: RequestInit, rest: readonly string[]) => {
      const response = await api.get(`${PATH}${query}`, key, init)
      expect([query, response.status, remaining(response)]).toEqual([query, status, rest])
      return response
    }
    await send(200, '', {}, ['29', '499'])
    await send(304, '', known, ['29', '499'])
    await send(200, '', { method: 'HEAD' }, ['29', '499'])
    await send(400, '?limit=0', { method: 'HEAD' }, ['29', '499'])
    await send(400, '?limit=0', {}, ['28', '498'])
    for (let left = 27; left >= 0; left -= 1) await send(200, '', other, [String(left), String(left + 470)])

    await send(200, '', { method: 'HEAD' }, ['0', '470'])
    await send(304, '', known, ['0', '470'])
    await send(304, '', { headers: { 'If-None-Match': '*' } }, ['0', '470'])
    for (const [query, init] of [
      ['', {}],
      ['?limit=0', {}],
      ['', other],
    ] as const) {
      const response = await send(429, query, init, ['0', '470'])
      expect(Number(response.headers.get('Retry-After'))).toBeGreaterThan(0)
      expect(response.headers.get('ETag')).toBeNull()
      const rule = { policy: 'per-minute', limit: 30, window_seconds: 60 }
      const metadata = { ...rule, retry_after: expect.any(Number) }
      expect(await response.json()).toMatchObject({ error: { metadata }, user_id: expect.any(String) })
    }
    now = new Date(AS_OF.getTime() + 60_000)
    await send(200, '', {}, ['29', '469'])
    now = AS_OF
  })

  it('do not count a 503 before the first snapshot, which is served once it is published', async () => {
    const dataDir = makeFolder()
    await using empty = await startApi(dataDir)
    const key = await empty.makeKey()
    const response = await empty.get(PATH, key)
    expect(Number(response.headers.get('Retry-After'))).toBeGreaterThan(0)
    expect(remaining(response)).toEqual(['30', '500'])
    expect(await response.json()).toMatchObject({ error: { code: 503 } })
    expect((await empty.get(`${PATH}?limit=x`, key)).status).toBe(400)

    await publishSnapshot(dataDir, CONTENT)
    await until(async () => (await empty.get(PATH, key, { method: 'HEAD' })).status === 200)
  })
})
