/** CONTRACT 4.6: the pages at the origin and their files, as a browser without a script gets them. */
import { beforeAll, describe, expect, it } from 'vitest'
import { envelopeSchema, rankingsSchema, startApi, type Api } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import { register, writeRaw } from '../../support/pipeline/nightly.ts'
import { oneApp, publishSnapshot } from '../../support/pipeline/snapshot.ts'

const EVIL = '<script>alert(1)</script> & "co"'
const BACKWARDS = 'App \u202e59'
const FORMULA = '=1+1'
const NAMES = new Map([
  [56, FORMULA],
  [58, BACKWARDS],
  [59, EVIL],
])

const dataDir = makeFolder()
let api: Api

/** 60 apps; app n uses n times `tokens`, with the model acme/large or, for odd ids, acme/small. */
function deliver(day: string, tokens: number): void {
  const rows = Array.from({ length: 60 }, (_, app) => {
    const model = app % 2 === 0 ? 'acme/small' : 'acme/large'
    return `${day}T12:00:00Z,${app + 1},${tokens * (app + 1)},0,${model}`
  })
  const header = 'ts,app_id,prompt_tokens,completion_tokens,model'
  writeRaw(dataDir, `usage/date=${day}/rows.csv`, `${header}\n${rows.join('\n')}\n`)
}

beforeAll(async () => {
  const apps = Array.from({ length: 60 }, (_, app) => {
    const name = `"${(NAMES.get(app) ?? `App ${app + 1}`).replaceAll('"', '""')}"`
    return `${app + 1},${name},public,${app % 2 === 0 ? 'cli-agent' : 'roleplay|game'},,2025-01-01`
  })
  register(dataDir, apps)
  deliver('2026-01-03', 1)
  deliver('2026-01-05', 1)
  deliver('2026-01-06', 1_000_000)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  deliver('2026-01-05', 2)
  deliver('2026-01-07', 5)
  await runAt(dataDir, '2026-01-08T02:00:00Z')
  api = await startApi(dataDir, { clock: () => new Date('2026-01-08T12:00:00Z') })
})

/** A page, with white space as a browser shows it. */
async function page(path: string, origin = api.origin): Promise<string> {
  const response = await fetch(`${origin}${path}`)
  expect(response.status).toBe(200)
  expect(response.headers.get('Content-Type')).toBe('text/html; charset=utf-8')
  return (await response.text()).replaceAll(/\s+/g, ' ')
}

async function json(path: string): Promise<unknown> {
  const response = await fetch(`${api.origin}${path}`)
  expect(response.status).toBe(200)
  return await response.json()
}

const decoded = (text: string) => text.replaceAll('&#38;', '&')
const textOf = (cell: string) => cell.replaceAll(/<[^>]*>/g, '').trim()

/** The rows of the table, each as the texts of its cells without the tick. */
function rowsOf(text: string): string[][] {
  const [, body = ''] = /<tbody>(.*?)<\/tbody>/.exec(text) ?? []
  return [...body.matchAll(/<tr>(.*?)<\/tr>/g)].map(([, row = '']) =>
    [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/g)].slice(1).map(([, cell = '']) => textOf(cell)),
  )
}

const names = (text: string) =>
  [...text.matchAll(/<th scope="row"[^>]*>(.*?)<\/th>/g)].map(([, cell = '']) => textOf(cell))

function target(text: string, label: string): string {
  const [, href = ''] = new RegExp(`href="([^"]+)"[^>]*>\\s*${label}\\s*<`).exec(text) ?? []
  return decoded(href)
}

const SEARCH = new URLSearchParams({ q: `<b>"'&\u0007\u009f` }).toString()
const EARLIER = '/?as_of=2026-01-07T02:00:00Z'
/** The first has no window before it, the second one whose days are all there. */
const [FIFTH, SIXTH_ON] = ['/?start_date=2026-01-05&end_date=2026-01-05', '/?start_date=2026-01-06']
/** App 60 used 60 + 120 tokens in the three days before the 6th, and 60 million on it. */
const GROWTH = '/?sort=trending&start_date=2026-01-06&end_date=2026-01-06'

