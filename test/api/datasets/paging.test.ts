/** CONTRACT 4.2 and 4.6: ranks stay absolute over pages, and links lead from page to page. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { rankingsSchema, startApi, type Api } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { publishSnapshot } from '../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
const DAY = '2026-11-19'
const APPS = 250

let api: Api
let key: string

beforeAll(async () => {
  const dataDir = folders.make()
  // All have the same total, so that only the tie-break orders them.
  const ids = Array.from({ length: APPS }, (_, index) => (index * 97) % APPS)
  await publishSnapshot(dataDir, {
    asOf: new Date('2026-11-20T02:00:00Z'),
    dataThrough: DAY,
    apps: ids.map((id) => ({ id, name: `App ${id}`, tags: id < 20 ? ['game' as const] : [] })),
    daily: ids.map((app) => ({ day: DAY, app, tokens: 10 })),
  })
  api = await startApi(dataDir)
  key = await api.makeKey()
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

async function ask(query: string) {
  const { headers } = await api.get(`/datasets/app-rankings?${query}`, key)
  return { link: headers.get('Link') ?? '', total: headers.get('X-Total-Count') }
}

describe('pages of GET /datasets/app-rankings', () => {
  it.each(['popular', 'trending'])('of %s have absolute ranks without gap or overlap', async (sort) => {
    const ids: number[] = []
    const ranks: number[] = []
    for (const [offset, limit] of [
      [0, 40],
      [40, 60],
      [100, 100],
    ]) {
      const response = await api.get(
        `/datasets/app-rankings?sort=${sort}&offset=${offset}&limit=${limit}`,
        key,
      )
      const { data } = rankingsSchema.parse(await response.json())
      expect(data).toHaveLength(limit ?? 0)
      ranks.push(...data.map((row) => row.rank))
      ids.push(...data.map((row) => row.app_id))
    }
    expect(ranks).toEqual(Array.from({ length: 200 }, (_, index) => index + 1))
    expect(ids).toEqual(Array.from({ length: 200 }, (_, index) => index))
  })

  it('link on up to the last offset', async () => {
    const linkOf = async (offset: number) =>
      (await api.get(`/datasets/app-rankings?limit=50&offset=${offset}`, key)).headers.get('Link')
    expect(await linkOf(50)).toMatch(/offset=100>; rel="next"/)
    expect(await linkOf(51)).not.toContain('rel="next"')
  })

  it('link to the last page, and never to an empty one', async () => {
    const all = await ask('limit=50')
    expect(all.link).toMatch(/offset=50>; rel="next"/)
    expect(all.link).toMatch(/offset=100>; rel="last"/)
    expect(all.total).toBe('200')
    const games = await ask('limit=10&category=entertainment')
    expect(games.link).toMatch(/offset=10>; rel="next"/)
    expect(games.link).toMatch(/offset=10>; rel="last"/)
    expect(games.total).toBe('20')
    const end = await ask('limit=10&offset=10&category=entertainment')
    expect(end.link).not.toContain('rel="next"')
    expect(end.link).toMatch(/offset=10>; rel="last"/)
  })

  it('beyond the end state the length of the list, and link back to its last page', async () => {
    const beyond = await ask('limit=10&offset=90&category=entertainment')
    expect(beyond.total).toBe('20')
    expect(beyond.link).toMatch(/offset=10>; rel="prev"/)
    expect(beyond.link).toMatch(/offset=10>; rel="last"/)
    expect(beyond.link).not.toContain('rel="next"')
    const empty = await ask('limit=10&offset=90&category=coding')
    expect(empty.total).toBe('0')
    expect(empty.link).not.toMatch(/rel="(prev|next|last)"/)
  })
})
