/**
 * CONTRACT 4.6: snapshots of the pipeline over HTTP: the list, the files, ranges, and rankings as of an earlier one.
 */
import { createHash } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { SNAPSHOTS_PATH } from '../../../../pipeline/contract/files.ts'
import { retractionSchema } from '../../../../pipeline/contract/snapshot-record.ts'
import { envelopeSchema, rankingsSchema, startApi, until, type Api } from '../../../support/api.ts'
import { runAt } from '../../../support/pipeline/in-process.ts'
import { runCommand, TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'

const FIRST = '20260107T020000Z'
const SECOND = '20260108T020000Z'
const LIST = '/datasets/app-rankings/snapshots'
const RANKINGS = '/datasets/app-rankings'

const folders = new TemporaryFolders()
const dataDir = folders.make()
let api: Api

function deliver(day: string, tokens: number): void {
  const rows = [1, 2, 3].map((app) => `${day}T12:00:00Z,${app},${tokens * app},0`)
  writeRaw(
    dataDir,
    `usage/date=${day}/rows.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${rows.join('\n')}\n`,
  )
}

beforeAll(async () => {
  const apps = [1, 2, 3].map((app) => `${app},App ${app},public,2025-01-01`)
  writeRaw(dataDir, 'apps/registry.csv', `app_id,app_name,visibility,updated_at\n${apps.join('\n')}\n`)
  deliver('2025-10-01', 5)
  deliver('2026-01-06', 10)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  deliver('2026-01-07', 20)
  await runAt(dataDir, '2026-01-08T02:00:00Z')
  api = await startApi(dataDir)
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

const fileSchema = z.strictObject({
  name: z.string(),
  media_type: z.string(),
  bytes: z.int(),
  sha256: z.string(),
  url: z.string(),
})
const entrySchema = z.strictObject({
  id: z.string(),
  as_of: z.string(),
  first_day: z.string(),
  data_through: z.string(),
  version: z.literal('v1'),
  days_restated: z.int(),
  publisher: z.string(),
  url: z.string(),
  attribution: z.string(),
  rows: z.record(z.string(), z.int()),
  files: z.array(fileSchema),
  total_requests: z.string(),
  total_tokens: z.string(),
  state: z.literal('retained'),
  current: z.boolean(),
})

async function list() {
  const response = await api.get(LIST)
  expect(response.status).toBe(200)
  return z
    .strictObject({ data: z.array(entrySchema), total_count: z.int(), retracted: z.array(retractionSchema) })
    .parse(await response.json())
}

async function rankings(search: string, init: RequestInit = {}): Promise<Response> {
  return await api.get(`${RANKINGS}${search}`, await api.makeKey('inference', `a${Math.random()}`), init)
}

describe('a month of app_daily', () => {
  const MONTH = 'app_daily/month=2025-10.parquet'
  const get = (path: string, init?: RequestInit) => api.get(`${LIST}/${path}`, undefined, init)

  it('has the same tag in every snapshot while its rows do not change, so it is fetched once', async () => {
    const [old, now] = await Promise.all([get(`${FIRST}/${MONTH}`), get(`latest/${MONTH}`)])
    expect(now.url).toBe(`${api.base}${LIST}/${SECOND}/${MONTH}`)
    const tag = String(old.headers.get('ETag'))
    expect(now.headers.get('ETag')).toBe(tag)
    const [before, after] = await Promise.all([old.bytes(), now.bytes()])
    expect(after).toEqual(before)
    const again = await get(`latest/${MONTH}`, { headers: { 'If-None-Match': tag } })
    expect(again.status).toBe(304)
    const part = await get(`${SECOND}/${MONTH}`, { headers: { Range: 'bytes=0-3', 'If-Range': tag } })
    expect([part.status, await part.text()]).toEqual([206, 'PAR1'])
  })

  it('has a file name with its table', async () => {
    const names = ['app_daily/month=2025-10.parquet', 'model_daily/month=2025-10.parquet']
    const replies = await Promise.all(names.map((name) => get(`${SECOND}/${name}`)))
    expect(
      replies.map(({ headers }) => [headers.get('Content-Type'), headers.get('Content-Disposition')]),
    ).toEqual([
      ['application/vnd.apache.parquet', 'attachment; filename="app_daily-2025-10.parquet"'],
      ['application/vnd.apache.parquet', 'attachment; filename="model_daily-2025-10.parquet"'],
    ])
  })

  it('stands in croissant.json with a whole address, where the folder has a relative one', async () => {
    const reply = await get(`${SECOND}/croissant.json`)
    const { distribution } = z
      .object({ distribution: z.array(z.object({ name: z.string(), contentUrl: z.string() })) })
      .parse(await reply.json())
    expect(distribution.map(({ name }) => name)).toContain(MONTH)
    for (const { name, contentUrl } of distribution)
      expect(contentUrl).toBe(`${api.base}${LIST}/${SECOND}/${name}`)
    const tag = String(reply.headers.get('ETag'))
    expect((await get(`${SECOND}/croissant.json`, { headers: { 'If-None-Match': tag } })).status).toBe(304)
  })

  it('has another tag in a snapshot with other rows', async () => {
    const month = 'app_daily/month=2026-01.parquet'
    const replies = await Promise.all([FIRST, SECOND].map((id) => get(`${id}/${month}`)))
    expect(new Set(replies.map(({ headers }) => headers.get('ETag'))).size).toBe(2)
  })

  it.each([
    'month=2020-01.parquet',
    '..%2Frankings.csv',
    '%2e%2e%2frankings.csv',
    'month=2025-10.parquet%00',
  ])('does not exist under the name %s', async (name) => {
    expect((await get(`${SECOND}/app_daily/${name}`)).status).toBe(404)
  })
})

describe('the list', () => {
  it('lists the retained snapshots, newest first, without a key', async () => {
    const { data, total_count } = await list()
    expect(total_count).toBe(2)
    expect(data.map(({ id, current }) => [id, current])).toEqual([
      [SECOND, true],
      [FIRST, false],
    ])
    expect(data[0]).toMatchObject({
      as_of: '2026-01-08T02:00:00Z',
      first_day: '2025-10-01',
      data_through: '2026-01-07',
      rows: { apps: 3, app_daily: 9, restatements: 0 },
    })
  })

  it('lists every file with its checksum and size', async () => {
    const [newest] = (await list()).data
    expect(newest?.files.map(({ name }) => name)).toContain('SHA256SUMS')
    for (const { url, sha256, bytes, media_type } of newest?.files ?? []) {
      const response = await fetch(`${api.origin}${url}`)
      const body = Buffer.from(await response.arrayBuffer())
      expect(createHash('sha256').update(body).digest('hex')).toBe(sha256)
      expect(body.length).toBe(bytes)
      expect(response.headers.get('Content-Type')).toBe(media_type)
    }
  })

  it('is revalidated with a tag, and open to the scripts of any page', async () => {
    const first = await api.get(LIST)
    expect(first.headers.get('Access-Control-Allow-Origin')).toBe('*')
    const tag = first.headers.get('ETag') ?? ''
    const again = await api.get(LIST, undefined, { headers: { 'If-None-Match': tag } })
    expect(again.status).toBe(304)
  })

  it('is compressed for clients that accept it, each coding with its own tag', async () => {
    const replies = await Promise.all(
      ['identity', 'gzip', 'br'].map((coding) =>
        api.get(LIST, undefined, { headers: { 'Accept-Encoding': coding } }),
      ),
    )
    expect(replies.map(({ headers }) => headers.get('Content-Encoding'))).toEqual([null, 'gzip', 'br'])
    expect(new Set(replies.map(({ headers }) => headers.get('ETag'))).size).toBe(3)
    expect(replies.map(({ headers }) => headers.get('Vary'))).toEqual(Array(3).fill('Accept-Encoding'))
    const [plain, ...compressed] = await Promise.all(replies.map((reply) => reply.text()))
    expect(compressed).toEqual([plain, plain])
  })

  it('shows one snapshot by its id, and redirects from latest to the newest', async () => {
    const one = z.strictObject({ data: entrySchema }).parse(await (await api.get(`${LIST}/${FIRST}`)).json())
    expect(one.data).toMatchObject({ id: FIRST, current: false })
    const latest = await api.get(`${LIST}/latest/apps.csv`)
    expect(latest.url).toBe(`${api.base}${LIST}/${SECOND}/apps.csv`)
    // An encoded name stays encoded.
    const strange = await api.get(`${LIST}/latest/..%2F%3Fx`, undefined, { redirect: 'manual' })
    expect(strange.headers.get('Location')).toBe(`${SNAPSHOTS_PATH}/${SECOND}/..%2F%3Fx`)
    expect(await strange.text()).toBe('')
    expect(strange.headers.get('Vary')).toBeNull()
  })
})

describe('a file', () => {
  const path = `${LIST}/${SECOND}/app-rankings.duckdb`
  const onDisk = () => readFileSync(join(dataDir, 'snapshots', SECOND, 'app-rankings.duckdb'))

  it('never changes: strong tag, immutable, digest, no key needed', async () => {
    const response = await api.get(path)
    const sum = createHash('sha256').update(onDisk())
    const hex = sum.copy().digest('hex')
    expect(Object.fromEntries(response.headers)).toMatchObject({
      etag: `"${hex}"`,
      'cache-control': 'public, max-age=31536000, immutable, no-transform',
      'last-modified': 'Thu, 08 Jan 2026 02:00:00 GMT',
      'repr-digest': `sha-256=:${sum.digest('base64')}:`,
      'accept-ranges': 'bytes',
    })
    await response.arrayBuffer()
    const unchanged = await api.get(path, undefined, { headers: { 'If-None-Match': `"${hex}"` } })
    expect(unchanged.status).toBe(304)
  })

  it('is readable in pieces, as DuckDB reads a remote file: HEAD, then ranges', async () => {
    const head = await api.get(path, undefined, { method: 'HEAD' })
    const size = Number(head.headers.get('Content-Length'))
    expect(size).toBe(onDisk().length)
    const tag = head.headers.get('ETag') ?? ''
    const pieces: Buffer[] = []
    const step = Math.ceil(size / 7)
    for (let start = 0; start < size; start += step) {
      const end = Math.min(size, start + step) - 1
      const piece = await api.get(path, undefined, {
        headers: { Range: `bytes=${start}-${end}`, 'If-Range': tag },
      })
      expect(piece.status).toBe(206)
      expect(piece.headers.get('Content-Range')).toBe(`bytes ${start}-${end}/${size}`)
      pieces.push(Buffer.from(await piece.arrayBuffer()))
    }
    expect(Buffer.concat(pieces).equals(onDisk())).toBe(true)
  })

  it('returns its end, and its length for a range outside', async () => {
    const tail = await api.get(path, undefined, { headers: { Range: 'bytes=-8' } })
    expect(Buffer.from(await tail.arrayBuffer()).equals(onDisk().subarray(-8))).toBe(true)
    const outside = await api.get(path, undefined, { headers: { Range: 'bytes=999999999-' } })
    expect(outside.status).toBe(416)
    expect(outside.headers.get('Content-Range')).toBe(`bytes */${onDisk().length}`)
    expect(envelopeSchema.parse(await outside.json()).error.code).toBe(416)
  })

  it('is sent whole for a suffix range longer than it', async () => {
    const tail = await api.get(path, undefined, { headers: { Range: 'bytes=-999999999' } })
    expect(tail.status).toBe(206)
    expect(tail.headers.get('Content-Range')).toBe(`bytes 0-${onDisk().length - 1}/${onDisk().length}`)
    expect(Buffer.from(await tail.arrayBuffer()).equals(onDisk())).toBe(true)
  })

  it('is sent whole for a range with a weak tag', async () => {
    const tag = (await api.get(path, undefined, { method: 'HEAD' })).headers.get('ETag')
    const whole = await api.get(path, undefined, { headers: { Range: 'bytes=0-9', 'If-Range': `W/${tag}` } })
    expect(whole.status).toBe(200)
    expect((await whole.arrayBuffer()).byteLength).toBe(onDisk().length)
  })

  it.each<Readonly<Record<string, string>>>([{ Range: 'bytes=999999999-' }, { 'If-Match': '"another"' }])(
    'an error about %j is not cacheable as the file',
    async (headers) => {
      const refused = await api.get(path, undefined, { headers })
      expect(refused.headers.get('Cache-Control')).toBe('no-store')
      for (const name of ['ETag', 'Last-Modified', 'Repr-Digest', 'Link'])
        expect(refused.headers.get(name)).toBeNull()
    },
  )

  it('is a 500 if it is missing on disk, and the reply shows no path', async () => {
    const file = join(dataDir, 'snapshots', SECOND, 'coverage.csv')
    const bytes = readFileSync(file)
    rmSync(file)
    const response = await api.get(`${LIST}/${SECOND}/coverage.csv`)
    writeFileSync(file, bytes)
    expect(response.status).toBe(500)
    expect(response.headers.get('Cache-Control')).toBe('no-store')
    expect(envelopeSchema.parse(await response.json()).error.message).toMatch(
      /^Unexpected server error; quote/,
    )
  })

  it.each([
    [`${LIST}/${SECOND}/warehouse.duckdb`, 'has no file "warehouse.duckdb"; it has: app-rankings.duckdb'],
    [`${LIST}/${SECOND}/..%2F..%2Fservice.sqlite`, 'has no file "../../service.sqlite"'],
    [`${LIST}/${SECOND}/report.json`, 'has no file "report.json"'],
    [`${LIST}/20200101T000000Z/apps.csv`, 'No such snapshot: "20200101T000000Z"'],
    [`${LIST}/..%2F..`, 'No such snapshot: "../.."'],
  ])('%s is 404', async (wrong, message) => {
    const response = await api.get(wrong)
    expect(response.status).toBe(404)
    expect(envelopeSchema.parse(await response.json()).error.message).toContain(message)
  })
})

describe('as_of', () => {
  it('answers from that snapshot exactly as it was published', async () => {
    const then = rankingsSchema.parse(await (await rankings('?as_of=2026-01-07T02:00:00Z')).json())
    expect(then.meta).toMatchObject({ as_of: '2026-01-07T02:00:00Z', end_date: '2026-01-06' })
    expect(then.data.map(({ app_id, total_tokens }) => [app_id, total_tokens])).toEqual([
      [3, '30'],
      [2, '20'],
      [1, '10'],
    ])
    const now = rankingsSchema.parse(await (await rankings('')).json())
    expect(now.data[0]).toMatchObject({ app_id: 3, total_tokens: '90' })
  })

  it.each(['2026-01-07T02:00:00.000Z', '2026-01-07T03:00:00%2B01:00'])(
    '%s is the same time',
    async (time) => {
      expect((await rankings(`?as_of=${time}`)).status).toBe(200)
    },
  )

  it.each([
    [
      '2026-01-07T02:00:01Z',
      `sent "2026-01-07T02:00:01Z", allowed: the as_of of a retained snapshot; ${SNAPSHOTS_PATH} lists them`,
    ],
    ['2026-01-07T02:00:00.5Z', 'sent "2026-01-07T02:00:00.5Z", allowed: the as_of of a retained snapshot'],
    ['yesterday', 'allowed: the time of a snapshot, such as 2026-11-20T02:00:00Z'],
  ])('%s is rejected with 400', async (time, message) => {
    const response = await rankings(`?as_of=${time}`)
    expect(response.status).toBe(400)
    expect(envelopeSchema.parse(await response.json()).error.message).toContain(message)
  })
})

/** The targets of a Link field by relation; the last one of equal relations. */
function linksOf(response: Response): Record<string, string> {
  const field = response.headers.get('Link') ?? ''
  return Object.fromEntries(
    [...field.matchAll(/<([^>]*)>; rel="([^"]+)"/g)].map(([, target = '', relation = '']) => [
      relation,
      target,
    ]),
  )
}

describe('links', () => {
  it('lead from page to page inside one snapshot, even if a newer one becomes current meanwhile', async () => {
    const first = await rankings('?limit=1')
    const { next = '' } = linksOf(first)
    expect(next).toContain('as_of=20260108T020000Z')
    deliver('2026-01-08', 1000)
    await runAt(dataDir, '2026-01-09T02:00:00Z')
    await until(async () => {
      const meta = rankingsSchema.parse(await (await rankings('')).json()).meta
      return meta.as_of === '2026-01-09T02:00:00Z'
    })
    const second = await fetch(new URL(next, first.url), {
      headers: { Authorization: `Bearer ${await api.makeKey('inference', 'second page')}` },
    })
    const page = rankingsSchema.parse(await second.json())
    expect(page.meta.as_of).toBe('2026-01-08T02:00:00Z')
    expect(page.data).toMatchObject([{ rank: 2, app_id: 2 }])
    expect(linksOf(second)).toMatchObject({ prev: expect.stringContaining('offset=0') })
  })

  it('lead back to the previous ranks, and to no rank twice', async () => {
    const page = await rankings('?limit=2&offset=1')
    const { prev = '' } = linksOf(page)
    expect(prev).toContain('limit=1&offset=0')
    const back = linksOf(await rankings(`?limit=1&offset=2`))['prev']
    expect(back).toContain('limit=1&offset=1')
  })

  it('end with the last page', async () => {
    expect(linksOf(await rankings('?limit=100'))).not.toHaveProperty('next')
    expect(linksOf(await rankings('?limit=1&offset=100'))).not.toHaveProperty('next')
  })

  it('name licence, metadata, citation and newest version, nothing else, and each local one exists', async () => {
    const response = await rankings('?category=coding')
    const links = linksOf(response)
    expect(links['license']).toBe('https://creativecommons.org/licenses/by/4.0/')
    const relations = ['cite-as', 'describedby', 'latest-version', 'license']
    expect(Object.keys(links).toSorted()).toEqual(relations)
    for (const relation of ['describedby', 'cite-as', 'latest-version']) {
      expect((await fetch(`${api.origin}${links[relation]}`)).status, relation).toBe(200)
    }
  })
})

describe('pages of other origins', () => {
  it('may send a key, and read the relevant headers', async () => {
    const preflight = await api.get(RANKINGS, undefined, {
      method: 'OPTIONS',
      headers: { Origin: 'https://page.example', 'Access-Control-Request-Headers': 'authorization' },
    })
    expect(preflight.status).toBe(204)
    // The star allows the clients' own headers, but never Authorization.
    const allowed = preflight.headers.get('Access-Control-Allow-Headers')?.split(', ')
    expect(allowed).toEqual(expect.arrayContaining(['Authorization', '*']))
    const refused = await api.get(RANKINGS)
    expect(refused.status).toBe(401)
    expect(refused.headers.get('Access-Control-Allow-Origin')).toBe('*')
    expect(refused.headers.get('Access-Control-Expose-Headers')).toBe('*')
  })
})

it('a snapshot without files is not listed, and its time is 410', async () => {
  rmSync(join(dataDir, 'snapshots', FIRST), { recursive: true })
  expect((await list()).data.map(({ id }) => id)).not.toContain(FIRST)
  expect((await rankings('?as_of=2026-01-07T02:00:00Z')).status).toBe(410)
})

it('a retracted snapshot is 410 with the reason at every address', async () => {
  const ended = await runCommand(dataDir, 'retract', SECOND, '--reason', 'Counted twice')
  expect(ended.code).toBe(0)
  const asked = [
    await api.get(`${LIST}/${SECOND}`),
    await api.get(`${LIST}/${SECOND}/apps.csv`),
    await rankings('?as_of=2026-01-08T02:00:00Z'),
  ]
  for (const response of asked) {
    expect(response.status).toBe(410)
    expect(envelopeSchema.parse(await response.json()).error).toMatchObject({
      message: `Snapshot ${SECOND} was retracted: Counted twice. The nearest retained snapshot is 20260109T020000Z`,
      metadata: { snapshot: SECOND, reason: 'Counted twice' },
    })
  }
  expect((await list()).retracted.map(({ id, reason }) => [id, reason])).toEqual([[SECOND, 'Counted twice']])
})
