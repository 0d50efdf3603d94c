/** CONTRACT 4.2: the table rankings equals the macros' answers, list by list. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { CATEGORIES, SUBCATEGORIES, subcategoriesOf } from '../../../pipeline/contract/taxonomy.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, queryCurrent, writeRaw } from '../../support/pipeline/nightly.ts'

/** Enough apps that most lists are cut at 200, and figures so small that ties lie at the cut. */
const APPS = 2500
const LAST_DAY = '2026-03-15'
const DAYS = 45
const AS_OF = '2026-03-16T02:00:00Z'

const FILTERS = [
  { category: null, subcategory: null },
  ...CATEGORIES.flatMap((category) => [
    { category, subcategory: null },
    ...subcategoriesOf(category).map((subcategory) => ({ category, subcategory })),
  ]),
]
const KINDS = [1, 7, 30, 90].flatMap((days) => SORTS.map((sort) => ({ days, sort })))
const LISTS = KINDS.flatMap((kind) => FILTERS.map((filter) => ({ ...kind, ...filter })))

const folders = new TemporaryFolders()
let dataDir = ''

afterAll(() => folders.removeAll())

/** A pseudo-random whole number below `limit`, fixed per seed. */
function scatter(limit: number, ...seeds: readonly number[]): number {
  const mixed = seeds.reduce((hash, seed) => Math.imul(hash ^ seed, 0x9e3779b1) ^ (hash >>> 15), 0x85ebca6b)
  return ((mixed ^ (mixed >>> 13)) >>> 0) % limit
}

/** No tag, one, or two; the first subcategories are common, the last rare. */
function tagsOf(app: number): string {
  const count = scatter(3, app, 1)
  const tags = Array.from({ length: count }, (_, index) => {
    const place = scatter(SUBCATEGORIES.length, app, index, 2) * scatter(3, app, index, 3)
    return SUBCATEGORIES[Math.floor(place / 2)] ?? ''
  })
  return tags.join('|')
}

function registry(): string {
  const rows = Array.from({ length: APPS }, (_, index) => {
    const app = index + 1
    const visibility = scatter(10, app, 4) === 0 ? 'hidden' : 'public'
    const alias = app > 1 && scatter(20, app, 5) === 0 ? app - 1 : ''
    return `${app},App ${app},${visibility},${tagsOf(app)},${alias},2025-01-01\n`
  })
  return `app_id,app_name,visibility,subcategories,alias_of,updated_at\n${rows.join('')}`
}

function usage(day: string, back: number): string {
  const rows = Array.from({ length: APPS }, (_, index) => index + 1)
    .filter((app) => scatter(3, app, back, 6) > 0)
    .map(
      (app) =>
        `${day},${app},${scatter(40, app, back, 7)},${scatter(5, app, 8)},${scatter(4, app, back, 9)}\n`,
    )
  return `ts,app_id,prompt_tokens,completion_tokens,requests\n${rows.join('')}`
}

beforeAll(async () => {
  dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', registry())
  for (let back = 0; back < DAYS; back += 1) {
    const day = addDays(LAST_DAY, -back)
    writeRaw(dataDir, `usage/date=${day}/rows.csv`, usage(day, back))
  }
  await runAt(dataDir, AS_OF)
})

function literal(text: string | null): string {
  return text === null ? 'NULL' : `'${text}'`
}

it.each(KINDS)(
  'the table rankings has the first 200 of every filter of $sort over $days days',
  async ({ days, sort }) => {
    const columns = 'category, subcategory, rank, app_id, app_name, total_requests, total_tokens'
    const lists = FILTERS.map(({ category, subcategory }) => {
      const [inCategory, inSubcategory] = [literal(category), literal(subcategory)]
      return `SELECT ${inCategory} AS category, ${inSubcategory} AS subcategory, * FROM ${sort}(
      '${addDays(LAST_DAY, 1 - days)}', '${LAST_DAY}', category := ${inCategory}, subcategory := ${inSubcategory})`
    })
    const asked = await queryCurrent(
      dataDir,
      `SELECT ${columns} FROM (${lists.join(' UNION ALL BY NAME ')}) WHERE rank <= 200
     ORDER BY category, subcategory, rank`,
    )
    const kept = await queryCurrent(
      dataDir,
      `SELECT ${columns} FROM rankings WHERE window_days = ${days} AND sort = '${sort}'
     ORDER BY category, subcategory, rank`,
    )
    const filters = new Set(asked.map(({ category, subcategory }) => `${category} ${subcategory}`))
    expect(filters.size).toBe(FILTERS.length)
    expect(kept).toEqual(asked)
  },
)

it('the table rankings keeps each list together, ranks ascending, the wider filter first', async () => {
  const rows = await queryCurrent(dataDir, 'FROM rankings')
  const firsts = rows.filter(({ rank }) => rank === '1')
  expect(firsts.map((row) => [row['window_days'], row['sort'], row['category'], row['subcategory']])).toEqual(
    LISTS.map(({ days, sort, category, subcategory }) => [String(days), sort, category, subcategory]),
  )
  const expected = rows.map((_, index) =>
    rows[index]?.['rank'] === '1' ? 1 : Number(rows[index - 1]?.['rank']) + 1,
  )
  expect(rows.map(({ rank }) => Number(rank))).toEqual(expected)
})

it('the test data cuts lists among ties: of all apps, of groups and of single tags', async () => {
  const cut = await queryCurrent(
    dataDir,
    `SELECT category IS NOT NULL AS grouped, subcategory IS NOT NULL AS single
     FROM rankings WHERE rank = 200 GROUP BY ALL ORDER BY ALL`,
  )
  expect(cut).toEqual([
    { grouped: 'false', single: 'false' },
    { grouped: 'true', single: 'false' },
    { grouped: 'true', single: 'true' },
  ])
  const [equals] = await queryCurrent(
    dataDir,
    `WITH list AS (FROM popular('${LAST_DAY}', '${LAST_DAY}'))
     SELECT count(*) > 1 AS among_equals FROM list
     WHERE total_tokens = (SELECT total_tokens FROM list WHERE rank = 200) AND rank BETWEEN 199 AND 201`,
  )
  expect(equals).toEqual({ among_equals: 'true' })
})
