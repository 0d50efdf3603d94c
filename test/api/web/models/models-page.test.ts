/** GET /models: the models of the public apps, as chart and table. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApi, type Api } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { publishSnapshot } from '../../../support/pipeline/snapshot.ts'

const LAST_DAY = '2026-11-19'
const folders = new TemporaryFolders()
let api: Api

beforeAll(async () => {
  const dataDir = folders.make()
  const models = [
    { day: LAST_DAY, model: 'acme/large', tokens: 600, requests: 3 },
    { day: LAST_DAY, model: 'acme/small', tokens: 300 },
    { day: LAST_DAY, model: 'acme/unserved', tokens: 0, requests: 0 },
    { day: LAST_DAY, model: 'other', tokens: 100 },
    ...Array.from({ length: 60 }, (_, number) => ({ day: '2026-11-10', model: `b/m${number}`, tokens: 1 })),
  ]
  await publishSnapshot(dataDir, {
    asOf: new Date('2026-11-20T02:00:00Z'),
    dataThrough: LAST_DAY,
    firstDay: '2026-10-01',
    apps: [],
    daily: [],
    models,
  })
  api = await startApi(dataDir)
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

async function page(search: string): Promise<string> {
  const response = await fetch(`${api.origin}/models${search}`)
  expect(response.status).toBe(200)
  return await response.text()
}

/** The cells of the table of models, by row. */
function rowsOf(text: string): string[][] {
  const [, section = ''] = text.split('<section id="models"')
  const [, body = ''] = (section.split('</section>')[0] ?? '').split('<tbody>')
  return [...body.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell = '']) =>
      cell.replaceAll(/<[^>]*>/g, '').trim(),
    ),
  )
}

describe('the page of models', () => {
  it('lists them by tokens with their share, and all other usage last', async () => {
    expect(rowsOf(await page('?days=1'))).toEqual([
      ['1', 'acme/large', '600', '60.0%', '3'],
      ['2', 'acme/small', '300', '30.0%', '1'],
      ['', 'other', '100', '10.0%', '1'],
    ])
  })

  it('shows at most 50 models, and the others together', async () => {
    const rows = rowsOf(await page(''))
    expect(rows).toHaveLength(51)
    // 62 models, 50 of them listed, and other usage.
    expect(rows.at(-1)).toEqual(['', 'other', '112', expect.any(String), '13'])
  })

  it('has the chart, the other windows and the tab of the apps, which keep a pinned snapshot', async () => {
    const text = await page('?days=7&as_of=20261120T020000Z')
    expect(text).toContain('Tokens over time, by model')
    expect(text).toMatch(/href="\/models\?days=90&(?:amp;)?as_of=20261120T020000Z"/)
    expect(text).toMatch(/href="\/\?as_of=20261120T020000Z"/)
    expect(await (await fetch(`${api.origin}/`)).text()).toContain('href="/models"')
  })

  it('links to the same figures of the same snapshot in the API', async () => {
    const pinned = 'as_of=2026-11-20T02%3A00%3A00Z&amp;start_date=2026-11-19&amp;end_date=2026-11-19'
    const text = await page('?days=1')
    expect(text).toContain(`href="/api/v1/datasets/rankings-daily?${pinned}"`)
    expect(text).toContain(`href="/api/v1/datasets/rankings-daily?${pinned}&amp;format=csv"`)
  })

  it('reports a window without usage', async () => {
    expect(await page('?start_date=2026-11-01&end_date=2026-11-02')).toContain(
      'No app was used in this window',
    )
  })

  it.each(['?days=3', '?days=7&start_date=2026-11-01', '?end_date=2020-01-01', '?limit=5'])(
    '%s is rejected',
    async (search) => {
      expect((await fetch(`${api.origin}/models${search}`)).status).toBe(400)
    },
  )
})
