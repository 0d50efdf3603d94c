/** CONTRACT 4.6: the feed. */
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApi, type Api } from '../../support/api.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, writeRaw } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
const dataDir = folders.make()
let api: Api

function deliver(day: string, tokens: number): void {
  const header = 'ts,app_id,prompt_tokens,completion_tokens'
  writeRaw(dataDir, `usage/date=${day}/rows.csv`, `${header}\n${day}T12:00:00Z,1,${tokens},0\n`)
}

beforeAll(async () => {
  const app = {
    app_id: 1,
    app_name: 'App',
    visibility: 'public',
    subcategories: [],
    updated_at: '2025-01-01',
  }
  writeRaw(dataDir, 'apps/apps.ndjson', JSON.stringify(app))
  deliver('2026-01-05', 1)
  deliver('2026-01-06', 1)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  deliver('2026-01-05', 2)
  deliver('2026-01-07', 5)
  await runAt(dataDir, '2026-01-08T02:00:00Z')
  api = await startApi(dataDir)
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

describe('the feed', () => {
  it('the feed has an entry per snapshot, newest first, and lists restated days', async () => {
    const response = await fetch(`${api.origin}/feed.xml`)
    expect(response.headers.get('Content-Type')).toBe('application/atom+xml; charset=utf-8')
    const text = await response.text()
    const titles = [...text.matchAll(/<title>([^<]*20[^<]*)<\/title>/g)].map(([, title]) => title)
    expect(titles).toEqual([
      '1 day restated by the snapshot of 2026-01-08T02:00:00Z',
      'Snapshot of 2026-01-08T02:00:00Z',
      'Snapshot of 2026-01-07T02:00:00Z',
    ])
    const snapshot = '/api/v1/datasets/app-rankings/snapshots/20260108T020000Z'
    // An id is permanent, whatever address a reader uses; a link uses the reader's address.
    expect(text).toContain(`<id>http://127.0.0.1:3000${snapshot}</id>`)
    expect(text).toContain(`href="${api.origin}${snapshot}"`)
    expect(text).toContain(
      `<link rel="alternate" type="text/html" href="${api.origin}/?as_of=2026-01-08T02:00:00Z" />`,
    )
  })

  it('the feed states the licence, and how far tokens can be compared', async () => {
    const text = await (await fetch(`${api.origin}/feed.xml`)).text()
    expect(/<rights>(.*)<\/rights>/s.exec(text)?.[1]).toMatch(/CC-BY-4\.0.* not strictly comparable\./s)
  })

  it('the feed is sent again only if it changed, since readers poll it', async () => {
    const first = await fetch(`${api.origin}/feed.xml`)
    const tag = first.headers.get('ETag') ?? 'none'
    const again = await request(`${api.origin}/feed.xml`, { headers: { 'If-None-Match': tag } })
    expect(again.statusCode).toBe(304)
    expect(again.headers['etag']).toBe(tag)
    expect(await again.body.text()).toBe('')
    const other = await request(`${api.origin}/feed.xml`, { headers: { 'If-None-Match': '"other"' } })
    expect(other.statusCode).toBe(200)
    expect(await other.body.text()).toBe(await first.text())
  })
})
