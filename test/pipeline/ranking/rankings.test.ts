/** CONTRACT 4.2: the table rankings equals the macros' answers, list by list. */
import { beforeAll, expect, it } from 'vitest'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { SUBCATEGORIES } from '../../../pipeline/contract/taxonomy.ts'
import { makeFolder } from '../../support/folders.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import { deliver, queryCurrent, register } from '../../support/pipeline/nightly.ts'
import { FILTERS, rankingSql } from '../../support/pipeline/oracle.ts'
import { randomFrom } from '../../support/random.ts'

/** Enough apps that most lists are cut at 200, and figures so small that ties lie at the cut. */
const APPS = Array.from({ length: 2500 }, (_, index) => index + 1)
/** Windows of 90 days are clamped to the first day of the dataset. */
const FIRST_DAY = '2025-01-01'
const DAYS = 45
const LAST_DAY = addDays(FIRST_DAY, DAYS - 1)

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

it.each(KINDS)(
  'the table rankings has the first 200 of every filter of $sort over $days days, and their window',
  async ({ days, sort }) => {
    const start = addDays(LAST_DAY, 1 - days)
    const window = { start_date: start < FIRST_DAY ? FIRST_DAY : start, end_date: LAST_DAY }
    const columns = 'rank, app_id, app_name, total_requests, total_tokens'
    const lists = FILTERS.map((filter, at) => {
      const list = rankingSql({ sort, start, end: LAST_DAY, ...filter })
      return `(SELECT ${at} AS filter, ${columns} FROM (${list}) WHERE rank <= 200)`
    })
    const asked = await queryCurrent(dataDir, lists.join(' UNION ALL '))
    expect(new Set(asked.map(({ filter }) => filter)).size).toBe(FILTERS.length)
    const kept = await queryCurrent(
      dataDir,
      `SELECT * EXCLUDE (window_days, sort) FROM rankings WHERE window_days = ${days} AND sort = '${sort}'`,
    )
    expect(kept).toEqual(
      asked.map(({ filter, ...row }) => ({ ...FILTERS[Number(filter)], ...row, ...window })),
    )
  },
)
