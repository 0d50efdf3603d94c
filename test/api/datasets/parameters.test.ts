/** CONTRACT 3 and 4.1: the parameters of the rankings, their defaults and clamps, their faults and contradictions. */
import * as fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { CATEGORIES, SUBCATEGORIES, subcategoriesOf } from '../../../pipeline/contract/taxonomy.ts'
import { envelopeSchema, rankingsSchema, startApi, type Api } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { oneApp, publishSnapshot } from '../../support/pipeline/snapshot.ts'

/** By the last day of their data. */
const apis = new Map<string, Api>()
let key: string | undefined

beforeAll(async () => {
  for (const dataThrough of ['2026-11-19', '2028-03-29', '2025-01-03']) {
    const dataDir = makeFolder()
    await publishSnapshot(dataDir, { ...oneApp(), dataThrough, daily: [] })
    apis.set(dataThrough, await startApi(dataDir))
  }
})

const pathOf = (query: string) => `/datasets/app-rankings${query === '' ? '' : `?${query}`}`

function apiOf(dataThrough: string): Api {
  const api = apis.get(dataThrough)
  if (api === undefined) throw new Error(`No service has data through ${dataThrough}`)
  return api
}

const ask = (query: string, dataThrough = '2026-11-19') => apiOf(dataThrough).getAsNewAccount(pathOf(query))

/** The status of a HEAD, which does not count against the limits of its key. */
async function statusOf(query: string): Promise<number> {
  key ??= await apiOf('2026-11-19').makeKey()
  return (await apiOf('2026-11-19').get(pathOf(query), key, { method: 'HEAD' })).status
}

const metadataSchema = z.strictObject({
  parameters: z.array(
    z.strictObject({
      parameter: z.string(),
      problem: z.enum(['unknown', 'repeated', 'empty', 'invalid']),
      sent: z.string(),
      allowed: z.string(),
    }),
  ),
})

async function faultsOf(query: string) {
  const reply = await ask(query)
  expect(reply.status).toBe(400)
  const { error } = envelopeSchema.parse(await reply.json())
  return { message: error.message, faults: metadataSchema.parse(error.metadata).parameters }
}

