/** Pages of apps: one app, search, comparison and files; and the method page. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startApi, type Api } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { publishSnapshot } from '../../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
const dataDir = folders.make()
const EARLIER = '2026-11-19T02:00:00Z'
let api: Api

beforeAll(async () => {
  const apps = [
    { id: 1, name: 'Night Owl <b>', tags: ['cli-agent'] as const },
    { id: 2, name: 'Day Lark' },
    { id: 3, name: 'Owlet' },
  ]
  const daily = Array.from({ length: 28 }, (_, day) => {
    const date = `2026-10-${String(day + 1).padStart(2, '0')}`
    return [
      { day: date, app: 1, requests: 2, tokens: 1000 * (day + 1) },
      { day: date, app: 2, tokens: 10_000 },
    ]
  }).flat()
  const content = { dataThrough: '2026-10-28', firstDay: '2026-10-01', apps, missing: ['2026-10-20'] }
  const present = daily.filter(({ day }) => day !== '2026-10-20')
  await publishSnapshot(dataDir, { ...content, daily: present.slice(0, 20), asOf: new Date(EARLIER) })
  await publishSnapshot(dataDir, { ...content, daily: present, asOf: new Date('2026-11-20T02:00:00Z') })
  api = await startApi(dataDir)
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

async function get(path: string): Promise<string> {
  const response = await fetch(`${api.origin}${path}`)
  expect(response.status).toBe(200)
  return (await response.text()).replaceAll(/[ \n]+/g, ' ')
}

it('the page of an app has its usage by day with the gaps, its ranks by week and its tags', async () => {
  const text = await get('/apps/1')
  expect(text).toContain('<bdi>Night Owl &lt;b&gt;</bdi>')
  expect(text).toContain('href="/?subcategory=cli-agent"')
  expect(text).toContain('First day 2026-10-01')
  expect(text).toContain('<title>2026-10-20 (no data)</title>')
  expect(text).toContain('best weekly rank 1')
  expect(text).toContain('<figcaption>Requests per day, 2026-10-01 to 2026-10-28</figcaption>')
  expect(text).toContain('100.0% of <a href="/?category=coding">coding</a>')
  // It has the most tokens in the newest week, and the other app in the oldest.
  expect(text).toMatch(
    /2026-10-22 to 2026-10-28<\/th> <td class="number"> 1 <\/td> <td class="number"> 1 <\/td>/,
  )
  expect(text).toMatch(/2026-10-01 to 2026-10-07<\/th> <td class="number"> 2 <\/td>/)
})

it('the pages of apps show the requested snapshot', async () => {
  expect(await get('/apps/1')).toContain('27 days')
  const earlier = await get(`/apps/1?as_of=${EARLIER}`)
  expect(earlier).toContain(`as of <time datetime="${EARLIER}"`)
  const pin = `as_of=${encodeURIComponent(EARLIER)}`
  expect(earlier).toContain(`/apps/1/history.csv?${pin}`)
  for (const target of ['subcategory=cli-agent', 'category=coding']) {
    expect(earlier).toContain(`href="/?${target}&amp;${pin}"`)
  }
  const field = `<input type="hidden" name="as_of" value="${EARLIER}" />`
  for (const page of [earlier, await get(`/?as_of=${EARLIER}`)]) expect(page).toContain(field)
})

it('the history of an app is available as CSV, and as drawings without a style sheet', async () => {
  const csv = (await (await fetch(`${api.origin}/apps/1/history.csv`)).text()).split('\n')
  expect(csv[0]).toBe('day,requests,prompt_tokens,completion_tokens,total_tokens')
  expect(csv[1]).toBe('2026-10-01,2,1000,0,1000')
  for (const name of ['chart', 'badge']) {
    const response = await fetch(`${api.origin}/apps/1/${name}.svg`)
    expect(response.headers.get('Content-Type')).toBe('image/svg+xml; charset=utf-8')
    const svg = await response.text()
    expect(svg).toMatch(/^<svg\s+xmlns="http:\/\/www.w3.org\/2000\/svg"/)
    expect(svg).toContain('fill="#')
    expect(svg).not.toContain('class=')
  }
  expect(await get('/apps/1/badge.svg')).toContain('rank 1 this week')
  expect(await get('/apps/3/badge.svg')).toContain('not ranked')
})

it.each([
  ['99', 'No app with the id 99 is listed'],
  ['nobody', 'ids are numbers'],
  ['9999999999999999999', 'is listed'],
])('/apps/%s is 404 with the reason, also for HEAD', async (id, words) => {
  const address = `${api.origin}/apps/${id}`
  const [head, response] = await Promise.all([fetch(address, { method: 'HEAD' }), fetch(address)])
  expect([head.status, response.status]).toEqual([404, 404])
  expect(await response.text()).toContain(words)
})

it('a search finds apps by a part of their name in any case, and reports if there is none', async () => {
  const text = await get('/apps?q=OWL')
  expect(text.indexOf('Night Owl')).toBeLessThan(text.indexOf('Owlet'))
  expect(text).toContain('href="/apps/3"')
  expect(text).not.toContain('Day Lark')
  expect(await get('/apps?q=%25')).toContain('No listed app has this in its name')
})

it.each(['linear', 'log'])('two apps are compared on one %s chart', async (scale) => {
  const text = await get(`/compare?apps=1,2&scale=${scale}`)
  // The chart is drawn twice, for wide and for narrow windows.
  expect(text.match(/<g class="line band-\d"/g)).toHaveLength(4)
  // A missing day breaks a line in two.
  expect(text.match(/<polyline/g)).toHaveLength(8)
  expect(text).toContain('<th scope="row" class="days">2026-10-20 (no data)</th>')
  expect(text).toContain('href="/apps/2"')
})

it.each([
  ['?apps=1', '2 to 5 apps'],
  ['?apps=1,2,3,4,5,6', '2 to 5 apps'],
  ['?apps=1,x', '2 to 5 apps'],
  ['?apps=1,2&scale=square', 'linear or log'],
])('/compare%s is rejected with what is allowed', async (search, words) => {
  const response = await fetch(`${api.origin}/compare${search}`)
  expect(response.status).toBe(400)
  expect(await response.text()).toContain(words)
})

it('/method explains both orders with an example, and is linked from the page', async () => {
  expect(await get('/')).toContain('href="/method"')
  const text = await get('/method')
  expect(text).toContain(
    'The average before is 400, so its growth is 1,000 − 400 = 600 tokens, or 150 percent.',
  )
  expect(text).toContain('not strictly comparable')
})