it.each<[path: string, shown: string | RegExp]>([
  ['/', 'title="58,000,464 tokens"'],
  ['/', '">&#60;script&#62;alert(1)&#60;/script&#62; &#38; &#34;co&#34;</bdi>'],
  ['/', '">App \u202e59</bdi>'],
  [`/?${SEARCH}`, '<q>&#60;b&#62;&#34;&#39;&#38;\ufffd\ufffd</q>'],
  ['/?q=%25', ': 0 apps with <q>%</q> in the name'],
  ['/?offset=100', 'Nothing is in this list.'],
  ['/?start_date=2026-01-04&end_date=2026-01-04', 'Nothing is in this list'],
  // Forms refuse what would be an error.
  ['/', 'maxlength="100"'],
  ['/', 'min="2025-01-01" max="2026-01-07"'],
  ['/?start_date=2026-01-05&end_date=2026-01-06', '2026-01-05 to 2026-01-06: '],
  ['/?start_date=2026-01-03', /coverage\.csv">1 day missing, 1 day restated</],
  // Days before the first one of the data are not missing.
  [
    '/',
    /tokens, 60 apps · data begins 2026-01-03 · <a href="[^"]*coverage\.csv">1 day missing, 1 day restated</,
  ],
  ['/models?days=1', /tokens, 2 models · <a/],
  ['/?days=1', '<td class="wide">=</td>'],
  [GROWTH, 'title="59,999,940 tokens more than'],
  [GROWTH, '>&#62;999%<'],
  [GROWTH, '<p>2026-01-06: 60 growing apps ·'],
  [GROWTH, 'the data lacks 1 of the 3 days before, which count as zero'],
  [FIFTH, 'The change of rank is not shown: the data lacks 1 of the 1 day before.'],
  ['/?offset=50', '>&#60;0.1% <'],
  ['/', /<option value="" selected ?>2026-01-08T02:00:00Z</],
  ['/', /<option value="2026-01-07T02:00:00Z" ?>2026-01-07T02:00:00Z</],
  [EARLIER, /<option value="2026-01-07T02:00:00Z" selected ?>/],
  [EARLIER, 'an earlier snapshot'],
  [EARLIER, 'Data through <time>2026-01-06</time>'],
  [EARLIER, 'href="/apps/60?as_of=2026-01-07T02%3A00%3A00Z"'],
  ['/', 'Source: App Rankings, as of 2026-01-08T02:00:00Z (CC-BY-4.0)'],
  ['/', '<noscript><p>The chart needs a script'],
  ['/apps/60', '<noscript><p>The chart needs a script'],
  ['/', '<title>Popular apps, 2025-12-09 to 2026-01-07 · App rankings</title>'],
  ['/', '<meta property="og:title" content="Popular apps, 2025-12-09 to 2026-01-07"'],
  ['/', /<meta name="description" content="[^"]{50,}"/],
  ['/', /<meta property="og:description" content="[^"]{50,}"/],
])('%s shows %s', async (path, shown) => expect(await page(path)).toMatch(shown))

const NOTE = 'not strictly comparable'
it.each([
  ['/feed.xml', 'Days with new figures: 1;'],
  ['/robots.txt', 'Disallow: /api/\nDisallow: /*q=\n'],
  ['/', NOTE],
  ['/api/v1/openapi.json', NOTE],
])('%s has %j', async (path, part) => {
  expect(await (await fetch(`${api.origin}${path}`)).text()).toContain(part)
})

it.each([
  ['/', '<script>alert'],
  ['/', 'outdated'],
  ['/?limit=20&offset=40', /rel="next"/],
  ['/?start_date=2026-01-05&end_date=2026-01-06', /aria-current="true">\d/],
  [SIXTH_ON, /missing<|restated</],
  [FIFTH, 'title="Change of rank"'],
])('%s does not show %s', async (path, absent) => expect(await page(path)).not.toMatch(absent))

it('says that it is outdated once the day after its last one is due, an earlier snapshot that it is one', async () => {
  await using late = await startApi(dataDir, { clock: () => new Date('2026-01-09T04:00:00Z') })
  expect(await page('/', late.origin)).toContain('<strong>outdated</strong>')
  expect(await page(EARLIER, late.origin)).not.toContain('outdated')
})