describe('the parameters of the rankings', () => {
  it.each([
    '',
    'category=coding&subcategory=cli-agent&sort=trending&start_date=2026-01-01&end_date=2026-01-31&limit=100&offset=100',
    ...SORTS.map((sort) => `sort=${sort}`),
    ...CATEGORIES.flatMap((category) => [
      `category=${category}`,
      ...subcategoriesOf(category).map((subcategory) => `category=${category}&subcategory=${subcategory}`),
    ]),
    ...SUBCATEGORIES.map((subcategory) => `subcategory=${subcategory}`),
    'limit=1',
    'offset=0',
    'sort=%70opular',
  ])('may be "%s"', async (query) => {
    expect(await statusOf(query)).toBe(200)
  })

  it.each([
    ['30 days ending on the last day', '', '2026-10-21', '2026-11-19'],
    ['30 days before a given end', 'end_date=2026-03-01', '2026-01-31', '2026-03-01'],
    ['a given start to the last day', 'start_date=2026-11-01', '2026-11-01', '2026-11-19'],
    ['an end after the data clamped back', 'end_date=9999-12-31', '2026-10-21', '2026-11-19'],
    ['a start before the floor clamped', 'start_date=1999-12-31', '2025-01-01', '2026-11-19'],
    ['a default start clamped to the floor', 'end_date=2025-01-10', '2025-01-01', '2025-01-10'],
    ['the floor alone', 'start_date=2024-02-29&end_date=2025-01-01', '2025-01-01', '2025-01-01'],
    ['one day', 'start_date=2026-11-19&end_date=2026-11-19', '2026-11-19', '2026-11-19'],
    ['a leap day', '', '2028-02-29', '2028-03-29'],
    ['a young dataset', '', '2025-01-01', '2025-01-03'],
  ])('give %s', async (_what, query, start_date, end_date) => {
    const dataThrough = apis.has(end_date) ? end_date : '2026-11-19'
    const { meta } = rankingsSchema.parse(await (await ask(query, dataThrough)).json())
    expect(meta).toMatchObject({ start_date, end_date })
  })

  it.each([
    ['category', 'entertainment', ['Coding', 'cli-agent']],
    ['subcategory', 'roleplay', ['coding']],
    ['sort', 'trending', ['tokens']],
    ['start_date', 'YYYY-MM-DD', ['2026-02-30', '2027-02-29']],
    ['start_date', 'YYYY-MM-DD', ['2026-1-1', '2026-01-01T00:00:00Z', '+2026-01-01']],
    ['end_date', 'YYYY-MM-DD, on or after 2025-01-01', ['2024-12-31', 'today']],
    ['limit', 'from 1 to 100', ['0', '101', '-5', '5.0', '1e1', '0x10', '99999999999999999999']],
    ['offset', 'from 0 to 100', ['101', '-0', '%zz']],
    // Valid alone, but not together or not with the data.
    ['subcategory', 'with category coding one of cli-agent', ['game&category=coding']],
    ['start_date', 'not after the end, 2026-01-31', ['2026-02-01&end_date=2026-01-31']],
    ['start_date', 'not after the end, 2026-11-19', ['2026-11-20']],
  ])('%s is refused with what is allowed, %s: %j', async (parameter, allowed, values) => {
    for (const value of values) {
      const { message, faults } = await faultsOf(`${parameter}=${value}`)
      const sent = value.replace(/&.*/, '').replace('+', ' ')
      const expected = { parameter, problem: 'invalid', sent, allowed: expect.stringContaining(allowed) }
      expect(faults).toEqual([expected])
      for (const part of [parameter, sent, allowed]) expect(message).toContain(part)
    }
  })

  it.each([
    ['limits=5', 'limits', 'unknown', '5'],
    ['Limit=5', 'Limit', 'unknown', '5'],
    ['toString=5', 'toString', 'unknown', '5'],
    ['limit[]=5', 'limit[]', 'unknown', '5'],
    ['=5', '', 'unknown', '5'],
    ['?sort=popular', '?sort', 'unknown', 'popular'],
    ['limit=5&limit=5', 'limit', 'repeated', '5, 5'],
    ['sort=popular&offset=1&sort=trending', 'sort', 'repeated', 'popular, trending'],
    ['limit=', 'limit', 'empty', ''],
    ['limit', 'limit', 'empty', ''],
  ])('%s is refused', async (query, parameter, problem, sent) => {
    const { message, faults } = await faultsOf(query)
    expect(faults).toEqual([{ parameter, problem, sent, allowed: expect.any(String) }])
    for (const part of [`"${parameter}"`, `sent "${sent}"`]) expect(message).toContain(part)
  })

  it('are reported all at once, each with what was sent and what is allowed, and nothing else', async () => {
    const { message, faults } = await faultsOf('limit=x&sort=best&page=2&offset=&category=game')
    expect(faults.map(({ parameter }) => parameter)).toEqual(['limit', 'sort', 'page', 'offset', 'category'])
    expect(message).toContain(
      'Parameter "limit" is invalid: sent "x", allowed: an integer from 1 to 100. Parameter "sort" is invalid',
    )
  })

  it('are shortened in the message, and at most 20 are listed', async () => {
    const long = await faultsOf(
      `sort=${encodeURIComponent('😀'.repeat(200))}&${'n'.repeat(200)}=${'1'.repeat(200)}`,
    )
    expect(long.faults).toMatchObject([
      { sent: `${'😀'.repeat(100)}…` },
      { parameter: `${'n'.repeat(100)}…`, sent: `${'1'.repeat(100)}…` },
    ])
    const many = await faultsOf(Array.from({ length: 50 }, (_, n) => `p${n}=1`).join('&'))
    expect(many.faults).toHaveLength(20)
    expect(many.message).toContain('30 more faults')
  })

  it('may be any text: it is accepted or refused', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('limit', 'sort', '5', 'popular', '%', '[]'),
    )
    const pairs = fc.array(fc.tuple(text, text), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(pairs, fc.boolean(), async (given, raw) => {
        const query = raw
          ? given.map((pair) => pair.join('=')).join('&')
          : new URLSearchParams(given.map(([name, value]) => [name, value])).toString()
        expect([200, 400]).toContain(await statusOf(query))
      }),
    )
  })
})
