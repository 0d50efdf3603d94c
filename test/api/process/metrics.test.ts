/** CONTRACT 4.6: /metrics in the text format of Prometheus. */
import { describe, expect, it } from 'vitest'
import { startApi, until } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { publishSnapshot } from '../../support/pipeline/snapshot.ts'

const DAY = '2026-03-10'

function snapshotAt(dataDir: string, asOf: string) {
  return publishSnapshot(dataDir, {
    asOf: new Date(asOf),
    dataThrough: DAY,
    apps: [{ id: 1, name: 'One' }],
    daily: [{ day: DAY, app: 1, tokens: 5 }],
    missing: ['2026-03-09'],
    firstDay: '2026-03-08',
  })
}

/** The lines of a scrape, without comments. */
async function scrape(origin: string): Promise<string[]> {
  const response = await fetch(`${origin}/metrics`)
  expect(response.status).toBe(200)
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
  it('needs no key and has the content type of the text form', async () => {
    await using api = await startApi(makeFolder())
    const response = await fetch(`${api.origin}/metrics`)
    expect(response.headers.get('Content-Type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(await response.text()).toContain('process_cpu_seconds_total')
    expect((await fetch(`${api.origin}/metrics`, { method: 'HEAD' })).status).toBe(200)
  })

  it('counts replies by method, route, status and format, none of which a client can choose', async () => {
    const dataDir = makeFolder()
    await snapshotAt(dataDir, `2026-03-11T02:00:00Z`)
    await using api = await startApi(dataDir)
    const key = await api.makeKey()
    for (const query of ['', '?limit=1', '?limit=x'])
      await (await api.get(`/datasets/app-rankings${query}`, key)).text()
    await (await api.get('/datasets/app-rankings')).text()
    await (await api.get('/status', undefined, { method: 'HEAD' })).text()
    for (let index = 0; index < 20; index += 1) await fetch(`${api.origin}/made-up-${index}?x=${index}`)
    await fetch(`${api.origin}/made-up`, { method: 'PROPFIND' })
    await fetch(`${api.origin}/healthz`, { method: 'PUT' })
    const rankings = 'route="/api/v1/datasets/app-rankings"'
    expect(await countedReplies(api.origin, 27)).toEqual(
      [
        `http_replies_total{method="GET",${rankings},status="200",format="json"} 2`,
        `http_replies_total{method="GET",${rankings},status="400",format="json"} 1`,
        `http_replies_total{method="GET",${rankings},status="401",format="json"} 1`,
        'http_replies_total{method="HEAD",route="/api/v1/status",status="200",format="json"} 1',
        'http_replies_total{method="GET",route="unknown",status="404",format="json"} 20',
        'http_replies_total{method="other",route="/healthz",status="405",format="json"} 1',
        'http_replies_total{method="other",route="unknown",status="404",format="json"} 1',
      ].toSorted(),
    )
  })

  it('shows the served snapshot, and each that replaces it', async () => {
    const dataDir = makeFolder()
    await using api = await startApi(dataDir)
    const dataset = async () => (await scrape(api.origin)).filter((line) => line.startsWith('dataset_'))
    expect(await dataset()).toEqual([
      'dataset_snapshot_timestamp_seconds 0',
      'dataset_data_through_timestamp_seconds 0',
      'dataset_days_missing 0',
      'dataset_degraded 0',
      'dataset_faults 0',
    ])
    const asOf = '2026-03-11T02:00:00Z'
    await snapshotAt(dataDir, asOf)
    expect(await until(async () => !(await dataset())[0]?.endsWith(' 0') && dataset())).toEqual([
      `dataset_snapshot_timestamp_seconds ${Date.parse(asOf) / 1000}`,
      `dataset_data_through_timestamp_seconds ${Date.parse(DAY) / 1000}`,
      'dataset_days_missing 1',
      'dataset_degraded 0',
      // This snapshot has no record.
      'dataset_faults 1',
    ])
    await snapshotAt(dataDir, '2026-03-12T02:00:00Z')
    await until(async () => (await dataset()).at(-1)?.endsWith(' 2'))
  })
})
