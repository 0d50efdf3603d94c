/** CONTRACT 4.6: snapshots over HTTP: list, files, ranges, `as_of`, links, and citations after a prune and a retraction. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import {
  envelopeSchema,
  linksOf,
  rankingsSchema,
  served,
  startApi,
  statusOf,
  type Api,
} from '../../../support/api.ts'
import { runAt } from '../../../support/pipeline/in-process.ts'
import { deliver, runCommand, withApps } from '../../../support/pipeline/nightly.ts'

const FIRST = '20260107T020000Z'
const SECOND = '20260131T020000Z'
const WITHDRAWN = '20260203T020000Z'
const NEWEST = '20260205T020000Z'
const RANKINGS = '/datasets/app-rankings'
const LIST = `${RANKINGS}/snapshots`
const LIST_PATH = `/api/v1${LIST}`
const REASON = 'Counted twice <b>.'

const dataDir = withApps('App 1', 'App 2', 'App 3')
let api: Api

/** Usage of a day by the apps: once, twice and three times `tokens`. */
function use(day: string, tokens: number): void {
  const rows = [1, 2, 3].map((app) => `${app},${tokens * app},0`)
  deliver(dataDir, day, rows)
}

/** Runs a command of `npm run nightly` at this time. */
async function commandAt(time: string, ...args: readonly string[]): Promise<void> {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date(time) })
  const ended = await runCommand(dataDir, ...args)
  vi.useRealTimers()
  expect(ended.code, ended.stderr).toBe(0)
}

beforeAll(async () => {
  use('2025-10-01', 5)
  use('2026-01-06', 10)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  use('2026-01-30', 20)
  await runAt(dataDir, '2026-01-31T02:00:00Z')
  api = await startApi(dataDir)
})

const entrySchema = z.looseObject({
  id: z.string(),
  state: z.string(),
  current: z.boolean(),
  files: z.array(
    z.strictObject({
      name: z.string(),
      bytes: z.int(),
      sha256: z.string().regex(/^[0-9a-f]{64}$/),
      media_type: z.string(),
      url: z.string(),
    }),
  ),
})
const listSchema = z.strictObject({
  data: z.array(entrySchema),
  total_count: z.int(),
  retracted: z.array(z.looseObject({ id: z.string(), reason: z.string() })),
})

/** A reply below the list; `headers` of the request. */
const get = (path: string, headers: Readonly<Record<string, string>> = {}, init: RequestInit = {}) =>
  api.get(`${LIST}${path}`, undefined, { ...init, headers: { ...headers } })

const list = async (search = '') => listSchema.parse(await (await get(search)).json())
const rankings = (search: string) => api.getAsNewAccount(`${RANKINGS}${search}`)
const messageOf = async (reply: Response) => envelopeSchema.parse(await reply.json()).error.message

describe('the list', () => {
  it('has the retained snapshots, newest first, without a key, in pages', async () => {
    const { data, total_count } = await list()
    expect(total_count).toBe(2)
    expect(data.map(({ id, current }) => [id, current])).toEqual([
      [SECOND, true],
      [FIRST, false],
    ])
    expect(data[0]).toMatchObject({
      as_of: '2026-01-31T02:00:00Z',
      first_day: '2025-10-01',
      data_through: '2026-01-30',
      rows: { apps: 3, app_daily: 9, restatements: 0 },
    })
    const { next = '' } = linksOf(await get('?limit=1'))
    expect((await list(next.slice(LIST_PATH.length))).data.map(({ id }) => id)).toEqual([FIRST])
  })

  it('has every file with its checksum and size; the monthly ones at the address of the snapshot', async () => {
    const [newest] = (await list()).data
    expect(newest?.files.map(({ name }) => name)).toContain('SHA256SUMS')
    const { data: one } = z.strictObject({ data: entrySchema }).parse(await (await get(`/${SECOND}`)).json())
    const months = one.files.filter(({ name }) => name.includes('/month='))
    expect(months.map(({ name }) => name)).toContain('app_daily/month=2026-01.parquet')
    expect(one).toEqual({ ...newest, files: expect.arrayContaining([...(newest?.files ?? []), ...months]) })
    for (const { url, sha256, bytes, media_type } of one.files) {
      const response = await fetch(`${api.origin}${url}`)
      const body = await response.bytes()
      const sum = createHash('sha256').update(body).digest('hex')
      expect([sum, body.length, response.headers.get('Content-Type')]).toEqual([sha256, bytes, media_type])
    }
  })

  it('leads from latest to the newest; an encoded name stays encoded', async () => {
    expect((await get('/latest/apps.csv')).url).toBe(`${api.base}${LIST}/${SECOND}/apps.csv`)
    const strange = await get('/latest/..%2F%3Fx', {}, { redirect: 'manual' })
    expect(strange.headers.get('Location')).toBe(`${LIST_PATH}/${SECOND}/..%2F%3Fx`)
    expect([await strange.text(), strange.headers.get('Vary')]).toEqual(['', null])
  })

  it.each([
    ['?state=gone', 400, 'one of retained, all'],
    ['?date=2026-02-30', 400, 'YYYY-MM-DD'],
    ['?limit=101', 400, 'from 1 to 100'],
    [`/${SECOND}/warehouse.duckdb`, 404, `no file "warehouse.duckdb"; ${LIST_PATH}/${SECOND} lists all`],
    [`/${SECOND}/..%2F..%2Fservice.sqlite`, 404, 'has no file "../../service.sqlite"'],
    [`/${SECOND}/app_daily/month=2020-01.parquet`, 404, 'has no file'],
    [`/${SECOND}/app_daily/..%2Frankings.csv`, 404, 'has no file'],
    [`/${SECOND}/app_daily/month=2025-10.parquet%00`, 404, 'has no file'],
    ['/20200101T000000Z/apps.csv', 404, 'No such snapshot: "20200101T000000Z"'],
    ['/..%2F..', 404, 'No such snapshot: "../.."'],
  ])('%s is %d and says why', async (path, expected, message) => {
    const response = await get(path)
    expect(response.status).toBe(expected)
    expect(await messageOf(response)).toContain(message)
  })
})

