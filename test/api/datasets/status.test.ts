/** CONTRACT 4.6: GET /status, and /metrics in the text format of Prometheus. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { VERSION } from '../../../pipeline/contract/version.ts'
import { startApi, until } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { oneApp, publishSnapshot } from '../../support/pipeline/snapshot.ts'

const NOW = '2026-11-20T12:00:00Z'

const NOTHING_YET = {
  version: VERSION,
  as_of: null,
  first_day: null,
  data_through: null,
  coverage: null,
  days_missing: [],
  days_partial: [],
  retracted: [],
  last_run: null,
  faults: [],
  next_run_expected: '2026-11-21T02:00:00Z',
  stale: true,
}

it('GET /status shows the freshness of the dataset without a key, also before the first snapshot', async () => {
  const dataDir = makeFolder()
  {
    await using empty = await startApi(dataDir, { clock: () => new Date(NOW) })
    expect(await (await empty.get('/status')).json()).toEqual({ data: NOTHING_YET })
  }
  await publishSnapshot(dataDir, {
    asOf: new Date('2026-11-20T02:00:07Z'),
    dataThrough: '2026-11-19',
    firstDay: '2026-11-01',
    apps: [],
    daily: [],
    missing: ['2026-11-15', '2026-11-03'],
  })
  const lastRun = { finished_at: '2026-11-20T03:00:00Z', outcome: 'late' }
  const secret = { snapshot: null, message: 'of the operator' }
  writeFileSync(join(dataDir, 'last-run.json'), JSON.stringify({ ...lastRun, ...secret }))
  await using api = await startApi(dataDir, { clock: () => new Date(NOW) })
  const response = await api.get('/status')
  expect([response.status, response.headers.get('Cache-Control')]).toEqual([200, 'no-store'])
  expect(await response.json()).toEqual({
    data: {
      ...NOTHING_YET,
      as_of: '2026-11-20T02:00:07Z',
      first_day: '2026-11-01',
      data_through: '2026-11-19',
      coverage: { complete: 17, partial: 0, restated: 0, missing: 2 },
      days_missing: ['2026-11-03', '2026-11-15'],
      last_run: lastRun,
      stale: false,
    },
  })
})

const [DAILY, HOURLY, WEEKLY] = ['0 2 * * *', '0 2-23 * * *', '0 2 * * 1']
const scheduleSchema = z.object({ data: z.object({ stale: z.boolean(), next_run_expected: z.string() }) })

it.each<readonly [string, string | undefined, Readonly<Record<string, boolean>>]>([
  // The run of 20 November 02:00 publishes up to 19 November and has until 03:00.
  [DAILY, '2026-11-19', { [NOW]: false, '2026-11-21T02:59:59Z': false, '2026-11-21T03:00:00Z': true }],
  [DAILY, '2026-11-18', { '2026-11-20T02:59:59Z': false, '2026-11-20T03:00:00Z': true, [NOW]: true }],
  [DAILY, undefined, { [NOW]: true }],
  // A day more after the first run of the day, and not after later ones.
  [HOURLY, '2026-11-18', { '2026-11-20T02:59:59Z': false, '2026-11-20T03:00:00Z': true }],
  [HOURLY, '2026-11-19', { '2026-11-20T03:00:00Z': false, '2026-11-20T23:59:59Z': false }],
  // A run is due in its second.
  ['*/20 2-23 * * *', '2026-11-18', { '2026-11-20T02:59:59Z': false, '2026-11-20T03:00:00Z': true }],
  // What the last run could publish.
  [WEEKLY, '2026-11-15', { [NOW]: false }],
  [WEEKLY, '2026-11-14', { [NOW]: true }],
])('by the schedule %s, data through %s are stale or not at %j', async (schedule, dataThrough, expected) => {
  let now = NOW
  const dataDir = makeFolder()
  if (dataThrough !== undefined) await publishSnapshot(dataDir, { ...oneApp(), dataThrough, daily: [] })
  const environment = { NIGHTLY_SCHEDULE: schedule }
  await using api = await startApi(dataDir, { clock: () => new Date(now), environment })
  for (const [time, stale] of Object.entries(expected)) {
    now = time
    const { data } = scheduleSchema.parse(await (await api.get('/status')).json())
    expect([time, data.stale]).toEqual([time, stale])
  }
})

