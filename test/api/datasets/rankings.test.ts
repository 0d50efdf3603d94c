/** CONTRACT 4.1, 4.2, 4.3 and 4.4: GET /datasets/app-rankings. */
import { writeFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import type { RankingMeta, RankingRow } from '../../../pipeline/contract/dataset.ts'
import { rankingsSchema, startApi, until, type Api } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { publishSnapshot, type SnapshotContent } from '../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

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

let api: Api
let now = AS_OF

beforeAll(async () => {
  const dataDir = folders.make()
  await publishSnapshot(dataDir, CONTENT)
  api = await startApi(dataDir, { clock: () => now })
})

afterAll(() => api.close())

const ask = (query = '', init?: RequestInit) => api.getAsNewAccount(`${PATH}${query}`, init)

async function rankings(query = '') {
  const response = await ask(query)
  expect(response.status).toBe(200)
  return rankingsSchema.parse(await response.json())
}

async function ranked(query: string): Promise<string[]> {
  return (await rankings(query)).data.map((row) => `${row.rank} ${row.app_id}`)
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

  it('sends the same bytes and headers for the same request', async () => {
    const [first, second] = await Promise.all([ask('?sort=trending'), ask('?limit=50&sort=trending')])
    expect(await first.text()).toBe(await second.text())
    expect(first.headers.get('ETag')).toBe(second.headers.get('ETag'))
  })

  it('has the row and meta types of the contract', () => {
    expectTypeOf<keyof RankingRow>().toEqualTypeOf<
      'app_id' | 'app_name' | 'rank' | 'total_requests' | 'total_tokens'
    >()
    expectTypeOf<RankingRow['total_tokens']>().toEqualTypeOf<string>()
    expectTypeOf<keyof RankingMeta>().toEqualTypeOf<'as_of' | 'start_date' | 'end_date' | 'version'>()
  })

  it('ranks by tokens, lower app_id first in a tie, without apps that were idle in the window', async () => {
    expect(await ranked('')).toEqual(['1 7', '2 3', '3 5'])
  })

  it('ranks by growth, without apps that did not grow', async () => {
    // App 5 had 1000 tokens in the preceding window: three times 100 is no growth.
    expect(await ranked('?sort=trending')).toEqual(['1 7', '2 3'])
  })

  it.each([
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

  it('echoes the resolved window', async () => {
    const { meta } = await rankings('?start_date=2020-01-01&end_date=2027-06-01')
    expect(meta).toMatchObject({ start_date: '2025-01-01', end_date: '2026-11-19' })
  })

  it('rejects a start after the last day of the data', async () => {
    const response = await ask('?start_date=2026-11-20')
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: { code: 400, metadata: { parameters: [{ parameter: 'start_date', sent: '2026-11-20' }] } },
    })
  })

  it('accepts keys of both kinds', async () => {
    expect((await api.get(PATH, await api.makeKey('management', 'managers'))).status).toBe(200)
  })
})

describe('caching of GET /datasets/app-rankings', () => {
  it('sends a strong tag, the time of the snapshot and the cache time', async () => {
    const { headers } = await ask('?category=coding&subcategory=cli-agent')
    expect(headers.get('ETag')).toBe(
      '"20261120T020007Z.popular.cli-agent.2026-10-21.2026-11-19.50.0.json.gzip"',
    )
    expect(headers.get('Content-Encoding')).toBe('gzip')
    expect(headers.get('Last-Modified')).toBe('Fri, 20 Nov 2026 02:00:07 GMT')
    expect(headers.get('Cache-Control')).toBe('private, max-age=300, must-revalidate')
    expect(headers.get('Vary')).toBe('Accept, Accept-Encoding, Authorization')
  })

  it('uses the coding that the client prefers, each with its own tag', async () => {
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
      const response = await ask('', { headers: { 'Accept-Encoding': accepted } })
      expect(response.headers.get('Content-Encoding')).toBe(coding)
      tags.add(response.headers.get('ETag'))
      bodies.add(await response.text())
    }
    expect(tags.size).toBe(3)
    expect(bodies.size).toBe(1)
  })

  it('sends no coding to a client that names none', async () => {
    const headers = { Authorization: `Bearer ${await api.makeKey()}` }
    const { promise, resolve } = Promise.withResolvers<IncomingMessage>()
    request(`${api.origin}/api/v1/datasets/app-rankings`, { headers }, resolve).end()
    const reply = await promise
    expect(reply.headers['content-encoding']).toBeUndefined()
    reply.destroy()
  })

  it('answers 304 without a body for a cached reply', async () => {
    const tag = (await ask()).headers.get('ETag') ?? ''
    const response = await ask('', { headers: { 'If-None-Match': tag } })
    expect(response.status).toBe(304)
    expect(await response.text()).toBe('')
    expect(response.headers.get('ETag')).toBe(tag)
    expect(response.headers.get('Cache-Control')).toBe('private, max-age=300, must-revalidate')
    expect((await ask('?limit=3', { headers: { 'If-None-Match': tag } })).status).toBe(200)
  })

  it('answers HEAD with the headers of GET and no body', async () => {
    const [get, head] = await Promise.all([ask('?limit=3'), ask('?limit=3', { method: 'HEAD' })])
    expect(head.status).toBe(200)
    expect(await head.text()).toBe('')
    for (const name of [
      'ETag',
      'Last-Modified',
      'Cache-Control',
      'Vary',
      'Content-Type',
      'RateLimit-Policy',
    ]) {
      expect(head.headers.get(name)).toBe(get.headers.get(name))
    }
  })
})