it.each([undefined, 'https://rankings.example'])(
  'the feed has whole addresses, for readers that do not resolve others (PUBLIC_URL: %s)',
  async (publicUrl) => {
    await using published = await startApi(dataDir, {
      environment: publicUrl === undefined ? {} : { PUBLIC_URL: publicUrl },
    })
    const { origin } = published
    const text = await (await fetch(`${origin}/feed.xml`)).text()
    const links = [...text.matchAll(/href="([^"]*)"/g)].map(([, href = '']) => href)
    const paths = ['/feed.xml', '/', '/?as_of=2026-01-08T02:00:00Z', '/?as_of=2026-01-07T02:00:00Z']
    expect(links).toEqual(paths.map((path) => `${publicUrl ?? origin}${path}`))
  },
)

describe('the ranking', () => {
  it('has rank, name, subcategory, tokens, share and requests', async () => {
    const rows = rowsOf(await page('/'))
    expect(rows).toHaveLength(50)
    expect(rows[2]?.slice(0, 6)).toEqual(['3', 'App 58', 'game, roleplay', '58.0M', '3.2%', '4'])
    const byRequests = rowsOf(await page('/?sort=requests&limit=3'))
    expect(byRequests.map(([, name, , requests]) => [name, requests])).toEqual(
      ['App 1', 'App 2', 'App 3'].map((name) => [name, '4']),
    )
  })

  it('has a row for what the address names; what another snapshot lacks breaks no link', async () => {
    const text = await page('/?limit=2&apps=999,3')
    expect(rowsOf(text).map(([rank]) => rank)).toEqual(['1', '2', '58'])
    expect(text).toContain('· not in this snapshot: 999 ·')
  })

  it('links to the further ranks and back, and no further than they go', async () => {
    const text = await page('/?limit=20&offset=10')
    expect(target(text, 'Next')).toBe('/?limit=20&offset=30')
    expect(target(text, 'Previous')).toBe('/?limit=20')
    expect(names(await page('/?limit=20&offset=40')).at(-1)).toBe('App 1')
  })

  it('has every choice as a link or in a form, which work without a script and keep the others', async () => {
    const text = await page('/?category=coding&days=7&chart=lines&offset=3')
    const chosen = [...text.matchAll(/aria-current="true">([^<]*)/g)].map(([, label]) => label)
    expect(chosen).toEqual(['Apps', 'Popular', '7 d', 'Lines'])
    expect(text).toMatch(/<option value="coding" selected ?>/)
    expect(target(text, 'Models')).toBe('/models?days=7&chart=lines')
    expect(target(text, 'Trending')).toBe('/?category=coding&days=7&chart=lines&sort=trending')
    expect(target(text, '90 d')).toBe('/?category=coding&days=90&chart=lines')
    expect(target(text, 'Stacked')).toBe('/?category=coding&days=7')
    const forms = [...text.matchAll(/<form[^>]*>(.*?)<\/form>/g)].map(([, form = '']) =>
      [...form.matchAll(/type="hidden" name="(\w+)" value="(\w+)"/g)].map(([, ...pair]) => pair.join('=')),
    )
    expect(forms).toEqual([
      ['category=coding', 'days=7', 'chart=lines'],
      ['days=7', 'chart=lines'],
      ['category=coding', 'chart=lines'],
      ['category=coding', 'days=7', 'chart=lines'],
    ])
  })

  it('is searched by a part of the names in any case, without the space that phones add, with the ranks of the whole list', async () => {
    const found = rowsOf(await page('/?q=aPP%205%20&as_of=2026-01-08T02:00:00Z'))
    expect(found.map(([rank, name]) => [rank, name])).toEqual(
      [58, 56, 55, 54, 53, 52, 51, 50, 5].map((app) => [String(61 - app), `App ${app}`]),
    )
    expect(names(await page('/models?q=SMALL'))).toEqual(['acme/small'])
  })

  it('takes a category or a subcategory from one field, and ignores empty fields of a form', async () => {
    expect(names(await page('/?category=cli-agent'))).toEqual(names(await page('/?subcategory=cli-agent')))
    const tags = rowsOf(await page('/?category=entertainment')).map((row) => row[2])
    expect(new Set(tags)).toEqual(new Set(['game, roleplay']))
    expect(await page('/?category=&days=&sort=')).toBe(await page('/'))
  })

  it('ignores what other services add to links', async () => {
    const added = 'utm_source=chatgpt.com&utm_medium=email&mc_cid=a&fbclid=b&msclkid=c&ref=producthunt'
    expect(await page(`/?${added}&limit=3`)).toBe(await page('/?limit=3'))
    expect(await page(`/method?${added}`)).toBe(await page('/method'))
  })

  it('has its files and its licence above the table', async () => {
    const text = await page('/?category=coding&apps=1&chart=lines')
    const above = text.slice(text.indexOf('id="list"'), text.indexOf('<table>'))
    expect(target(above, 'CSV')).toBe('/rankings.csv?category=coding')
    expect(target(above, 'JSON')).toBe('/rankings.json?category=coding')
    expect(target(above, 'DuckDB')).toMatch(/app-rankings\.duckdb$/)
    expect(above).toContain('rel="license"')
  })

  it('describes its dataset to search engines, on every page', async () => {
    const ofApp = await page('/apps/60')
    const [, description = ''] = /<script type="application\/ld\+json">(.*?)<\/script>/.exec(ofApp) ?? []
    expect(JSON.parse(description)).toMatchObject({
      '@type': 'Dataset',
      name: 'App Rankings',
      description: expect.stringContaining('requests and tokens per UTC day and public app'),
      creator: { '@type': 'Organization', name: 'App Rankings' },
      creditText: 'Source: App Rankings, as of 2026-01-08T02:00:00Z (CC-BY-4.0)',
      dateModified: '2026-01-08T02:00:00Z',
      isAccessibleForFree: true,
      distribution: ['app-rankings.duckdb', 'rankings.csv'].map((name) => ({
        name,
        contentUrl: expect.stringMatching(`^http://.*/20260108T020000Z/${name}$`),
      })),
      license: 'https://creativecommons.org/licenses/by/4.0/',
      temporalCoverage: '2026-01-03/2026-01-07',
    })
  })
})