describe('a month of a table', () => {
  const MONTH = 'app_daily/month=2025-10.parquet'

  it('has the same tag in every snapshot while its rows do not change, so it is fetched once', async () => {
    const [old, now] = await Promise.all([get(`/${FIRST}/${MONTH}`), get(`/latest/${MONTH}`)])
    const tag = String(old.headers.get('ETag'))
    expect(now.headers.get('ETag')).toBe(tag)
    expect((await get(`/latest/${MONTH}`, { 'If-None-Match': tag })).status).toBe(304)
    const changed = [FIRST, SECOND].map((id) => get(`/${id}/app_daily/month=2026-01.parquet`))
    const tags = (await Promise.all(changed)).map(({ headers }) => headers.get('ETag'))
    expect(new Set(tags).size).toBe(2)
  })

  it.each(['app_daily', 'model_daily'])('of %s has a file name with its table', async (table) => {
    const { headers } = await get(`/${SECOND}/${table}/month=2025-10.parquet`)
    expect(headers.get('Content-Type')).toBe('application/vnd.apache.parquet')
    expect(headers.get('Content-Disposition')).toBe(`attachment; filename="${table}-2025-10.parquet"`)
  })

  it('stands in croissant.json with a whole address, where the folder has a relative one', async () => {
    const reply = await get(`/${SECOND}/croissant.json`)
    const { distribution } = z
      .object({ distribution: z.array(z.object({ name: z.string(), contentUrl: z.string() })) })
      .parse(await reply.json())
    expect(distribution.map(({ name }) => name)).toContain(MONTH)
    for (const { name, contentUrl } of distribution) {
      expect(contentUrl).toBe(`${api.base}${LIST}/${SECOND}/${name}`)
    }
  })
})

