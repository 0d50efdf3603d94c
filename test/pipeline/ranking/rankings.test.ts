/** CONTRACT 4.2: the table rankings equals the macros' answers, list by list. */
import { beforeAll, expect, it } from 'vitest'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { CATEGORIES, SUBCATEGORIES, subcategoriesOf } from '../../../pipeline/contract/taxonomy.ts'
import { makeFolder } from '../../support/folders.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import { deliver, queryCurrent, register } from '../../support/pipeline/nightly.ts'
import { randomFrom } from '../../support/random.ts'

/** Enough apps that most lists are cut at 200, and figures so small that ties lie at the cut. */
const APPS = Array.from({ length: 2500 }, (_, index) => index + 1)
/** Windows of 90 days are clamped to the first day of the dataset. */
const FIRST_DAY = '2025-01-01'
const DAYS = 45
const LAST_DAY = addDays(FIRST_DAY, DAYS - 1)

const FILTERS = [
  { category: null, subcategory: null },
  ...CATEGORIES.flatMap((category) => [
    { category, subcategory: null },
    ...subcategoriesOf(category).map((subcategory) => ({ category, subcategory })),
  ]),
]
const KINDS = [1, 7, 30, 90].flatMap((days) => SORTS.map((sort) => ({ days, sort })))

const dataDir = makeFolder()

beforeAll(async () => {
  const random = randomFrom(1)
  const below = (limit: number) => Math.floor(random() * limit)
  // The first subcategories are common, the last rare.
  const tag = () => SUBCATEGORIES[Math.floor((below(SUBCATEGORIES.length) * below(3)) / 2)] ?? ''
  const tags = () => Array.from({ length: below(3) }, tag).join('|')
  register(
    dataDir,
    APPS.map((app) => {
      const visibility = below(10) === 0 ? 'hidden' : 'public'
      const alias = app > 1 && below(20) === 0 ? app - 1 : ''
      return `${app},App ${app},${visibility},${tags()},${alias},2024-12-01`
    }),
  )
  for (let day = 0; day < DAYS; day += 1) {
    const used = APPS.filter(() => below(3) > 0)
    deliver(
      dataDir,
      addDays(FIRST_DAY, day),
      used.map((app) => `${app},${below(40)},${app % 5}`),
    )
  }
  await runAt(dataDir, `${addDays(LAST_DAY, 1)}T02:00:00Z`)
})

const literal = (text: string | null) => (text === null ? 'NULL' : `'${text}'`)

it.each(KINDS)(
  'the table rankings has the first 200 of every filter of $sort over $days days, and their window',
  async ({ days, sort }) => {
    const start = addDays(LAST_DAY, 1 - days)
    const window = { start_date: start < FIRST_DAY ? FIRST_DAY : start, end_date: LAST_DAY }
    const columns = 'category, subcategory, rank, app_id, app_name, total_requests, total_tokens'
    const inOrder = 'ORDER BY category, subcategory, rank'
    const lists = FILTERS.map(({ category, subcategory }) => {
      const [inCategory, inSubcategory] = [literal(category), literal(subcategory)]
      return `SELECT ${inCategory} AS category, ${inSubcategory} AS subcategory, * FROM ${sort}(
        '${start}', '${LAST_DAY}', category := ${inCategory}, subcategory := ${inSubcategory})`
    })
    const asked = await queryCurrent(
      dataDir,
      `SELECT ${columns} FROM (${lists.join(' UNION ALL BY NAME ')}) WHERE rank <= 200 ${inOrder}`,
    )
    const filters = new Set(asked.map(({ category, subcategory }) => `${category} ${subcategory}`))
    expect(filters.size).toBe(FILTERS.length)
    const kept = await queryCurrent(
      dataDir,
      `SELECT ${columns}, start_date, end_date FROM rankings
       WHERE window_days = ${days} AND sort = '${sort}' ${inOrder}`,
    )
    expect(kept).toEqual(asked.map((row) => ({ ...row, ...window })))
  },
)
