/** The page in a browser without scripts, the feed, and the API catalogue. */
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { envelopeSchema, rankingsSchema, startApi, type Api } from '../../../support/api.ts'
import { html } from '../../../../api/web/html.ts'
import { runAt } from '../../../support/pipeline/in-process.ts'
import { TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'
import { recordSnapshot } from '../../../support/pipeline/snapshot.ts'

const EVIL = '<script>alert(1)</script> & "co"'
const BACKWARDS = 'App\u0007 \u202e59'

const folders = new TemporaryFolders()
const dataDir = folders.make()
let api: Api

function deliver(day: string, tokens: number): void {
  const rows = Array.from({ length: 60 }, (_, app) => `${day}T12:00:00Z,${app + 1},${tokens * (app + 1)},0`)
  writeRaw(
    dataDir,
    `usage/date=${day}/rows.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${rows.join('\n')}\n`,
  )
}

beforeAll(async () => {
  const apps = Array.from({ length: 60 }, (_, app) =>
    JSON.stringify({
      app_id: app + 1,
      app_name:
        new Map([
          [58, BACKWARDS],
          [59, EVIL],
        ]).get(app) ?? `App ${app + 1}`,
      visibility: 'public',
      subcategories: [
        ...(app % 2 === 0 ? ['cli-agent'] : ['roleplay', 'game']),
        ...(app < 2 ? ['legal'] : []),
      ],
      updated_at: '2025-01-01',
    }),
  )
  writeRaw(dataDir, 'apps/apps.ndjson', apps.join('\n'))
  deliver('2026-01-05', 1)
  deliver('2026-01-06', 1_000_000)
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  deliver('2026-01-05', 2)
  deliver('2026-01-07', 5)
  await runAt(dataDir, '2026-01-08T02:00:00Z')
  api = await startApi(dataDir, { clock: () => new Date('2026-01-08T12:00:00Z') })
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

async function page(search = ''): Promise<string> {
  const response = await fetch(`${api.origin}/${search}`)
  expect(response.status).toBe(200)
  expect(response.headers.get('Content-Type')).toBe('text/html; charset=utf-8')
  return await response.text()
}

function names(text: string): string[] {
  return [...text.matchAll(/<bdi class="name">([^<]*)<\/bdi>/g)].map(([, name = '']) => name)
}

describe('the page', () => {
  it('shows the first ranks with exact figures beside the short ones', async () => {
    const text = await page()
    expect(names(text)).toHaveLength(50)
    expect(names(text)[2]).toBe('App 58')
    expect(text).toContain('title="58,000,406 tokens"')
    expect(text).toContain('58M')
  })

  it('shows an untrusted name as text in every place', async () => {
    const text = await page()
    expect(text).not.toContain('<script>alert')
    expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;co&quot;')
  })

  it('isolates the text direction of a name, and removes its control characters', async () => {
    const text = await page()
    expect(text).toContain('<bdi class="name">App\ufffd \u202e59</bdi>')
    expect(text).toMatch(/<svg class="key band-7"[^]*?<\/svg>\s*<bdi>App\ufffd \u202e59<\/bdi>/)
    expect(text).toMatch(/<title>2026-01-06[^<]*\n\u2068App\ufffd 59\u2069 59M\n/)
    expect(text).not.toContain('\u0007')
  })

  it('links to the further ranks and back', async () => {
    const first = await page()
    const next = /rel="next"\s+href="([^"]+)"/.exec(first)?.[1]?.replaceAll('&amp;', '&') ?? ''
    const second = await page(next.slice(1))
    expect(names(second)).toEqual(Array.from({ length: 10 }, (_, index) => `App ${10 - index}`))
    expect(second).toMatch(/rel="prev"/)
    expect(second).not.toMatch(/rel="next"/)
  })

  it('beyond the end of the list leads back to its first rank', async () => {
    const beyond = await page('?offset=100')
    expect(beyond).not.toContain('No app has made this list')
    expect(beyond).toMatch(/The list ends before rank 101\.\s+<a href="[^"]*offset=0"/)
  })

  it('keeps the length of its pages, and shows no rank twice', async () => {
    const text = await page('?limit=20&offset=10')
    const target = (relation: string) =>
      new RegExp(`rel="${relation}"\\s+href="([^"]+)"`).exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    expect(target('next')).toContain('limit=20&offset=30')
    expect(target('prev')).toContain('limit=10&offset=0')
  })

  it.each([
    ['?limit=30', true],
    ['?limit=30&offset=30', false],
    ['?limit=59', true],
    ['?limit=60', false],
    ['?limit=100&offset=100', false],
    ['?sort=trending&days=1&category=coding&limit=30', false],
    ['?sort=trending&days=30&category=coding&limit=29', true],
    ['?sort=trending&days=30&category=coding&limit=30', false],
  ])('links on from %s only if ranks follow: %s', async (search, leadsOn) => {
    expect((await page(search)).includes('rel="next"')).toBe(leadsOn)
  })

  it('filters by links that keep the other choices', async () => {
    const text = await page('?sort=trending&category=entertainment&days=7')
    expect(names(text)).not.toContain('App 57')
    expect(text).toMatch(
      /href="[^"]*sort=trending&amp;category=entertainment&amp;subcategory=roleplay&amp;days=7"/,
    )
    expect(text).toMatch(/aria-current="true"[^>]*>\s*trending/)
  })

  it('compares with the preceding window', async () => {
    const text = await page('?days=1')
    expect(text).toContain('title="rank unchanged"')
    const dated = await page('?start_date=2026-01-05&end_date=2026-01-05')
    expect(dated).not.toContain('rank unchanged')
  })

  it('shows all others in the chart in one constant colour, if there are any', async () => {
    const legend = (text: string) =>
      [...text.matchAll(/<svg class="key band-(\w+)"[^]*?<\/svg>\s*<bdi>([^<]*)</g)].map(([, key, name]) => [
        key,
        name,
      ])
    expect(legend(await page()).at(-1)).toEqual(['others', 'all others'])
    expect(legend(await page('?limit=2&offset=2'))).toEqual([
      ['6', 'App 58'],
      ['5', 'App 57'],
      ['others', 'all others'],
    ])
    expect(legend(await page('?subcategory=legal'))).toEqual([
      ['2', 'App 2'],
      ['1', 'App 1'],
    ])
  })

  it('states whether a column of the chart is a day or a week, and where the weeks begin', async () => {
    expect(await page()).toMatch(/Tokens per day, 2025-12-09 to 2026-01-07/)
    const long = await page('?days=365')
    expect(long).toMatch(/Tokens per week, 2025-01-08 to 2026-01-07/)
    expect(long).toContain('the first whole week begins on 2025-01-09')
    expect(long).toMatch(/<title>2026-01-01 to 2026-01-07[^<]*: /)
  })

  it('shows an earlier snapshot, and marks it as such', async () => {
    const text = await page('?as_of=2026-01-07T02:00:00Z')
    expect(text).toContain('an earlier snapshot')
    expect(text).toContain('2026-01-06')
    expect(text).toMatch(/<option value="2026-01-07T02:00:00Z" selected/)
  })

  it.each([
    '?limit=7&offset=3',
    '?as_of=2026-01-07T02:00:00Z&limit=5',
    '?sort=trending&category=coding&days=1',
  ])('links from %s to exactly the rows it shows', async (search) => {
    const text = await page(search)
    const target = /<a href="(\/api\/v1\/datasets\/app-rankings\?[^"]+)">json</.exec(text)?.[1] ?? ''
    const headers = { Authorization: `Bearer ${await api.makeKey()}` }
    const response = await fetch(`${api.origin}${target.replaceAll('&amp;', '&')}`, { headers })
    const { data, meta } = rankingsSchema.parse(await response.json())
    expect(data.map(({ app_name }) => html`${app_name}`.html)).toEqual(names(text))
    expect(text).toContain(`as of <time datetime="${meta.as_of}"`)
    expect(target).toContain('as_of=')
  })

  it('keeps window, filter and length when another snapshot is picked', async () => {
    const fields = (text: string) =>
      Object.fromEntries(
        [...text.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [
          name,
          value,
        ]),
      )
    const dated = 'start_date=2026-01-05&end_date=2026-01-06'
    expect(fields(await page(`?${dated}&category=coding&limit=5&offset=5`))).toEqual({
      sort: 'popular',
      category: 'coding',
      start_date: '2026-01-05',
      end_date: '2026-01-06',
      limit: '5',
    })
    expect(fields(await page('?days=7&end_date=2026-01-06'))).toEqual({
      sort: 'popular',
      days: '7',
      end_date: '2026-01-06',
    })
  })

  it('shows the age of the data, its citation, and its files', async () => {
    const text = await page()
    expect(text).toContain('up to date')
    expect(text).toContain('Source: App Rankings, as of 2026-01-08T02:00:00Z (CC-BY-4.0)')
    expect(text).toContain('@misc{app_rankings_20260108T020000Z,')
    expect(text).toContain('/snapshots/20260108T020000Z/rankings.parquet')
  })

  it('describes the dataset to search engines', async () => {
    const text = await page()
    const json = /<script type="application\/ld\+json">(.*?)<\/script>/s.exec(text)?.[1] ?? ''
    expect(JSON.parse(json)).toMatchObject({
      '@context': 'https://schema.org',
      '@type': 'Dataset',
      description: expect.stringMatching(/^.{50,}/),
      distribution: expect.arrayContaining([
        expect.objectContaining({ '@type': 'DataDownload', name: 'app-rankings.duckdb' }),
      ]),
      license: 'https://creativecommons.org/licenses/by/4.0/',
      temporalCoverage: '2026-01-05/2026-01-07',
    })
  })

  it('allows nothing inline and nothing from elsewhere', async () => {
    const response = await fetch(`${api.origin}/`)
    const policy = response.headers.get('Content-Security-Policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toContain('unsafe')
    const text = await response.text()
    expect(text).not.toMatch(/\sstyle=|\son[a-z]+=|<style/)
    expect([...text.matchAll(/(?:src|rel="stylesheet" href)="([^"]+)"/g)].map(([, url]) => url)).toEqual([
      '/assets/page.css',
      '/assets/page.js',
    ])
  })

  it('is not sent again while it is unchanged', async () => {
    const tag = (await fetch(`${api.origin}/`)).headers.get('ETag') ?? ''
    const again = await fetch(`${api.origin}/`, { headers: { 'If-None-Match': tag } })
    expect(again.status).toBe(304)
  })

  it('shows growth in tokens and in percent, and its baseline', async () => {
    // App 60 used 120 tokens on the 5th, 60 million on the 6th and 300 on the 7th; app 1 used a sixtieth.
    const text = await page('?sort=trending&start_date=2026-01-06&end_date=2026-01-06')
    expect(text).toContain('+59,999,960 tokens more than the previous average')
    expect(text).toContain('+149,999,900.0%')
    expect(text.replaceAll(/\s+/g, ' ')).toContain(
      'compared with 1 of the 3 days 2026-01-03 to 2026-01-05: the data lacks the others',
    )
  })

  it('marks restated days, and shows the reasons', async () => {
    const text = await page('?start_date=2026-01-05&end_date=2026-01-07')
    expect(text.replaceAll(/\s+/g, ' ')).toContain(
      'Restated after they were first published: 1 day because usage was counted again: 2026-01-05;',
    )
    expect(text).toContain('<th scope="row" class="days">2026-01-05 (restated)</th>')
    expect(text).toContain('class="restated"')
    expect(await page('?start_date=2026-01-06&end_date=2026-01-07')).not.toMatch(/restated"|Restated after/)
  })

  it('ranks by requests on request, in its files too', async () => {
    const text = await page('?by=requests&limit=3')
    expect(names(text)).toEqual(['App 1', 'App 2', 'App 3'])
    expect(text).toMatch(/Requests per day, 2025-12-09 to 2026-01-07/)
    expect(text).toMatch(
      /<th scope="col" class="number">Requests<\/th>\s*<th scope="col" class="number">Share</,
    )
    const rows = await (await fetch(`${api.origin}/rankings.json?by=requests&limit=3`)).json()
    expect(rankingsSchema.parse(rows).data.map(({ rank, app_id }) => [rank, app_id])).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ])
  })

  it('shows in trending by default the longest usual window with a complete baseline', async () => {
    const text = await page('?sort=trending')
    expect(text).toMatch(/aria-current="true"[^>]*>\s*1 day</)
    expect(await page('?sort=trending&days=30')).toMatch(/aria-current="true"[^>]*>\s*30 days</)
  })

  it.each(['csv', 'json'] as const)('offers its rows as %s without a key', async (format) => {
    const text = await page('?category=coding&limit=3&offset=1&days=1')
    const target =
      new RegExp(`href="(/rankings.${format}[^"]*)"`).exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    const response = await fetch(`${api.origin}${target}`)
    expect(response.headers.get('Content-Type')).toContain(format)
    const body = await response.text()
    const rows =
      format === 'json'
        ? rankingsSchema.parse(JSON.parse(body)).data.map(({ rank, app_name }) => [rank, app_name])
        : body
            .trim()
            .split(/\r?\n/)
            .slice(1)
            .map((line) => line.split(','))
            .map(([, name, rank]) => [Number(rank), name])
    expect(rows).toEqual(names(text).map((name, index) => [index + 2, name]))
  })

  it('offers its chart as a picture that needs no other file of the service', async () => {
    const text = await page('?days=7&category=coding')
    expect(text).toContain('href="/chart.png?category=coding&amp;days=7"')
    const response = await fetch(`${api.origin}/chart.svg?days=7&category=coding`)
    expect(response.headers.get('Content-Type')).toBe('image/svg+xml; charset=utf-8')
    const svg = await response.text()
    expect(svg).toMatch(/^<svg\s+xmlns="http:\/\/www.w3.org\/2000\/svg"/)
    expect(svg).toContain('Popular coding apps: tokens per day, 2026-01-01 to 2026-01-07')
    expect(svg).toContain('Source: App Rankings, as of 2026-01-08T02:00:00Z')
    expect(svg).toContain('.key.band-others { fill: #')
    expect(svg).not.toMatch(/var\(|light-dark|<script/)
  })

  it.each(['/chart.png', '/card.png', '/chart.png?start_date=2025-02-01&end_date=2025-02-02'])(
    '%s is a PNG of the size of link previews',
    async (path) => {
      const response = await fetch(`${api.origin}${path}`)
      expect(response.headers.get('Content-Type')).toBe('image/png')
      const bytes = Buffer.from(await response.arrayBuffer())
      expect(bytes.subarray(1, 4).toString()).toBe('PNG')
      expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([1200, 630])
    },
  )

  it('names its picture for link previews', async () => {
    const text = await page('?sort=trending&days=1')
    expect(text).toContain(
      '<meta property="og:image" content="http://127.0.0.1:3000/card.png?sort=trending&amp;days=1" />',
    )
  })

  it('has a command for the API with a key, and explains how to get a key', async () => {
    const text = (await page('?limit=3')).replaceAll(/<span[^>]*>|<\/span>/g, '')
    expect(text).toContain(
      "curl -H 'Authorization: Bearer &lt;API_KEY&gt;' 'http://127.0.0.1:3000/api/v1/datasets/app-rankings?as_of=",
    )
    expect(text).toContain('The operator of this service makes keys')
    expect(await page('?by=requests')).not.toContain('curl')
  })

  it.each([
    ['/?days=3', 400, 'allowed: one of 1, 7, 30, 90, 365'],
    ['/apps/99', 404, 'not registered or not public'],
    ['/compare', 400, 'apps=1,2,3'],
    ['/nowhere', 404, 'No such path: /nowhere'],
    ['/?as_of=2020-01-01T00:00:00Z', 400, 'retained snapshot'],
  ])('in a browser the fault of %s is a page', async (path, status, words) => {
    const response = await fetch(`${api.origin}${path}`, { headers: { Accept: 'text/html,*/*;q=0.8' } })
    expect(response.status).toBe(status)
    expect(response.headers.get('Content-Type')).toBe('text/html; charset=utf-8')
    expect(await response.text()).toContain(words)
  })

  it.each([
    ['/nowhere', 'application/json', 404],
    ['/nowhere', '*/*', 404],
    ['/api/v1/nowhere', 'text/html,*/*;q=0.8', 404],
    ['/api/v1/datasets/app-rankings', 'text/html', 401],
  ])('the fault of %s is JSON for whoever accepts %s', async (path, accept, status) => {
    const response = await fetch(`${api.origin}${path}`, { headers: { Accept: accept } })
    expect(response.status).toBe(status)
    envelopeSchema.parse(await response.json())
  })

  it('shows a browser what to run before the first snapshot, and why a citation was withdrawn', async () => {
    const asBrowser = { headers: { Accept: 'text/html,*/*;q=0.8' } }
    const data = folders.make()
    await using other = await startApi(data)
    const before = await fetch(`${other.origin}/`, asBrowser)
    expect(before.status).toBe(503)
    expect(await before.text()).toContain('<code>npm run nightly</code>')
    const retracted = { at: '2026-01-07T09:00:00Z', reason: 'Counted twice' }
    recordSnapshot(data, '20260107T020000Z', { retracted })
    await using later = await startApi(data)
    const gone = await fetch(`${later.origin}/?as_of=2026-01-07T02:00:00Z`, asBrowser)
    expect([gone.status, gone.headers.get('Content-Type')]).toEqual([410, 'text/html; charset=utf-8'])
    expect(await gone.text()).toContain('Counted twice')
  })

  it.each([
    ['?days=3', 'allowed: one of 1, 7, 30, 90, 365'],
    ['?days=7&days=7', 'given more than once'],
    ['?days=7&start_date=2026-01-05', 'instead of start_date'],
    ['?sort=best', 'popular, trending'],
    ['?sort=trending&by=requests', 'tokens, where sort is trending'],
    ['?colour=red', 'as_of, days'],
    ['?format=csv', '"format" is unknown'],
    ['?as_of=2020-01-01T00:00:00Z', 'retained snapshot'],
  ])('%s is rejected in the error envelope', async (search, message) => {
    const response = await fetch(`${api.origin}/${search}`)
    expect(response.status).toBe(400)
    expect(envelopeSchema.parse(await response.json()).error.message).toContain(message)
  })

  it('ignores empty fields of a form', async () => {
    expect(await page('?category=&days=&sort=')).toBe(await page())
  })

  it('is 503 before the first snapshot', async () => {
    await using empty = await startApi(folders.make())
    const response = await fetch(`${empty.origin}/`)
    expect(response.status).toBe(503)
    envelopeSchema.parse(await response.json())
  })
})