describe('a file', () => {
  const PATH = `/${SECOND}/app-rankings.duckdb`
  const onDisk = () => readFileSync(join(dataDir, 'snapshots', SECOND, 'app-rankings.duckdb'))
  const tagOf = async () => (await get(PATH, {}, { method: 'HEAD' })).headers.get('ETag') ?? ''

  it('never changes: strong tag, immutable, digest, no key needed', async () => {
    const response = await get(PATH, {}, { method: 'HEAD' })
    const sum = createHash('sha256').update(onDisk())
    const etag = `"${sum.copy().digest('hex')}"`
    expect(Object.fromEntries(response.headers)).toMatchObject({
      etag,
      'cache-control': 'public, max-age=31536000, immutable, no-transform',
      'last-modified': 'Sat, 31 Jan 2026 02:00:00 GMT',
      'repr-digest': `sha-256=:${sum.digest('base64')}:`,
      'content-length': String(onDisk().length),
      'accept-ranges': 'bytes',
    })
  })

  it('is readable in pieces, as DuckDB reads a remote file: HEAD, then ranges', async () => {
    const size = onDisk().length
    // DuckDB in a browser takes a file for one without ranges if this is no 206.
    const probe = await get(PATH, { Range: 'bytes=0-' }, { method: 'HEAD' })
    expect([probe.status, probe.headers.get('Content-Length')]).toEqual([206, String(size)])
    const pieces: Uint8Array[] = []
    const step = Math.ceil(size / 7)
    for (let start = 0; start < size; start += step) {
      const end = Math.min(size, start + step) - 1
      const piece = await get(PATH, { Range: `bytes=${start}-${end}`, 'If-Range': await tagOf() })
      expect(piece.status).toBe(206)
      expect(piece.headers.get('Content-Range')).toBe(`bytes ${start}-${end}/${size}`)
      pieces.push(await piece.bytes())
    }
    expect(Buffer.concat(pieces).equals(onDisk())).toBe(true)
  })

  it.each([
    ['bytes=-8', 8],
    // A suffix longer than the file is the whole file.
    ['bytes=-999999999', Infinity],
  ])('for %s is answered with its last bytes', async (range, last) => {
    const reply = await get(PATH, { Range: range })
    const size = onDisk().length
    expect(reply.status).toBe(206)
    expect(reply.headers.get('Content-Range')).toBe(`bytes ${Math.max(0, size - last)}-${size - 1}/${size}`)
    expect(Buffer.from(await reply.bytes()).equals(onDisk().subarray(-last))).toBe(true)
  })

  const TIME = 'Sat, 31 Jan 2026 02:00:00 GMT'
  it.each([
    ['If-None-Match', 304, ['TAG', 'W/TAG', '"b", TAG , "c"', '*']],
    ['If-None-Match', 200, ['"b"', 'UNQUOTED', '']],
    ['If-Modified-Since', 304, [TIME]],
    // Times are compared for equality, and have one form.
    ['If-Modified-Since', 200, ['Sat, 31 Jan 2026 01:59:59 GMT', 'Sat, 31 Jan 2026 02:00:01 GMT']],
    ['If-Modified-Since', 200, ['Saturday, 31-Jan-26 02:00:00 GMT', 'Sat Jan 31 02:00:00 2026', 'yesterday']],
    ['If-Modified-Since', 200, ['2027', '2026-01-31T02:00:00Z', 'Sat, 31 Jan 2026 04:00:00 +0200']],
    ['If-Match', 206, ['*', 'TAG', '"b", TAG']],
    ['If-Match', 412, ['W/TAG', 'W/TAG, "b"', '"b"', '']],
    ['If-Unmodified-Since', 206, [TIME, 'yesterday']],
    ['If-Unmodified-Since', 412, ['Sat, 31 Jan 2026 01:59:59 GMT', 'Sat, 31 Jan 2026 02:00:01 GMT']],
    ['If-Range', 206, ['TAG', TIME]],
    ['If-Range', 200, ['W/TAG', '"b"', 'Sat, 31 Jan 2026 02:00:01 GMT', 'tomorrow']],
  ])('is asked for on the condition %s, and answered with %i: %j', async (field, expected, values) => {
    const tag = await tagOf()
    for (const value of values) {
      const condition = value.replace('UNQUOTED', tag.slice(1, -1)).replace('TAG', tag)
      const range = /Range|Match|Un/.test(field) && field !== 'If-None-Match' ? { Range: 'bytes=0-9' } : {}
      const reply = await get(PATH, { ...range, [field]: condition })
      expect([value, reply.status]).toEqual([value, expected])
    }
  })

  it('is sent if its tag is another, whatever its time', async () => {
    expect((await get(PATH, { 'If-None-Match': '"b"', 'If-Modified-Since': TIME })).status).toBe(200)
  })

  it('is refused for a range outside it, with its size and not cacheable as the file', async () => {
    const refused = await get(PATH, { Range: 'bytes=999999999-' })
    expect(envelopeSchema.parse(await refused.json()).error.code).toBe(416)
    const names = ['Content-Range', 'Cache-Control', 'ETag', 'Last-Modified', 'Repr-Digest', 'Link']
    const sent = names.map((name) => refused.headers.get(name))
    expect(sent).toEqual([`bytes */${onDisk().length}`, 'no-store', null, null, null, null])
  })
})

