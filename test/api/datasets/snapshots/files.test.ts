/** CONTRACT 4.6: snapshots over HTTP: list, files, ranges, `as_of`, links, and citations after a prune and a retraction. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { prune } from '../../../../pipeline/commands/prune.ts'
import { retract } from '../../../../pipeline/commands/retract.ts'
import { readConfig } from '../../../../pipeline/config.ts'
import { SNAPSHOTS_PATH } from '../../../../pipeline/contract/files.ts'
import { retractionSchema } from '../../../../pipeline/contract/snapshot-record.ts'
import { snapshotEntrySchema } from '../../../../api/datasets/snapshots/catalogue.ts'
import { envelopeSchema, rankingsSchema, startApi, until, type Api } from '../../../support/api.ts'
import { runAt, SILENT } from '../../../support/pipeline/in-process.ts'
import { TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'

const FIRST = '20260107T020000Z'
const SECOND = '20260131T020000Z'
const WITHDRAWN = '20260203T020000Z'
const NEWEST = '20260205T020000Z'
const LIST = '/datasets/app-rankings/snapshots'
const RANKINGS = '/datasets/app-rankings'
const REASON = 'Counted twice <b>'

const folders = new TemporaryFolders()
const dataDir = folders.make()
let api: Api

function deliver(day: string, tokens: number): void {
  const rows = [1, 2, 3].map((app) => `${day}T12:00:00Z,${app},${tokens * app},0`)
  const header = 'ts,app_id,prompt_tokens,completion_tokens'
  writeRaw(dataDir, `usage/date=${day}/rows.csv`, `${header}\n${rows.join('\n')}\n`)
}

beforeAll(async () => {
  const apps = [1, 2, 3].map((app) => `${app},App ${app},public,2025-01-01`)
  writeRaw(dataDir, 'apps/registry.csv', `app_id,app_name,visibility,updated_at\n${apps.join('\n')}\n`)
  deliver('2025-10-01', 5)
  deliver('2026-01-06', 10)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  deliver('2026-01-30', 20)
  await runAt(dataDir, '2026-01-31T02:00:00Z')
  api = await startApi(dataDir)
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

function dependencies(now: string) {
  return {
    config: readConfig({ DATA_DIR: dataDir }),
    progress: SILENT,
    now: () => new Date(now),
    print: () => undefined,
    note: () => undefined,
    send: async () => undefined,
  }
}

const listSchema = z.strictObject({
  data: z.array(snapshotEntrySchema),
  total_count: z.int(),
  retracted: z.array(retractionSchema),
})

/** A reply below the list; `headers` of the request. */
const get = (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
  api.get(`${LIST}${path}`, undefined, { ...init, headers })

const list = async (search = '') => listSchema.parse(await (await get(search)).json())
const rankings = (search: string) => api.getAsNewAccount(`${RANKINGS}${search}`)
const feed = async () => (await fetch(`${api.origin}/feed.xml`)).text()

const statusSchema = z.object({ data: z.object({ as_of: z.string(), retracted: z.array(z.unknown()) }) })
const status = async () => statusSchema.parse(await (await api.get('/status')).json()).data

/** Waits until the snapshot of this time is served. */
const served = (asOf: string) => until(async () => (await status()).as_of === asOf)

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
    const page = await get('?limit=1')
    expect(page.headers.get('Link')).toContain('limit=1&offset=1>; rel="next"')
    expect((await list('?limit=1&offset=1')).data.map(({ id }) => id)).toEqual([FIRST])
  })

  it('has every file with its checksum and size; the monthly ones at the address of the snapshot', async () => {
    const [newest] = (await list()).data
    expect(newest?.files.map(({ name }) => name)).toContain('SHA256SUMS')
    const one = z
      .strictObject({ data: snapshotEntrySchema })
      .parse(await (await get(`/${SECOND}`)).json()).data
    const months = one.files.filter(({ name }) => name.includes('/month='))
    expect(months.map(({ name }) => name)).toContain('app_daily/month=2026-01.parquet')
    expect(one).toEqual({ ...newest, files: expect.arrayContaining([...(newest?.files ?? []), ...months]) })
    for (const { url, sha256, bytes, media_type } of one.files) {
      const response = await fetch(`${api.origin}${url}`)
      const body = await response.bytes()
      expect(createHash('sha256').update(body).digest('hex')).toBe(sha256)
      expect(body.length).toBe(bytes)
      expect(response.headers.get('Content-Type')).toBe(media_type)
    }
  })

  it('is compressed for clients that accept it, each coding with its own tag, and 304 for it', async () => {
    const codings = ['identity', 'gzip', 'br']
    const replies = await Promise.all(codings.map((coding) => get('', { 'Accept-Encoding': coding })))
    expect(replies.map(({ headers }) => headers.get('Content-Encoding'))).toEqual([null, 'gzip', 'br'])
    expect(new Set(replies.map(({ headers }) => headers.get('ETag'))).size).toBe(3)
    expect(replies.map(({ headers }) => headers.get('Vary'))).toEqual(Array(3).fill('Accept-Encoding'))
    expect(new Set(await Promise.all(replies.map((reply) => reply.text()))).size).toBe(1)
    const known = { 'If-None-Match': replies[1]?.headers.get('ETag') ?? '', 'Accept-Encoding': 'gzip' }
    expect((await get('', known)).status).toBe(304)
  })

  it.each(['?state=gone', '?date=2026-02-30', '?date=', '?day=2026-01-01', '?limit=101'])(
    'refuses %s',
    async (search) => {
      expect((await get(search)).status).toBe(400)
    },
  )

  it('leads from latest to the newest; an encoded name stays encoded', async () => {
    expect((await get('/latest/apps.csv')).url).toBe(`${api.base}${LIST}/${SECOND}/apps.csv`)
    const strange = await get('/latest/..%2F%3Fx', {}, { redirect: 'manual' })
    expect(strange.headers.get('Location')).toBe(`${SNAPSHOTS_PATH}/${SECOND}/..%2F%3Fx`)
    expect([await strange.text(), strange.headers.get('Vary')]).toEqual(['', null])
  })

  it.each([
    [`/${SECOND}/warehouse.duckdb`, 'has no file "warehouse.duckdb"; it has: app-rankings.duckdb'],
    [`/${SECOND}/..%2F..%2Fservice.sqlite`, 'has no file "../../service.sqlite"'],
    [`/${SECOND}/report.json`, 'has no file "report.json"'],
    [`/${SECOND}/app_daily/month=2020-01.parquet`, 'has no file'],
    [`/${SECOND}/app_daily/..%2Frankings.csv`, 'has no file'],
    [`/${SECOND}/app_daily/month=2025-10.parquet%00`, 'has no file'],
    ['/20200101T000000Z/apps.csv', 'No such snapshot: "20200101T000000Z"'],
    ['/..%2F..', 'No such snapshot: "../.."'],
  ])('%s is 404', async (path, message) => {
    const response = await get(path)
    expect(response.status).toBe(404)
    expect(envelopeSchema.parse(await response.json()).error.message).toContain(message)
  })
})