it.each(['/', '/docs', '/assets/page.js', '/assets/openapi-explorer.js', '/api/v1/openapi.json'])(
  '%s is sent in the preferred coding',
  async (path) => {
    const ask = (coding: string) =>
      request(`${api.origin}${path}`, { headers: { 'accept-encoding': coding } })
    const plain = await ask('identity')
    const whole = Buffer.from(await plain.body.arrayBuffer())
    expect(plain.headers['content-encoding']).toBeUndefined()
    for (const [coding, decode] of [
      ['gzip', gunzipSync],
      ['br', brotliDecompressSync],
    ] as const) {
      const reply = await ask(coding)
      expect(reply.headers).toMatchObject({ 'content-encoding': coding, vary: 'Accept-Encoding' })
      const bytes = Buffer.from(await reply.body.arrayBuffer())
      expect(bytes.length).toBeLessThan(whole.length)
      expect(decode(bytes).equals(whole)).toBe(true)
    }
  },
)

describe('beside the page', () => {
  it('the reference is one link away, and without scripts links to its source', async () => {
    const target = /<a href="([^"]+)">API reference</.exec(await page())?.[1] ?? ''
    const text = await (await fetch(`${api.origin}${target}`)).text()
    const document = /<noscript>.*<a href="([^"]+)">/s.exec(text)?.[1] ?? ''
    expect(document).toBe('/api/v1/openapi.json')
  })

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

  it('/robots.txt allows crawlers on pages with one address, and disallows endless ones', async () => {
    const response = await fetch(`${api.origin}/robots.txt`)
    expect(response.headers.get('Content-Type')).toBe('text/plain; charset=utf-8')
    const rules = [...(await response.text()).matchAll(/^(Allow|Disallow): (.+)$/gm)].map(
      ([, kind, pattern = '']) => ({
        isAllowed: kind === 'Allow',
        length: pattern.length,
        // RFC 9309, section 2.2.3: a pattern is a prefix, in which * stands for any characters.
        matches: new RegExp(
          `^${pattern
            .split('*')
            .map((part) => RegExp.escape(part))
            .join('.*')}`,
        ),
      }),
    )
    const isAllowed = (path: string) =>
      rules
        .filter(({ matches }) => matches.test(path))
        .toSorted((one, other) => other.length - one.length)
        .at(0)?.isAllowed ?? true
    const open = ['/', '/?category=coding&days=7', '/models', '/apps/1', '/method', '/docs', '/card.png']
    for (const path of [...open, '/api/v1/openapi.json', '/assets/page.css']) {
      expect(isAllowed(path), path).toBe(true)
    }
    for (const path of [
      '/apps?q=co',
      '/compare?apps=1,2',
      '/?as_of=x',
      '/?days=7&end_date=x',
      '/api/v1/status',
    ]) {
      expect(isAllowed(path), path).toBe(false)
    }
  })

  it('/.well-known/api-catalog leads to what describes the API, and each link exists', async () => {
    const response = await fetch(`${api.origin}/.well-known/api-catalog`)
    expect(response.headers.get('Content-Type')).toContain('application/linkset+json')
    const target = z.array(z.object({ href: z.url() }))
    const { linkset } = z
      .object({ linkset: z.array(z.object({ anchor: z.url() }).catchall(z.union([z.string(), target]))) })
      .parse(await response.json())
    const links = linkset
      .flatMap((each) => Object.values(each))
      .flatMap((each) => (Array.isArray(each) ? each : []))
    expect(links.length).toBeGreaterThan(0)
    for (const { href } of links) expect((await fetch(href)).status).toBe(200)
  })
})