describe('rate limits of GET /datasets/app-rankings', () => {
  it('states the full quota on a 401, which does not count', async () => {
    const response = await api.get(PATH)
    expect(response.status).toBe(401)
    expect(remaining(response)).toEqual(['30', '500'])
    expect(response.headers.get('RateLimit-Policy')).toBe('"per-minute";q=30;w=60, "per-day";q=500;w=86400')
  })

  it('counts 200 and 400, but neither 304 nor HEAD', async () => {
    const key = await api.makeKey('inference', 'counted')
    const first = await api.get(PATH, key)
    expect(remaining(first)).toEqual(['29', '499'])
    const tag = first.headers.get('ETag') ?? ''
    expect(remaining(await api.get(PATH, key, { headers: { 'If-None-Match': tag } }))).toEqual(['29', '499'])
    expect(remaining(await api.get(PATH, key, { method: 'HEAD' }))).toEqual(['29', '499'])
    expect(remaining(await api.get(`${PATH}?limit=0`, key, { method: 'HEAD' }))).toEqual(['29', '499'])
    expect(remaining(await api.get(`${PATH}?limit=0`, key))).toEqual(['28', '498'])
    expect(remaining(await api.get(PATH, key, { headers: { 'If-None-Match': '"x"' } }))).toEqual([
      '27',
      '497',
    ])
  })

  it('rejects requests past the limit before it validates parameters, and names the limit', async () => {
    const key = await api.makeKey('inference', 'eager')
    let etag = ''
    for (let taken = 0; taken < 30; taken += 1) {
      const reply = await api.get(PATH, key)
      expect(reply.status).toBe(200)
      etag = reply.headers.get('ETag') ?? ''
    }
    for (const [query, init] of [
      ['', {}],
      ['?limit=0', {}],
      ['', { headers: { 'If-None-Match': '"another"' } }],
    ] as const) {
      const response = await api.get(`${PATH}${query}`, key, init)
      expect(response.status).toBe(429)
      expect(remaining(response)).toEqual(['0', '470'])
      expect(Number(response.headers.get('Retry-After'))).toBeGreaterThan(0)
      expect(response.headers.get('ETag')).toBeNull()
      expect(await response.json()).toMatchObject({
        error: {
          code: 429,
          metadata: { policy: 'per-minute', limit: 30, window_seconds: 60, retry_after: expect.any(Number) },
        },
        user_id: expect.any(String),
      })
    }
    // Requests that do not count are answered all the same (CONTRACT 4.5).
    for (const [status, init] of [
      [200, { method: 'HEAD' }],
      [304, { headers: { 'If-None-Match': etag } }],
      [304, { headers: { 'If-None-Match': '*' } }],
    ] as const) {
      const response = await api.get(PATH, key, init)
      expect(response.status).toBe(status)
      expect(remaining(response)).toEqual(['0', '470'])
    }

    now = new Date(AS_OF.getTime() + 60_000)
    expect((await api.get(PATH, key)).status).toBe(200)
    now = AS_OF
  })

  it('are stated on uncounted replies too', async () => {
    const resetOfDay = async () => {
      const response = await api.get(PATH)
      expect(response.status).toBe(401)
      return Number(/"per-day";r=500;t=(\d+)/.exec(response.headers.get('RateLimit') ?? '')?.[1])
    }
    const before = await resetOfDay()
    now = new Date(AS_OF.getTime() + 10_000)
    expect(await resetOfDay()).toBe(before - 10)
    now = AS_OF
  })
})

describe('GET /datasets/app-rankings before the first snapshot', () => {
  it('answers 503 with Retry-After, counts nothing, and serves the snapshot once it is published', async () => {
    const dataDir = folders.make()
    await using empty = await startApi(dataDir)
    const key = await empty.makeKey()
    const response = await empty.get(PATH, key)
    expect(response.status).toBe(503)
    expect(Number(response.headers.get('Retry-After'))).toBeGreaterThan(0)
    expect(response.headers.get('RateLimit')).toMatch(/"per-minute";r=30;.*"per-day";r=500;/)
    expect(await response.json()).toMatchObject({ error: { code: 503 } })
    expect((await empty.get(`${PATH}?limit=x`, key)).status).toBe(400)

    await publishSnapshot(dataDir, CONTENT)
    await until(async () => (await empty.get(PATH, key, { method: 'HEAD' })).status === 200)
  })

  it('reports a snapshot that cannot be opened differently', async () => {
    const dataDir = folders.make()
    const folder = await publishSnapshot(dataDir, CONTENT)
    writeFileSync(join(folder, 'app-rankings.duckdb'), 'no database')
    await using faulty = await startApi(dataDir)
    const response = await faulty.get(PATH, await faulty.makeKey())
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({
      error: {
        message: 'The snapshot of the dataset cannot be opened; the log of the service has the reason',
      },
    })
  })
})