describe('as_of', () => {
  it.each([FIRST, '2026-01-07T02:00:00Z', '2026-01-07T02:00:00.000Z', '2026-01-07T03:00:00%2B01:00'])(
    '%s answers from that snapshot exactly as it was published',
    async (asOf) => {
      const { meta, data } = rankingsSchema.parse(await (await rankings(`?as_of=${asOf}`)).json())
      expect(meta).toMatchObject({ as_of: '2026-01-07T02:00:00Z', end_date: '2026-01-06' })
      const rows = data.map(({ app_id, total_tokens }) => `${app_id} ${total_tokens}`)
      expect(rows).toEqual(['3 30', '2 20', '1 10'])
    },
  )

  it.each([
    ['2026-01-07T02:00:01Z', `allowed: the as_of of a retained snapshot; ${LIST_PATH} lists them`],
    ['2026-01-07T02:00:00.5Z', 'allowed: the as_of of a retained snapshot'],
    ['20260107T020001Z', 'allowed: the as_of of a retained snapshot'],
    ['yesterday', 'allowed: the time of a snapshot, such as 2026-11-20T02:00:00Z'],
    ['20269999T020000Z', 'allowed: the time of a snapshot'],
  ])('%s is rejected with 400', async (asOf, message) => {
    const response = await rankings(`?as_of=${asOf}`)
    expect(response.status).toBe(400)
    expect(await messageOf(response)).toContain(`sent "${asOf}", ${message}`)
  })
})

it('the links of rows name licence, metadata, citation and newest version, and each local one exists', async () => {
  const { license, ...local } = linksOf(await rankings('?category=coding'))
  expect(license).toBe('https://creativecommons.org/licenses/by/4.0/')
  expect(Object.keys(local).toSorted()).toEqual(['cite-as', 'describedby', 'latest-version'])
  for (const target of Object.values(local)) {
    expect((await fetch(`${api.origin}${target}`)).status, target).toBe(200)
  }
})