it.each([
  [DAILY, '2026-11-20T01:59:59Z', '2026-11-20T02:00:00Z'],
  [DAILY, '2026-11-20T02:00:00Z', '2026-11-21T02:00:00Z'],
  [DAILY, '2026-12-31T23:59:59Z', '2027-01-01T02:00:00Z'],
  ['*/20 2,14 * * *', '2026-11-20T02:30:00Z', '2026-11-20T02:40:00Z'],
  ['*/20 2,14 * * *', '2026-11-20T02:40:00Z', '2026-11-20T14:00:00Z'],
  ['30 0 2 * * *', '2026-11-20T02:00:29Z', '2026-11-20T02:00:30Z'],
  ['0 2 * * monday', NOW, '2026-11-23T02:00:00Z'],
  // The longest gap: a weekday comes back to the leap day after 28 years.
  ['0 2 29 2 1', '2016-02-29T02:00:00Z', '2044-02-29T02:00:00Z'],
])('by the schedule %s, the run expected after %s is at %s', async (schedule, time, next) => {
  const environment = { NIGHTLY_SCHEDULE: schedule }
  await using api = await startApi(makeFolder(), { clock: () => new Date(time), environment })
  const { data } = scheduleSchema.parse(await (await api.get('/status')).json())
  expect(data.next_run_expected).toBe(next)
})

/** The lines of a scrape, without comments. */
async function scrape(origin: string): Promise<string[]> {
  const response = await fetch(`${origin}/metrics`)
  expect([response.status, response.headers.get('Content-Type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ])
  return (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

const replies = (lines: readonly string[]) =>
  lines.filter((line) => line.startsWith('http_replies_total') && !line.includes('/metrics'))

/** The counts of replies, once this many are counted: a reply is counted when its connection has finished it. */
function countedReplies(origin: string, total: number): Promise<string[]> {
  return until(async () => {
    const lines = replies(await scrape(origin))
    const sum = lines.reduce((count, line) => count + Number(line.split(' ').at(-1)), 0)
    return sum === total && lines.toSorted()
  })
}

describe('GET /metrics', () => {
  it('counts replies by method, route, status and format, none of which a client can choose', async () => {
    const dataDir = makeFolder()
    await publishSnapshot(dataDir, oneApp())
    await using api = await startApi(dataDir)
    const key = await api.makeKey()
    for (const query of ['', '?limit=1', '?limit=x'])
      await (await api.get(`/datasets/app-rankings${query}`, key)).text()
    await (await api.get('/datasets/app-rankings')).text()
    await (await api.get('/status', undefined, { method: 'HEAD' })).text()
    for (let index = 0; index < 20; index += 1) await fetch(`${api.origin}/made-up-${index}?x=${index}`)
    await fetch(`${api.origin}/made-up`, { method: 'PROPFIND' })
    await fetch(`${api.origin}/healthz`, { method: 'PUT' })
    expect(await scrape(api.origin)).toContainEqual(
      expect.stringMatching(/^process_cpu_seconds_total [\d.]+$/),
    )
    const rankings = 'route="/api/v1/datasets/app-rankings"'
    expect(await countedReplies(api.origin, 27)).toEqual(
      [
        `http_replies_total{method="GET",${rankings},status="200",format="json"} 2`,
        `http_replies_total{method="GET",${rankings},status="400",format="json"} 1`,
        `http_replies_total{method="GET",${rankings},status="401",format="json"} 1`,
        'http_replies_total{method="HEAD",route="/api/v1/status",status="200",format="json"} 1',
        'http_replies_total{method="GET",route="unknown",status="404",format="json"} 20',
        'http_replies_total{method="PUT",route="/healthz",status="405",format="json"} 1',
        'http_replies_total{method="PROPFIND",route="unknown",status="404",format="json"} 1',
      ].toSorted(),
    )
  })

  it('shows the served snapshot, and each that replaces it', async () => {
    const dataDir = makeFolder()
    await using api = await startApi(dataDir)
    const dataset = async () => (await scrape(api.origin)).filter((line) => line.startsWith('dataset_'))
    const secondsOf = (time: string) => Date.parse(time) / 1000
    const names = 'snapshot_timestamp_seconds data_through_timestamp_seconds days_missing degraded faults'
    const linesOf = (...values: readonly number[]) =>
      names.split(' ').map((name, index) => `dataset_${name} ${values[index]}`)
    expect(await dataset()).toEqual(linesOf(0, 0, 0, 0, 0))
    await publishSnapshot(dataDir, { ...oneApp(), missing: ['2026-11-18'] })
    const served = await until(async () => !(await dataset())[0]?.endsWith(' 0') && dataset())
    expect(served).toEqual(linesOf(secondsOf('2026-11-20T02:00:00Z'), secondsOf('2026-11-19'), 1, 0, 0))
    writeFileSync(join(dataDir, 'snapshots/records/20260310T020000Z.json'), '{')
    await until(async () => (await dataset()).at(-1)?.endsWith(' 1'))
  })
})
