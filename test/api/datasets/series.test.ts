/** CONTRACT 4.6: GET /datasets/app-rankings/daily and /datasets/rankings-daily: apps and models by day. */
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { envelopeSchema, linksOf, startApi, type Api } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { publishSnapshot, type SnapshotContent } from '../../support/pipeline/snapshot.ts'

const SERIES = '/datasets/app-rankings/daily'
const MODELS = '/datasets/rankings-daily'
const LAST_DAY = '2026-11-19'
const BEFORE = '2026-11-18'
const MANY_DAY = '2026-11-17'
const HUGE = 2n ** 63n - 1n

const LONG_IDS = Array.from({ length: 10 }, (_, n) => 742_307_818_684_000 + n)

const CONTENT: SnapshotContent = {
  asOf: new Date('2026-11-20T02:00:00Z'),
  dataThrough: LAST_DAY,
  firstDay: '2025-01-01',
  apps: [
    { id: 1, name: 'One, "quoted"' },
    { id: 2, name: 'Two' },
    ...LONG_IDS.map((id) => ({ id, name: 'Long' })),
  ],
  daily: [
    { day: LAST_DAY, app: 1, requests: Number.MAX_SAFE_INTEGER, tokens: HUGE, completion: HUGE },
    { day: '2026-11-17', app: 1, requests: 2, tokens: 40, completion: 2 },
    { day: LAST_DAY, app: 2, requests: 1, tokens: 7 },
  ],
  missing: [BEFORE],
  models: [
    { day: LAST_DAY, model: 'zeta/one', tokens: HUGE },
    { day: LAST_DAY, model: 'acme/tied', tokens: 7 },
    { day: LAST_DAY, model: 'Zeta/tied', tokens: 7 },
    { day: LAST_DAY, model: 'acme/nothing', tokens: 0 },
    { day: LAST_DAY, model: 'acme/unserved', requests: 0, tokens: 3 },
    { day: LAST_DAY, model: 'other', tokens: 900 },
    { day: BEFORE, model: 'acme/alone', tokens: 5 },
    ...Array.from({ length: 53 }, (_, number) => ({
      day: MANY_DAY,
      model: `acme/model-${String(number).padStart(2, '0')}`,
      tokens: 100 - number,
    })),
    { day: MANY_DAY, model: 'other', tokens: 1 },
  ],
}

let api: Api

beforeAll(async () => {
  const dataDir = makeFolder()
  await publishSnapshot(dataDir, CONTENT)
  api = await startApi(dataDir, { clock: () => CONTENT.asOf })
})

const ask = (path: string, init?: RequestInit) => api.getAsNewAccount(path, init)

const rowsSchema = z.object({
  data: z.array(z.object({ day: z.string().optional() })),
  meta: z.object({ start_date: z.string(), end_date: z.string() }),
})

describe('the series of apps by day', () => {
  it('has these bytes, with a row for each day and app, also without usage or data', async () => {
    const zero =
      '"requests":0,"prompt_tokens":"0","completion_tokens":"0","total_tokens":"0","coverage":"missing"}'
    const response = await ask(`${SERIES}?app_id=2&app_id=1&start_date=${BEFORE}&end_date=${LAST_DAY}`)
    expect(await response.text()).toBe(
      '{"data":[' +
        `{"day":"2026-11-18","app_id":1,"app_name":"One, \\"quoted\\"",${zero},` +
        `{"day":"2026-11-18","app_id":2,"app_name":"Two",${zero},` +
        '{"day":"2026-11-19","app_id":1,"app_name":"One, \\"quoted\\"","requests":9007199254740991,"prompt_tokens":"9223372036854775807",' +
        '"completion_tokens":"9223372036854775807","total_tokens":"18446744073709551614","coverage":"complete"},' +
        '{"day":"2026-11-19","app_id":2,"app_name":"Two","requests":1,"prompt_tokens":"7","completion_tokens":"0",' +
        '"total_tokens":"7","coverage":"complete"}' +
        '],"meta":{"as_of":"2026-11-20T02:00:00Z","start_date":"2026-11-18","end_date":"2026-11-19","version":"v1"}}',
    )
  })

  it('and their ranking have every digit of a count', async () => {
    const response = await ask(`/datasets/app-rankings?start_date=${MANY_DAY}&limit=1`)
    expect(await response.text()).toContain('"total_requests":9007199254740993,')
  })

  // nginx reads 4 KB by default.
  it.each([
    ['in one page', '', ['license']],
    ['in the middle of pages', '&limit=100&offset=200', ['prev', 'next', 'last']],
  ])('has headers under 2 KB %s, with ten ids of 15 digits', async (_where, page, relations) => {
    const ids = LONG_IDS.map((id) => `app_id=${id}`).join('&')
    const response = await ask(`${SERIES}?${ids}&start_date=2025-06-01${page}`)
    expect(response.status).toBe(200)
    expect(Object.keys(linksOf(response))).toEqual(expect.arrayContaining(relations))
    expect([...response.headers].join('\r\n').length).toBeLessThan(2048)
  })

  it('has pages of 366 days, with links to the last', async () => {
    const days: (string | undefined)[] = []
    let response = await ask(`${SERIES}?app_id=1&start_date=2025-01-01`)
    expect(response.headers.get('X-Total-Count')).toBe('688')
    const { last } = linksOf(response)
    for (;;) {
      const { data } = rowsSchema.parse(await response.json())
      expect(data.length).toBeGreaterThan(0)
      days.push(...data.map(({ day }) => day))
      const { next } = linksOf(response)
      if (next === undefined) break
      response = await ask(next.slice('/api/v1'.length))
      expect(linksOf(response)['last']).toBe(last)
    }
    expect(new Set(days).size).toBe(688)
    expect([days[0], days[366], days.at(-1)]).toEqual(['2025-01-01', '2026-01-02', LAST_DAY])
  })

  it('has no rows beyond its end, with a link to the last page', async () => {
    const response = await ask(`${SERIES}?app_id=1&limit=10&offset=9999`)
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ data: [], meta: { end_date: LAST_DAY } })
    expect(response.headers.get('X-Total-Count')).toBe('30')
    const { prev = '', next } = linksOf(response)
    expect([prev.endsWith('limit=10&offset=29'), next]).toEqual([true, undefined])
  })

  it('is the same for any order of the apps, and another for fewer', async () => {
    const queries = ['app_id=1&app_id=2', 'app_id=2&app_id=1&app_id=1', 'app_id=2,1', 'app_id=1']
    const tags = await Promise.all(
      queries.map(async (query) => (await ask(`${SERIES}?${query}`)).headers.get('ETag')),
    )
    expect([new Set(tags.slice(0, 3)).size, new Set(tags).size]).toEqual([1, 2])
  })
})