describe('a month of a table', () => {
  const MONTH = 'app_daily/month=2025-10.parquet'

  it('has the same tag in every snapshot while its rows do not change, so it is fetched once', async () => {
    const [old, now] = await Promise.all([get(`/${FIRST}/${MONTH}`), get(`/latest/${MONTH}`)])
    const tag = String(old.headers.get('ETag'))
    expect(now.headers.get('ETag')).toBe(tag)
    expect(await now.bytes()).toEqual(await old.bytes())
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
    const tag = String(reply.headers.get('ETag'))
    expect((await get(`/${SECOND}/croissant.json`, { 'If-None-Match': tag })).status).toBe(304)
  })
})

describe('a file', () => {
  const PATH = `/${SECOND}/app-rankings.duckdb`
  const onDisk = () => readFileSync(join(dataDir, 'snapshots', SECOND, 'app-rankings.duckdb'))
  const tagOf = async () => (await get(PATH, {}, { method: 'HEAD' })).headers.get('ETag') ?? ''

  it('never changes: strong tag, immutable, digest, no key needed', async () => {
    const response = await get(PATH)
    const sum = createHash('sha256').update(onDisk())
    const etag = `"${sum.copy().digest('hex')}"`
    expect(Object.fromEntries(response.headers)).toMatchObject({
      etag,
      'cache-control': 'public, max-age=31536000, immutable, no-transform',
      'last-modified': 'Sat, 31 Jan 2026 02:00:00 GMT',
      'repr-digest': `sha-256=:${sum.digest('base64')}:`,
      'accept-ranges': 'bytes',
    })
    expect(await response.bytes()).toEqual(new Uint8Array(onDisk()))
    expect((await get(PATH, { 'If-None-Match': etag })).status).toBe(304)
  })

  it('is readable in pieces, as DuckDB reads a remote file: HEAD, then ranges', async () => {
    const head = await get(PATH, {}, { method: 'HEAD' })
    const size = onDisk().length
    expect(head.headers.get('Content-Length')).toBe(String(size))
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
    ['bytes=-8', 206, 8],
    // A suffix longer than the file is the whole file.
    ['bytes=-999999999', 206, Infinity],
    ['bytes=999999999-', 416, 0],
  ])('for %s is answered with %d', async (range, expected, last) => {
    const reply = await get(PATH, { Range: range })
    const size = onDisk().length
    expect(reply.status).toBe(expected)
    if (expected === 416) {
      expect(reply.headers.get('Content-Range')).toBe(`bytes */${size}`)
      expect(envelopeSchema.parse(await reply.json()).error.code).toBe(416)
    } else {
      expect(reply.headers.get('Content-Range')).toBe(`bytes ${Math.max(0, size - last)}-${size - 1}/${size}`)
      expect(Buffer.from(await reply.bytes()).equals(onDisk().subarray(-last))).toBe(true)
    }
  })

  it('is sent whole for a range with a weak tag', async () => {
    const whole = await get(PATH, { Range: 'bytes=0-9', 'If-Range': `W/${await tagOf()}` })
    expect([whole.status, (await whole.bytes()).length]).toEqual([200, onDisk().length])
  })

  it.each<Record<string, string>>([{ Range: 'bytes=999999999-' }, { 'If-Match': '"another"' }])(
    'an error about %j is not cacheable as the file',
    async (headers) => {
      const refused = await get(PATH, headers)
      expect(refused.headers.get('Cache-Control')).toBe('no-store')
      for (const name of ['ETag', 'Last-Modified', 'Repr-Digest', 'Link']) {
        expect(refused.headers.get(name)).toBeNull()
      }
    },
  )
})

