/** The page's statements on missing days. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApi, type Api } from '../../../support/api.ts'
import { runAt } from '../../../support/pipeline/in-process.ts'
import { TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
const dataDir = folders.make()
let api: Api

function deliver(day: string, broken = ''): void {
  const rows = Array.from({ length: 200 }, () => `${day}T12:00:00Z,1,1,0\n`)
  const header = 'ts,app_id,prompt_tokens,completion_tokens\n'
  writeRaw(dataDir, `usage/date=${day}/rows.csv`, `${header}${rows.join('')}${broken}`)
}

beforeAll(async () => {
  const app = { app_id: 1, app_name: 'The app', visibility: 'public', updated_at: '2025-01-01' }
  writeRaw(dataDir, 'apps/apps.ndjson', JSON.stringify({ ...app, subcategories: [] }))
  for (const day of ['2026-01-05', '2026-01-06', '2026-01-10']) deliver(day)
  deliver('2026-01-12', '2026-01-12T12:00:00Z,1,-1,0\n')
  await runAt(dataDir, '2026-01-13T02:00:00Z')
  api = await startApi(dataDir, { clock: () => new Date('2026-01-13T12:00:00Z') })
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

/** The text of the page, with white space as a browser shows it. */
async function page(search: string): Promise<string> {
  const response = await fetch(`${api.origin}/${search}`)
  expect(response.status).toBe(200)
  return (await response.text()).replaceAll(/\s+/g, ' ')
}

describe('a window with gaps', () => {
  it('lists its missing and partial days, and links to their table', async () => {
    const text = await page('?start_date=2026-01-04&end_date=2026-01-12')
    expect(text).toContain(
      '5 days of this window are missing: 2026-01-04, 2026-01-07 to 2026-01-09, 2026-01-11; ' +
        '1 day is partial, some rows were rejected: 2026-01-12; see',
    )
    const target = /<a href="([^"]+)">coverage<\/a>/.exec(text)?.[1] ?? ''
    expect((await fetch(`${api.origin}${target}`)).status).toBe(200)
    expect(text).toContain('<title>2026-01-07 (no data)</title>')
    expect(text).toContain('without data for 26 of them')
  })

  it('has no note without gaps', async () => {
    const text = await page('?start_date=2026-01-05&end_date=2026-01-06')
    expect(text).not.toMatch(/missing|no data|partial/)
  })

  it('has its tokens by 1 app if there is only one', async () => {
    const text = await page('?start_date=2026-01-05&end_date=2026-01-06')
    expect(text).toMatch(/Tokens per day, 2026-01-05 to 2026-01-06: \d+ by 1 app </)
  })

  it('is not reported as without apps if it has no data', async () => {
    const text = await page('?start_date=2026-01-07&end_date=2026-01-09')
    expect(text).toContain('There is no data of any day of this window.')
    expect(text).not.toContain('class="chart"')
    expect(text).not.toContain('No app has made this list')
    const other = await page('?start_date=2026-01-05&end_date=2026-01-06&category=coding')
    expect(other).toContain('No app has made this list')
  })

  it.each([
    ['lies wholly in the data', '?start_date=2026-01-06&end_date=2026-01-06', true],
    ['lies partly before the first day', '?start_date=2026-01-06&end_date=2026-01-07', false],
    ['lies before the first day', '?start_date=2026-01-05&end_date=2026-01-06', false],
    ['has missing days', '?start_date=2026-01-12&end_date=2026-01-12', false],
  ])('is compared with the preceding window if that %s', async (_name, search, compared) => {
    const text = await page(search)
    expect(text.includes('The change of rank is not shown: the data lacks')).toBe(!compared)
    expect(text.includes('>Change</th>')).toBe(compared)
    expect(/rank unchanged|>new</.test(text)).toBe(compared)
  })
})