describe('after a newer snapshot and its retraction', () => {
  /** What a client received before the retraction. */
  let withdrawn: Headers
  let key = ''

  beforeAll(async () => {
    const first = await rankings('?limit=1')
    use('2026-02-02', 1000)
    await runAt(dataDir, '2026-02-03T02:00:00Z')
    await served(api, '2026-02-03T02:00:00Z')
    // A page link leads to the next rank in the snapshot of the first page.
    const second = await api.getAsNewAccount((linksOf(first)['next'] ?? '').slice('/api/v1'.length))
    const page = rankingsSchema.parse(await second.json())
    expect(page.meta.as_of).toBe('2026-01-31T02:00:00Z')
    expect(page.data).toMatchObject([{ rank: 2, app_id: 2 }])

    key = await api.makeKey()
    withdrawn = (await api.get(RANKINGS, key)).headers
    await commandAt('2026-02-04T12:00:00Z', 'retract', WITHDRAWN, '--reason', REASON)
    await served(api, '2026-01-31T02:00:00Z')
  })

  it.each([
    ['ETag', 'If-None-Match'],
    ['Last-Modified', 'If-Modified-Since'],
  ])('a client with the %s of the withdrawn figures gets the right ones', async (name, condition) => {
    const again = await api.get(RANKINGS, key, { headers: { [condition]: withdrawn.get(name) ?? '' } })
    expect(again.status).toBe(200)
    expect(again.headers.get('Last-Modified')).toBe('Sat, 31 Jan 2026 02:00:00 GMT')
    const known = { [condition]: again.headers.get(name) ?? '' }
    expect((await api.get(RANKINGS, key, { headers: known })).status).toBe(304)
  })

  // The date of the newest file grows, so that mirrors download it; those of the others stay.
  it.each([
    ['latest', {}, 200, 'Wed, 04 Feb 2026 12:00:00 GMT'],
    [FIRST, {}, 200, 'Wed, 07 Jan 2026 02:00:00 GMT'],
    ['latest', { 'If-Modified-Since': 'Tue, 03 Feb 2026 02:00:00 GMT' }, 200],
    ['latest', { 'If-Modified-Since': 'Wed, 04 Feb 2026 12:00:00 GMT' }, 304],
    ['latest', { Range: 'bytes=0-3', 'If-Range': 'Tue, 03 Feb 2026 02:00:00 GMT' }, 200],
  ] as const)('a file of %s with %j is answered with %d', async (id, headers, expected, date?: string) => {
    const reply = await get(`/${id}/apps.csv`, headers)
    expect(reply.status).toBe(expected)
    if (date !== undefined) expect(reply.headers.get('Last-Modified')).toBe(date)
  })

  it('/status says that it is withdrawn, and why; the time of the feed does not go back', async () => {
    expect((await statusOf(api)).retracted).toMatchObject([{ id: WITHDRAWN, reason: REASON }])
    const feed = await (await fetch(`${api.origin}/feed.xml`)).text()
    expect(/<updated>([^<]*)/.exec(feed)?.[1]).toBe('2026-02-04T12:00:00Z')
  })

  describe('and a prune', () => {
    beforeAll(async () => {
      use('2026-02-04', 10)
      await runAt(dataDir, '2026-02-05T02:00:00Z')
      await commandAt('2026-02-06T00:00:00Z', 'prune', '--keep-days', '1')
      await served(api, '2026-02-05T02:00:00Z')
    })

    it('the list has every snapshot ever published, with its checksums and state', async () => {
      const { data, retracted } = await list()
      expect(data.map(({ id }) => id)).toEqual([NEWEST, SECOND])
      expect(retracted.map(({ id, reason }) => [id, reason])).toEqual([[WITHDRAWN, REASON]])
      const all = (await list('?state=all')).data
      expect(all.map(({ id, state }) => `${id} ${state}`)).toEqual([
        `${NEWEST} retained`,
        `${WITHDRAWN} retracted`,
        `${SECOND} retained`,
        `${FIRST} pruned`,
      ])
      expect(all[1]).toMatchObject({ reason: REASON, retracted_at: '2026-02-04T12:00:00Z' })
      expect(all[3]).toMatchObject({
        pruned_at: '2026-02-06T00:00:00Z',
        first_day: '2025-10-01',
        data_through: '2026-01-06',
        total_requests: '6',
        total_tokens: '90',
        rows: { apps: 3, app_daily: 6 },
        files: expect.arrayContaining([expect.objectContaining({ name: 'app-rankings.duckdb' })]),
      })
    })

    it.each([
      ['2026-01-06', []],
      ['2026-01-07', [FIRST]],
      ['2026-01-30', [FIRST]],
      ['2026-02-03', [WITHDRAWN]],
      ['2026-02-04', [SECOND]],
      ['2027-01-01', [NEWEST]],
    ])('the list shows which was in force on %s', async (date, ids) => {
      expect((await list(`?date=${date}`)).data.map(({ id }) => id)).toEqual(ids)
    })

    it.each([
      [FIRST, `was pruned on 2026-02-06T00:00:00Z. The nearest retained snapshot is ${SECOND}`],
      [WITHDRAWN, `was retracted: ${REASON} The nearest retained snapshot is ${NEWEST}`],
    ])('%s is gone: 410 with the reason and the nearest, at every address', async (id, message) => {
      const replies = [
        await rankings(`?as_of=${id}`),
        await get(`/${id}`),
        await get(`/${id}/apps.csv`),
        await fetch(`${api.origin}/?as_of=${id}`, { headers: { Accept: 'application/json' } }),
      ]
      for (const reply of replies) {
        expect(reply.status).toBe(410)
        const { error } = envelopeSchema.parse(await reply.json())
        expect(error.message).toBe(`Snapshot ${id} ${message}`)
        expect(error.metadata).toMatchObject({ snapshot: id })
      }
    })

    it('the feed has an entry per snapshot and retraction, newest first, and is sent again only if it changed', async () => {
      const reply = await fetch(`${api.origin}/feed.xml`)
      const text = await reply.text()
      expect([...text.matchAll(/<updated>([^<]*)/g)].map(([, time]) => time)).toEqual([
        '2026-02-05T02:00:00Z',
        '2026-02-05T02:00:00Z',
        '2026-02-04T12:00:00Z',
        '2026-02-03T02:00:00Z',
        '2026-01-31T02:00:00Z',
        '2026-01-07T02:00:00Z',
      ])
      expect(reply.headers.get('Content-Type')).toBe('application/atom+xml; charset=utf-8')
      expect(text).toMatch(/<rights>CC-BY-4\.0.* not strictly comparable\.<\/rights>/)
      expect(text).toContain('Snapshot of 2026-02-03T02:00:00Z withdrawn')
      expect(text).toContain(`${LIST}/${WITHDRAWN}#retraction`)
      expect(text).toContain('<summary>Counted twice &#60;b&#62;.</summary>')
      expect(text).toContain(`href="${api.origin}/?as_of=2026-02-05T02:00:00Z"`)
      // An id is permanent, whatever address a reader uses.
      expect(text).toContain(`<id>http://127.0.0.1:3000${LIST_PATH}/`)
      const known = { 'If-None-Match': reply.headers.get('ETag') ?? '' }
      expect((await fetch(`${api.origin}/feed.xml`, { headers: known })).status).toBe(304)
    })
  })
})
