/** A snapshot answers by its own taxonomy: a missing tag gives an empty list. */
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { rankingsSchema, startApi, type Api } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { publishSnapshot } from '../../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
let api: Api

beforeAll(async () => {
  const dataDir = folders.make()
  const folder = await publishSnapshot(dataDir, {
    asOf: new Date('2026-11-20T02:00:00Z'),
    dataThrough: '2026-11-19',
    apps: [{ id: 1, name: 'One', tags: ['game'] }],
    daily: [{ day: '2026-11-19', app: 1, tokens: 7 }],
  })
  const instance = await DuckDBInstance.create(join(folder, 'app-rankings.duckdb'))
  const connection = await instance.connect()
  await connection.run(
    "DELETE FROM categories WHERE category = 'creative' OR subcategory = 'legal'; CHECKPOINT",
  )
  connection.closeSync()
  instance.closeSync()
  api = await startApi(dataDir)
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

it.each([
  'subcategory=legal',
  'category=creative',
  'category=productivity&subcategory=legal',
  'subcategory=image-gen&sort=trending',
])(
  '%s gives no rows, of the current snapshot and of a pinned one, in the API and on the page',
  async (filter) => {
    for (const query of [filter, `${filter}&as_of=20261120T020000Z`]) {
      const response = await api.get(`/datasets/app-rankings?${query}`, await api.makeKey('inference'))
      expect(response.status).toBe(200)
      expect(rankingsSchema.parse(await response.json()).data).toEqual([])
      const page = await fetch(`${api.origin}/?${query}`)
      expect(page.status).toBe(200)
      expect(await page.text()).not.toMatch(/href="\/apps\/\d/)
    }
  },
)

it('its own tags are answered as always', async () => {
  const response = await api.get('/datasets/app-rankings?subcategory=game', await api.makeKey('inference'))
  expect(rankingsSchema.parse(await response.json()).data).toHaveLength(1)
})
