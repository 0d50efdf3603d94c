/** CONTRACT 4.6: a citation over HTTP after snapshots were retained, pruned and retracted. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { prune } from '../../../../pipeline/commands/prune.ts'
import { retract } from '../../../../pipeline/commands/retract.ts'
import { readConfig } from '../../../../pipeline/config.ts'
import { envelopeSchema, startApi, until, type Api } from '../../../support/api.ts'
import { runAt, SILENT } from '../../../support/pipeline/in-process.ts'
import { TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'

const PRUNED = '20260107T020000Z'
const KEPT = '20260131T020000Z'
const WITHDRAWN = '20260203T020000Z'
const NEWEST = '20260205T020000Z'
const LIST = '/datasets/app-rankings/snapshots'
const RANKINGS = '/datasets/app-rankings'
const REASON = 'Counted twice <b>'

const folders = new TemporaryFolders()
const dataDir = folders.make()
let api: Api
let key = ''
/** What a client received before the retraction. */
let withdrawn: Headers
let feedBefore = ''

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

async function publish(day: string, at: string): Promise<void> {
  writeRaw(
    dataDir,
    `usage/date=${day}/rows.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${day},1,10,5\n`,
  )
  await runAt(dataDir, at)
}

beforeAll(async () => {
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  await publish('2026-01-06', '2026-01-07T02:00:00Z')
  await publish('2026-01-30', '2026-01-31T02:00:00Z')
  await publish('2026-02-02', '2026-02-03T02:00:00Z')
  api = await startApi(dataDir)
  key = await api.makeKey('inference')
  withdrawn = (await api.get(RANKINGS, key)).headers
  feedBefore = await feed()
  await retract.prepare([WITHDRAWN, '--reason', REASON])(dependencies('2026-02-04T12:00:00Z'))
  await until(async () => (await status()).as_of === '2026-01-31T02:00:00Z')
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

async function feed(): Promise<string> {
  return (await fetch(`${api.origin}/feed.xml`)).text()
}

const statusSchema = z.object({ data: z.object({ as_of: z.string(), retracted: z.array(z.unknown()) }) })

async function status() {
  return statusSchema.parse(await (await api.get('/status')).json()).data
}

describe('after the retraction of the newest, before there is another', () => {
  it.each(['ETag', 'Last-Modified'])(
    'a client with the %s of the withdrawn figures gets the right ones',
    async (name) => {
      const condition = name === 'ETag' ? 'If-None-Match' : 'If-Modified-Since'
      const again = await api.get(RANKINGS, key, { headers: { [condition]: withdrawn.get(name) ?? '' } })
      expect(again.status).toBe(200)
      expect(again.headers.get('Last-Modified')).toBe('Sat, 31 Jan 2026 02:00:00 GMT')
      const known = { [condition]: again.headers.get(name) ?? '' }
      expect((await api.get(RANKINGS, key, { headers: known })).status).toBe(304)
    },
  )

  it.each([
    [{ 'If-Modified-Since': 'Tue, 03 Feb 2026 02:00:00 GMT' }, 200],
    [{ 'If-Modified-Since': 'Wed, 04 Feb 2026 12:00:00 GMT' }, 304],
    [{ Range: 'bytes=0-3', 'If-Range': 'Tue, 03 Feb 2026 02:00:00 GMT' }, 200],
    [{ Range: 'bytes=0-3', 'If-Range': 'Wed, 04 Feb 2026 12:00:00 GMT' }, 206],
    [{ 'If-Unmodified-Since': 'Tue, 03 Feb 2026 02:00:00 GMT' }, 412],
    [{ 'If-Unmodified-Since': 'Wed, 04 Feb 2026 12:00:00 GMT' }, 200],
  ])('a request for the newest file with %j is answered with %d', async (headers, expected) => {
    expect((await api.get(`${LIST}/latest/apps.csv`, undefined, { headers })).status).toBe(expected)
  })

  it('the date of the newest file grows, so that mirrors download the file', async () => {
    const date = (await api.get(`${LIST}/latest/apps.csv`)).headers.get('Last-Modified') ?? ''
    expect(date).toBe('Wed, 04 Feb 2026 12:00:00 GMT')
    const headers = { 'If-Modified-Since': date }
    expect((await api.get(`${LIST}/latest/apps.csv`, undefined, { headers })).status).toBe(304)
    // The others keep their dates.
    const older = await api.get(`${LIST}/${PRUNED}/apps.csv`)
    expect(older.headers.get('Last-Modified')).toBe('Wed, 07 Jan 2026 02:00:00 GMT')
  })

  it('the feed has an entry with the reason, and its time does not go back', async () => {
    const [before, after] = [feedBefore, await feed()]
    const updated = (text: string) => /<updated>([^<]*)/.exec(text)?.[1] ?? ''
    expect([updated(before), updated(after)]).toEqual(['2026-02-03T02:00:00Z', '2026-02-04T12:00:00Z'])
    expect(after).toContain('Snapshot of 2026-02-03T02:00:00Z withdrawn')
    expect(after).toContain('Counted twice &lt;b&gt;')
    expect(after).toContain(`${LIST}/${WITHDRAWN}#retraction`)
  })

  it('/status shows that it is withdrawn, and why', async () => {
    expect((await status()).retracted).toMatchObject([{ id: WITHDRAWN, reason: REASON }])
  })
})

describe('the permanent record', () => {
  beforeAll(async () => {
    await publish('2026-02-04', '2026-02-05T02:00:00Z')
    await prune.prepare(['--keep-days', '1'])(dependencies('2026-02-06T00:00:00Z'))
    await until(async () => (await status()).as_of === '2026-02-05T02:00:00Z')
  })

  const listSchema = z.object({
    data: z.array(
      z.looseObject({
        id: z.string(),
        state: z.string(),
        files: z.array(z.object({ name: z.string(), sha256: z.string() })),
      }),
    ),
  })

  async function list(search: string) {
    return listSchema.parse(await (await api.get(`${LIST}${search}`)).json()).data
  }

  it('lists every snapshot ever published, with its checksums and state', async () => {
    expect((await list('')).map(({ id }) => id)).toEqual([NEWEST, KEPT])
    const all = await list('?state=all')
    expect(all.map(({ id, state }) => [id, state])).toEqual([
      [NEWEST, 'retained'],
      [WITHDRAWN, 'retracted'],
      [KEPT, 'retained'],
      [PRUNED, 'pruned'],
    ])
    expect(all[1]).toMatchObject({ reason: REASON, retracted_at: '2026-02-04T12:00:00Z' })
    expect(all[3]).toMatchObject({
      pruned_at: '2026-02-06T00:00:00Z',
      first_day: '2026-01-06',
      data_through: '2026-01-06',
      total_requests: '1',
      total_tokens: '15',
      rows: { apps: 1, app_daily: 1 },
    })
    const digest: unknown = expect.stringMatching(/^[0-9a-f]{64}$/)
    expect(all[3]?.files).toContainEqual({ name: 'app-rankings.duckdb', sha256: digest })
  })

  it.each([
    ['2026-01-06', []],
    ['2026-01-07', [PRUNED]],
    ['2026-01-30', [PRUNED]],
    ['2026-02-03', [WITHDRAWN]],
    ['2026-02-04', [KEPT]],
    ['2027-01-01', [NEWEST]],
  ])('shows which was in force on %s', async (date, ids) => {
    expect((await list(`?date=${date}`)).map(({ id }) => id)).toEqual(ids)
  })

  it.each(['?state=gone', '?date=2026-02-30', '?date=', '?day=2026-01-01'])('refuses %s', async (search) => {
    expect((await api.get(`${LIST}${search}`)).status).toBe(400)
  })

  it('the feed begins with the newest snapshot or retraction', async () => {
    const times = [...(await feed()).matchAll(/<updated>([^<]*)/g)].map(([, time]) => time)
    expect(times).toEqual([
      '2026-02-05T02:00:00Z',
      '2026-02-05T02:00:00Z',
      '2026-02-04T12:00:00Z',
      '2026-01-31T02:00:00Z',
    ])
  })

  it('the feed names the licence, gives the reason of a retraction, and is sent again only if it changed', async () => {
    const reply = await fetch(`${api.origin}/feed.xml`)
    const text = await reply.text()
    expect(reply.headers.get('Content-Type')).toBe('application/atom+xml; charset=utf-8')
    expect(text).toMatch(/<rights>CC-BY-4\.0.* not strictly comparable\.<\/rights>/)
    expect(text).toContain('<summary>Counted twice &lt;b&gt;</summary>')
    expect(text).toContain(`href="${api.origin}/?as_of=2026-02-05T02:00:00Z"`)
    // An id is permanent, whatever address a reader uses.
    expect(text).toContain('<id>http://127.0.0.1:3000/api/v1/datasets/app-rankings/snapshots/')
    const again = await fetch(`${api.origin}/feed.xml`, {
      headers: { 'If-None-Match': reply.headers.get('ETag') ?? '' },
    })
    expect(again.status).toBe(304)
  })

  const GONE = [
    [
      PRUNED,
      `Snapshot ${PRUNED} was pruned on 2026-02-06T00:00:00Z. The nearest retained snapshot is ${KEPT}`,
    ],
    [WITHDRAWN, `Snapshot ${WITHDRAWN} was retracted: ${REASON}. The nearest retained snapshot is ${NEWEST}`],
  ] as const

  it.each(GONE)('%s is gone: 410 with the reason and the nearest', async (id, message) => {
    const replies = [
      await api.get(`${RANKINGS}?as_of=${id}`, key),
      await api.get(`${LIST}/${id}`),
      await api.get(`${LIST}/${id}/apps.csv`),
      await fetch(`${api.origin}/?as_of=${id}`, { headers: { Accept: 'application/json' } }),
    ]
    for (const reply of replies) {
      expect(reply.status).toBe(410)
      expect(envelopeSchema.parse(await reply.json()).error.message).toBe(message)
    }
  })

  it('as_of takes the identifier as well as the time', async () => {
    const [byId, byTime] = await Promise.all(
      [KEPT, '2026-01-31T02:00:00Z'].map((asOf) => api.get(`${RANKINGS}?as_of=${asOf}`, key)),
    )
    expect(byId?.status).toBe(200)
    expect(await byId?.text()).toBe(await byTime?.text())
    for (const unknown of ['20260131T020001Z', '20269999T020000Z', 'latest']) {
      expect((await api.get(`${RANKINGS}?as_of=${unknown}`, key)).status).toBe(400)
    }
  })
})