describe('as_of', () => {
  it.each([FIRST, '2026-01-07T02:00:00Z', '2026-01-07T02:00:00.000Z', '2026-01-07T03:00:00%2B01:00'])(
    '%s answers from that snapshot exactly as it was published',
    async (asOf) => {
      const { meta, data } = rankingsSchema.parse(await (await rankings(`?as_of=${asOf}`)).json())
      expect(meta).toMatchObject({ as_of: '2026-01-07T02:00:00Z', end_date: '2026-01-06' })
      expect(data.map(({ app_id, total_tokens }) => [app_id, total_tokens])).toEqual([
        [3, '30'],
        [2, '20'],
        [1, '10'],
      ])
    },
  )

  it.each([
    ['2026-01-07T02:00:01Z', `allowed: the as_of of a retained snapshot; ${SNAPSHOTS_PATH} lists them`],
    ['2026-01-07T02:00:00.5Z', 'allowed: the as_of of a retained snapshot'],
    ['20260107T020001Z', 'allowed: the as_of of a retained snapshot'],
    ['yesterday', 'allowed: the time of a snapshot, such as 2026-11-20T02:00:00Z'],
    ['20269999T020000Z', 'allowed: the time of a snapshot'],
  ])('%s is rejected with 400', async (asOf, message) => {
    const response = await rankings(`?as_of=${asOf}`)
    expect(response.status).toBe(400)
    const { error } = envelopeSchema.parse(await response.json())
    expect(error.message).toContain(`sent "${asOf}", ${message}`)
  })
})

/** The targets of a Link field by relation. */
function linksOf({ headers }: Response): Record<string, string> {
  const links = (headers.get('Link') ?? '').matchAll(/<([^>]*)>; rel="([^"]+)"/g)
  return Object.fromEntries([...links].map(([, target = '', relation = '']) => [relation, target]))
}

it('the links of rows name licence, metadata, citation and newest version, and each local one exists', async () => {
  const links = linksOf(await rankings('?category=coding'))
  expect(Object.keys(links).toSorted()).toEqual(['cite-as', 'describedby', 'latest-version', 'license'])
  expect(links['license']).toBe('https://creativecommons.org/licenses/by/4.0/')
  for (const relation of ['describedby', 'cite-as', 'latest-version']) {
    expect((await fetch(`${api.origin}${links[relation]}`)).status, relation).toBe(200)
  }
})

it('pages of other origins may send a key, and read every header', async () => {
  const headers = { Origin: 'https://page.example', 'Access-Control-Request-Headers': 'authorization' }
  const preflight = await api.get(RANKINGS, undefined, { method: 'OPTIONS', headers })
  expect(preflight.status).toBe(204)
  // The star allows the clients' own headers, but never Authorization.
  const allowed = preflight.headers.get('Access-Control-Allow-Headers')?.split(', ')
  expect(allowed).toEqual(expect.arrayContaining(['Authorization', '*']))
  for (const reply of [await api.get(RANKINGS), await get(''), await get('/unknown')]) {
    expect(reply.headers.get('Access-Control-Allow-Origin')).toBe('*')
    expect(reply.headers.get('Access-Control-Expose-Headers')).toContain('*')
  }
})