it('the models are the same page over models: rank, its change, name, tokens, share, requests', async () => {
  const rows = rowsOf(await page('/models?days=1'))
  expect(rows.map((row) => row.slice(0, 6))).toEqual([
    ['1', '=', 'acme/large', '4.65K', '50.8%', '30'],
    ['2', '=', 'acme/small', '4.50K', '49.2%', '30'],
  ])
  expect(names(await page('/models?sort=requests&limit=1&offset=1'))).toEqual(['acme/small'])
  expect(await json('/models.json?days=1&limit=1')).toMatchObject({
    data: [{ model_permaslug: 'acme/large', rank: 1, total_requests: 30, total_tokens: '4650' }],
  })
})

describe('the files of the ranking', () => {
  it('rankings.json has the rows of the API, without a key', async () => {
    const rows = rankingsSchema.parse(await json('/rankings.json?category=coding&days=1&limit=3&offset=1'))
    const query = 'category=coding&start_date=2026-01-07&end_date=2026-01-07&limit=3&offset=1'
    const reply = await api.getAsNewAccount(`/datasets/app-rankings?${query}`)
    expect(rows).toEqual(await reply.json())
  })

  it('with series=1 it has the days of its apps and of those named, null where there is no data', async () => {
    const query = 'start_date=2026-01-03&end_date=2026-01-05&category=coding&limit=1&apps=2&series=1'
    expect(await json(`/rankings.json?${query}`)).toMatchObject({
      series: {
        days: ['2026-01-03', '2026-01-04', '2026-01-05'],
        coverage: ['complete', 'missing', 'restated'],
        // The odd ids up to 59, once and twice.
        total: ['900', null, '1800'],
        items: [
          { id: '59', in_list: true, values: ['59', null, '118'] },
          { id: '2', in_list: false, values: ['2', null, '4'] },
        ],
      },
    })
  })

  it.each([
    ['/rankings.json', '*'],
    ['/models.csv', '*'],
    ['/apps/60/history.csv', '*'],
    ['/', null],
  ])('%s may be read by scripts of other pages: %s', async (path, origin) => {
    expect((await fetch(`${api.origin}${path}`)).headers.get('Access-Control-Allow-Origin')).toBe(origin)
  })

  it('rankings.csv is made for spreadsheets: a byte order mark, and no name is a formula', async () => {
    const response = await fetch(`${api.origin}/rankings.csv?limit=4&days=1`)
    const text = Buffer.from(await response.arrayBuffer()).toString()
    expect(text.startsWith('\u{feff}app_id,app_name,rank,total_requests,total_tokens\n')).toBe(true)
    expect(text).toContain("\n57,'=1+1,4,1,285\n")
  })
})

