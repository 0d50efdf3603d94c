/** CONTRACT 4.1: the query parameters, their faults and their contradictions. */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { CATEGORIES, SUBCATEGORIES, subcategoriesOf } from '../../../pipeline/contract/taxonomy.ts'
import { parseParameters } from '../../../api/datasets/rankings.ts'
import { ApiError } from '../../../api/http/errors.ts'

const faultsSchema = z.array(
  z.strictObject({
    parameter: z.string(),
    problem: z.enum(['unknown', 'repeated', 'empty', 'invalid']),
    sent: z.string(),
    allowed: z.string(),
  }),
)

function faultsOf(query: string) {
  try {
    parseParameters(query)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    expect(error.status).toBe(400)
    return { message: error.message, faults: faultsSchema.parse(error.metadata?.['parameters']) }
  }
  throw new Error(`No fault in "${query}"`)
}

describe('parseParameters', () => {
  it('accepts an empty query', () => {
    expect(parseParameters('')).toEqual({})
  })

  it('accepts every parameter at once', () => {
    const query =
      'category=coding&subcategory=cli-agent&sort=trending&start_date=2026-01-01&end_date=2026-01-31&limit=100&offset=100'
    expect(parseParameters(query)).toEqual({
      category: 'coding',
      subcategory: 'cli-agent',
      sort: 'trending',
      start_date: '2026-01-01',
      end_date: '2026-01-31',
      limit: 100,
      offset: 100,
    })
  })

  it.each([
    ...CATEGORIES.map((category) => `category=${category}`),
    ...SUBCATEGORIES.map((subcategory) => `subcategory=${subcategory}`),
    ...SORTS.map((sort) => `sort=${sort}`),
    ...CATEGORIES.flatMap((category) =>
      subcategoriesOf(category).map((subcategory) => `category=${category}&subcategory=${subcategory}`),
    ),
    'start_date=1999-12-31',
    'start_date=2028-02-29',
    'end_date=2025-01-01',
    'end_date=9999-12-31',
    'limit=1',
    'offset=0',
    'start_date=2026-01-01&end_date=2026-01-01',
    'sort=%70opular',
  ])('takes %s', (query) => {
    expect(() => parseParameters(query)).not.toThrow()
  })

  it.each([
    ['category=Coding', 'category', 'Coding', 'entertainment'],
    ['category=cli-agent', 'category', 'cli-agent', 'coding'],
    ['subcategory=coding', 'subcategory', 'coding', 'roleplay'],
    ['sort=tokens', 'sort', 'tokens', 'trending'],
    ['start_date=2026-02-30', 'start_date', '2026-02-30', 'YYYY-MM-DD'],
    ['start_date=2027-02-29', 'start_date', '2027-02-29', 'YYYY-MM-DD'],
    ['start_date=2026-1-1', 'start_date', '2026-1-1', 'YYYY-MM-DD'],
    ['start_date=2026-01-01T00:00:00Z', 'start_date', '2026-01-01T00:00:00Z', 'YYYY-MM-DD'],
    ['start_date=+2026-01-01', 'start_date', ' 2026-01-01', 'YYYY-MM-DD'],
    ['end_date=2024-12-31', 'end_date', '2024-12-31', '2025-01-01'],
    ['end_date=today', 'end_date', 'today', 'YYYY-MM-DD'],
    ['limit=0', 'limit', '0', 'from 1 to 100'],
    ['limit=101', 'limit', '101', 'from 1 to 100'],
    ['limit=-5', 'limit', '-5', 'from 1 to 100'],
    ['limit=5.0', 'limit', '5.0', 'from 1 to 100'],
    ['limit=1e1', 'limit', '1e1', 'from 1 to 100'],
    ['limit=0x10', 'limit', '0x10', 'from 1 to 100'],
    ['limit=99999999999999999999', 'limit', '99999999999999999999', 'from 1 to 100'],
    ['offset=101', 'offset', '101', 'from 0 to 100'],
    ['offset=-0', 'offset', '-0', 'from 0 to 100'],
    ['offset=%zz', 'offset', '%zz', 'from 0 to 100'],
    ['category=coding&subcategory=game', 'subcategory', 'game', 'cli-agent'],
    ['start_date=2026-02-01&end_date=2026-01-31', 'start_date', '2026-02-01', '2026-01-31'],
  ])('rejects %s and lists what is allowed', (query, parameter, sent, allowed) => {
    const { message, faults } = faultsOf(query)
    expect(faults).toEqual([
      { parameter, problem: 'invalid', sent, allowed: expect.stringContaining(allowed) },
    ])
    for (const part of [parameter, sent, allowed]) expect(message).toContain(part)
  })

  it.each([
    ['limits=5', { parameter: 'limits', problem: 'unknown', sent: '5' }],
    ['Limit=5', { parameter: 'Limit', problem: 'unknown', sent: '5' }],
    ['toString=5', { parameter: 'toString', problem: 'unknown', sent: '5' }],
    ['limit[]=5', { parameter: 'limit[]', problem: 'unknown', sent: '5' }],
    ['=5', { parameter: '', problem: 'unknown', sent: '5' }],
    ['?sort=popular', { parameter: '?sort', problem: 'unknown', sent: 'popular' }],
    ['limit=5&limit=5', { parameter: 'limit', problem: 'repeated', sent: '5, 5' }],
    [
      'sort=popular&offset=1&sort=trending',
      { parameter: 'sort', problem: 'repeated', sent: 'popular, trending' },
    ],
    ['limit=', { parameter: 'limit', problem: 'empty', sent: '' }],
    ['limit', { parameter: 'limit', problem: 'empty', sent: '' }],
  ])('refuses %s', (query, fault) => {
    const { message, faults } = faultsOf(query)
    expect(faults).toHaveLength(1)
    expect(faults[0]).toMatchObject(fault)
    expect(message).toContain(`"${fault.parameter}"`)
    expect(message).toContain(`sent "${fault.sent}"`)
  })

  it('reports for a fault what was sent and what is allowed, and nothing else', () => {
    expect(faultsOf('limit=x').message).toBe(
      'Parameter "limit" is not valid: sent "x", allowed: an integer from 1 to 100',
    )
  })

  it('reports every fault at once', () => {
    const { message, faults } = faultsOf('limit=0&sort=best&page=2&offset=&category=game')
    expect(faults.map((fault) => fault.parameter)).toEqual(['limit', 'sort', 'page', 'offset', 'category'])
    for (const fault of faults) expect(message).toContain(fault.parameter)
  })

  it('accepts or rejects any text without breaking', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('limit', 'sort', '5', 'popular', '%', '[]'),
    )
    const pairs = fc.array(fc.tuple(text, text), { maxLength: 6 })
    fc.assert(
      fc.property(pairs, fc.boolean(), (given, raw) => {
        const query = raw
          ? given.map((pair) => pair.join('=')).join('&')
          : new URLSearchParams(given.map(([name, value]) => [name, value])).toString()
        try {
          parseParameters(query)
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError)
        }
      }),
    )
  })

  it('shortens sent values to 100 characters', () => {
    const { faults } = faultsOf(`sort=${'😀'.repeat(200)}&${'n'.repeat(200)}=${'1'.repeat(200)}`)
    expect(faults[0]?.sent).toBe(`${'😀'.repeat(100)}…`)
    expect(faults[1]?.parameter).toBe(`${'n'.repeat(100)}…`)
    expect(faults[1]?.sent).toBe(`${'1'.repeat(100)}…`)
  })

  it('lists at most 20 faults and counts the others', () => {
    const { message, faults } = faultsOf(Array.from({ length: 50 }, (_, n) => `p${n}=1`).join('&'))
    expect(faults).toHaveLength(20)
    expect(message).toContain('30 more faults')
  })
})