describe('after a newer snapshot and its retraction', () => {
  /** What a client received before the retraction. */
  let withdrawn: Headers
  let feedBefore = ''
  let key = ''

  beforeAll(async () => {
    const first = await rankings('?limit=1')
    deliver('2026-02-02', 1000)
    await runAt(dataDir, '2026-02-03T02:00:00Z')
    await served('2026-02-03T02:00:00Z')
    // A page link leads to the next rank in the snapshot of the first page.
    const second = await api.getAsNewAccount((linksOf(first)['next'] ?? '').slice('/api/v1'.length))
    const page = rankingsSchema.parse(await second.json())
    expect(page.meta.as_of).toBe('2026-01-31T02:00:00Z')
    expect(page.data).toMatchObject([{ rank: 2, app_id: 2 }])

    key = await api.makeKey()
    withdrawn = (await api.get(RANKINGS, key)).headers
    feedBefore = await feed()
    await retract.prepare([WITHDRAWN, '--reason', REASON])(dependencies('2026-02-04T12:00:00Z'))
    await served('2026-01-31T02:00:00Z')
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
    ['latest', { Range: 'bytes=0-3', 'If-Range': 'Wed, 04 Feb 2026 12:00:00 GMT' }, 206],
    ['latest', { 'If-Unmodified-Since': 'Tue, 03 Feb 2026 02:00:00 GMT' }, 412],
    ['latest', { 'If-Unmodified-Since': 'Wed, 04 Feb 2026 12:00:00 GMT' }, 200],
  ] as const)('a file of %s with %j is answered with %d', async (id, headers, expected, date?: string) => {
    const reply = await get(`/${id}/apps.csv`, { ...headers })
    expect(reply.status).toBe(expected)
    if (date !== undefined) expect(reply.headers.get('Last-Modified')).toBe(date)
  })

  it('the feed and /status say that it is withdrawn, and why; the time of the feed does not go back', async () => {
    const after = await feed()
    const times = [feedBefore, after].map((text) => /<updated>([^<]*)/.exec(text)?.[1])
    expect(times).toEqual(['2026-02-03T02:00:00Z', '2026-02-04T12:00:00Z'])
    expect(after).toContain('Snapshot of 2026-02-03T02:00:00Z withdrawn')
    expect(after).toContain(`${LIST}/${WITHDRAWN}#retraction`)
    expect((await status()).retracted).toMatchObject([{ id: WITHDRAWN, reason: REASON }])
  })

  describe('and a prune', () => {
    beforeAll(async () => {
      deliver('2026-02-04', 10)
      await runAt(dataDir, '2026-02-05T02:00:00Z')
      await prune.prepare(['--keep-days', '1'])(dependencies('2026-02-06T00:00:00Z'))
      await served('2026-02-05T02:00:00Z')
    })

    it('the list has every snapshot ever published, with its checksums and state', async () => {
      const { data, retracted } = await list()
      expect(data.map(({ id }) => id)).toEqual([NEWEST, SECOND])
      expect(retracted.map(({ id, reason }) => [id, reason])).toEqual([[WITHDRAWN, REASON]])
      const all = (await list('?state=all')).data
      expect(all.map(({ id, state }) => [id, state])).toEqual([
        [NEWEST, 'retained'],
        [WITHDRAWN, 'retracted'],
        [SECOND, 'retained'],
        [FIRST, 'pruned'],
      ])
      expect(all[1]).toMatchObject({ reason: REASON, retracted_at: '2026-02-04T12:00:00Z' })
      expect(all[3]).toMatchObject({
        pruned_at: '2026-02-06T00:00:00Z',
        first_day: '2025-10-01',
        data_through: '2026-01-06',
        total_requests: '6',
        total_tokens: '90',
        rows: { apps: 3, app_daily: 6 },
        files: expect.arrayContaining([
          expect.objectContaining({
            name: 'app-rankings.duckdb',
            sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
          }),
        ]),
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
      [WITHDRAWN, `was retracted: ${REASON}. The nearest retained snapshot is ${NEWEST}`],
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
        '2026-01-31T02:00:00Z',
      ])
      expect(reply.headers.get('Content-Type')).toBe('application/atom+xml; charset=utf-8')
      expect(text).toMatch(/<rights>CC-BY-4\.0.* not strictly comparable\.<\/rights>/)
      expect(text).toContain('<summary>Counted twice &lt;b&gt;</summary>')
      expect(text).toContain(`href="${api.origin}/?as_of=2026-02-05T02:00:00Z"`)
      // An id is permanent, whatever address a reader uses.
      expect(text).toContain(`<id>http://127.0.0.1:3000${SNAPSHOTS_PATH}/`)
      const known = { 'If-None-Match': reply.headers.get('ETag') ?? '' }
      expect((await fetch(`${api.origin}/feed.xml`, { headers: known })).status).toBe(304)
    })
  })
})