const BROWSER = { headers: { Accept: 'text/html,*/*;q=0.8' } }

describe('what cannot be shown', () => {
  it.each([
    ['/?days=3', 400, 'allowed: one of 1, 7, 30, 90, 365'],
    ['/rankings.json?days=7&start_date=2026-01-05', 400, 'instead of start_date'],
    ['/?sort=best', 400, 'popular, trending'],
    ['/?q=' + 'x'.repeat(101), 400, 'at most 100 characters'],
    ['/?by=tokens', 400, 'is unknown'],
    ['/method?x=1', 400, 'allowed: no parameters'],
    ['/rankings.json?apps=999', 400, 'public apps of this snapshot'],
    ['/models.json?models=acme/none', 400, 'public models of this snapshot'],
    ['/?apps=1,2,3,4,5,6,7,8', 400, 'up to 7'],
    ['/?apps=x', 400, 'up to 7'],
    ['/models?sort=trending', 400, 'one of popular, requests'],
    ['/?as_of=2020-01-01T00:00:00Z', 400, 'retained snapshot'],
    ['/apps/99', 404, 'not registered or not public'],
    ['/apps/nobody', 404, 'ids are numbers'],
    ['/apps/99999999999999999999', 404, 'is listed'],
    ['/nowhere', 404, 'No such path: /nowhere'],
  ])('%s is a page for browsers and the error envelope for programs', async (path, status, words) => {
    const forPeople = await fetch(`${api.origin}${path}`, BROWSER)
    expect(forPeople.headers.get('Content-Type')).toBe('text/html; charset=utf-8')
    expect(await forPeople.text()).toContain(words)
    const forPrograms = await fetch(`${api.origin}${path}`)
    expect([forPeople.status, forPrograms.status]).toEqual([status, status])
    expect(envelopeSchema.parse(await forPrograms.json()).error.message).toContain(words)
  })

  it.each(['/api/v1/nowhere', '/api/v1/datasets/app-rankings'])(
    '%s stays JSON in a browser',
    async (path) => {
      envelopeSchema.parse(await (await fetch(`${api.origin}${path}`, BROWSER)).json())
    },
  )
})