describe('the models by day', () => {
  it('have these bytes: by day, then tokens, ties in alphabetical order, and the rest of a day last', async () => {
    const data = [
      [BEFORE, 'acme/alone', '5'],
      [LAST_DAY, 'zeta/one', '9223372036854775807'],
      [LAST_DAY, 'Zeta/tied', '7'],
      [LAST_DAY, 'acme/tied', '7'],
      [LAST_DAY, 'acme/nothing', '0'],
      [LAST_DAY, 'other', '903'],
    ].map(([date, model_permaslug, total_tokens]) => ({ date, model_permaslug, total_tokens }))
    const meta = { as_of: '2026-11-20T02:00:00Z', start_date: BEFORE, end_date: LAST_DAY, version: 'v1' }
    const reply = await ask(`${MODELS}?start_date=${BEFORE}`)
    expect(await reply.text()).toBe(JSON.stringify({ data, meta }))
  })

  it('are at most 50 per day, and one row sums up the others', async () => {
    const response = await ask(`${MODELS}?start_date=${MANY_DAY}&end_date=${MANY_DAY}&format=csv`)
    const rows = (await response.text()).trimEnd().split('\n')
    expect([rows.length, ...rows.slice(0, 2), ...rows.slice(-2)]).toEqual([
      52,
      'date,model_permaslug,total_tokens',
      `${MANY_DAY},acme/model-00,100`,
      `${MANY_DAY},acme/model-49,51`,
      `${MANY_DAY},other,${50 + 49 + 48 + 1}`,
    ])
  })
})

it.each([
  [`${SERIES}?app_id=1`, 30, '2026-10-21', LAST_DAY],
  [`${SERIES}?app_id=1&start_date=2024-01-01&end_date=2025-01-02`, 2, '2025-01-01', '2025-01-02'],
  [MODELS, 51 + 6, '2026-10-21', LAST_DAY],
  [`${MODELS}?start_date=2026-11-18&end_date=2027-01-01`, 6, BEFORE, LAST_DAY],
])('%s has %d rows of the window that defaults and clamps give', async (path, rows, start_date, end_date) => {
  const { data, meta } = rowsSchema.parse(await (await ask(path)).json())
  expect([data.length, meta]).toEqual([rows, { start_date, end_date }])
})

it.each([
  [SERIES, 'app_id', 'is missing'],
  [`${SERIES}?app_id=`, 'app_id', 'is empty'],
  [`${SERIES}?app_id=one`, 'app_id', 'sent "one"'],
  [`${SERIES}?app_id=-3`, 'app_id', 'sent "-3"'],
  [`${SERIES}?app_id=9223372036854775808`, 'app_id', 'is invalid'],
  [`${SERIES}?app_id=1&app_id=77`, 'app_id', 'sent "77"'],
  [`${SERIES}?app_id=${Array.from({ length: 11 }, (_, id) => id).join(',')}`, 'app_id', 'at most 10 times'],
  [`${SERIES}?app_id=1&limit=367`, 'limit', 'from 1 to 366'],
  [`${SERIES}?app_id=1&sort=popular`, 'sort', 'is unknown'],
  [`${SERIES}?app_id=1&as_of=2020-01-01T00:00:00Z`, 'as_of', 'retained'],
  [`${MODELS}?limit=10`, 'limit', 'is unknown'],
  [`${MODELS}?as_of=2020-01-01T00:00:00Z`, 'as_of', 'retained'],
  [`${MODELS}?start_date=${LAST_DAY}&end_date=${BEFORE}`, 'start_date', 'not after the end'],
])('%s is 400 and names %s', async (path, parameter, message) => {
  const response = await ask(path)
  expect(response.status).toBe(400)
  const { error } = envelopeSchema.parse(await response.json())
  for (const part of [`"${parameter}"`, message]) expect(error.message).toContain(part)
})

it('both need a key, and count against the limits of the rankings', async () => {
  const key = await api.makeKey('inference', 'of all three')
  const paths = ['/datasets/app-rankings', `${SERIES}?app_id=1`, MODELS]
  for (const [index, path] of paths.entries()) {
    expect((await api.get(path)).status).toBe(401)
    const { headers } = await api.get(path, key)
    expect(headers.get('RateLimit')).toMatch(`"per-minute";r=${29 - index};`)
  }
})