describe('every page', () => {
  const PAGES = ['/', '/models', '/apps/60', '/?q=app', '/method', '/?sort=trending&days=1']

  it.each(PAGES)('%s has only links that open without a key', async (path) => {
    const text = await page(path)
    const links = text.matchAll(/(?:href|src)="(\/[^"]*)"/g)
    const local = new Set([...links].map(([, href = '']) => decoded(href)))
    expect(local.size).toBeGreaterThan(5)
    for (const href of local)
      expect((await fetch(`${api.origin}${href}`, { method: 'HEAD' })).status, href).toBe(200)
  })

  it.each([...PAGES, '/docs'])(
    '%s allows and loads nothing from elsewhere, and a page nothing inline',
    async (path) => {
      const response = await fetch(`${api.origin}${path}`)
      const [policy, text] = [response.headers.get('Content-Security-Policy'), await response.text()]
      expect(policy).toMatch(/^default-src 'none';(?!.*(?:https?:|\*))/)
      expect(text).not.toMatch(/(?:src|rel="stylesheet" href)="(?!\/[^/])/)
      if (path !== '/docs') expect(policy + text).not.toMatch(/unsafe|\sstyle=|\son[a-z]+=|<style|<script>/)
    },
  )

  it('loads versioned files that are cached for ever', async () => {
    const text = await page('/')
    const files = [...text.matchAll(/(?:src|rel="stylesheet" href)="([^"]+)"/g)].map(([, url = '']) => url)
    expect(files).toHaveLength(3)
    for (const file of files) {
      const versioned = await fetch(`${api.origin}${file}`)
      expect(versioned.headers.get('Cache-Control')).toBe('public, max-age=31536000, immutable')
      const other = await fetch(`${api.origin}${file.replace(/\?.*/, '?another')}`)
      expect(other.headers.get('Cache-Control')).toBe('public, max-age=3600')
    }
  })

  it.each([
    '/',
    '/docs',
    '/assets/chart.js',
    '/api/v1/openapi.json',
    '/feed.xml',
    '/api/v1/datasets/app-rankings/snapshots',
  ])('%s is sent in the preferred coding, and is 304 for the tag of each', async (path) => {
    const [bodies, tags] = [new Set<string>(), new Set<string | null>()]
    for (const coding of ['identity', 'gzip', 'br']) {
      const ask = (known: Record<string, string> = {}) =>
        fetch(`${api.origin}${path}`, { headers: { 'Accept-Encoding': coding, ...known } })
      const whole = await ask()
      const sent = ['Content-Encoding', 'Vary'].map((name) => whole.headers.get(name))
      expect(sent).toEqual([coding === 'identity' ? null : coding, 'Accept-Encoding'])
      bodies.add(await whole.text())
      const tag = whole.headers.get('ETag')
      tags.add(tag)
      if (tag !== null) expect((await ask({ 'If-None-Match': tag })).status).toBe(304)
    }
    expect([bodies.size, tags.size]).toEqual([1, tags.has(null) ? 1 : 3])
  })

  it('past the bound of waiting views a further one is 503, and cached views are served all the same', async () => {
    const flood = Array.from({ length: 150 }, (_, visitor) =>
      fetch(`${api.origin}/?limit=9&offset=${visitor % 100}&days=${visitor < 100 ? 7 : 90}`),
    )
    expect((await fetch(`${api.origin}/`)).status).toBe(200)
    const replies = await Promise.all(flood)
    for (const reply of replies) {
      await reply.arrayBuffer()
      expect([200, 503]).toContain(reply.status)
      expect(reply.headers.has('Retry-After')).toBe(reply.status === 503)
    }
    const refused = replies.filter(({ status }) => status === 503)
    // A refusal is not cached.
    expect((await fetch(String(refused[0]?.url))).status).toBe(200)
  })

  it('is served to two hundred visitors of twenty views at once, though those who asked first leave', async () => {
    const leaving = new AbortController()
    const visits = Array.from({ length: 200 }, async (_, visitor) => {
      const signal = visitor < 20 ? leaving.signal : null
      const response = await fetch(`${api.origin}/?limit=${1 + (visitor % 20)}&offset=7`, { signal })
      leaving.abort()
      await response.arrayBuffer()
      return response.status
    })
    await Promise.allSettled(visits.slice(0, 20))
    const statuses = await Promise.all(visits.slice(20))
    expect(new Set(statuses)).toEqual(new Set([200]))
  })
})

describe('the page of an app', () => {
  it('has its tags, first day, tokens and requests, and no table before the first whole week', async () => {
    const text = await page('/apps/60')
    expect(textOf(/<section> <p>(.*?)<\/p>/.exec(text)?.[1] ?? '')).toBe(
      'game · roleplay · first day 2026-01-03 · tokens: 60.0M · requests: 4',
    )
    expect(target(text, 'game')).toBe('/?category=game')
    expect(target(text, 'Compare it in the rankings')).toBe('/?apps=60')
    expect(text).not.toContain('<table>')
  })

  it('has its ranks by week, and its tokens in trillions at most', async () => {
    const folder = makeFolder()
    await publishSnapshot(folder, oneApp(2, 265_000_000_000_000_000))
    await using huge = await startApi(folder)
    const text = await page('/apps/1', huge.origin)
    expect(text).toContain('title="265,000,000,000,000,000 tokens">265,000T<')
    expect(rowsOf(text).slice(0, 2)).toEqual([
      ['1', '1'],
      ['–', '–'],
    ])
  })

  it('has its history as CSV, in which a missing day is a row that says so', async () => {
    const csv = await (await fetch(`${api.origin}/apps/60/history.csv`)).text()
    expect(csv.split('\n').slice(0, 4)).toEqual([
      'day,requests,prompt_tokens,completion_tokens,total_tokens,coverage',
      '2026-01-03,1,60,0,60,complete',
      '2026-01-04,0,0,0,0,missing',
      '2026-01-05,1,120,0,120,restated',
    ])
  })
})
