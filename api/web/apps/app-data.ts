/** Reads the data of the app pages from one snapshot. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SORTS, type Sort } from '../../../pipeline/contract/dataset.ts'
import { CATEGORIES, subcategoriesOf, type Category } from '../../../pipeline/contract/taxonomy.ts'
import type { ReadableSnapshot } from '../../datasets/snapshots/open-snapshot.ts'
import { windowUpTo, type DateWindow } from '../../datasets/rankings/window.ts'
import { ApiError } from '../../http/errors.ts'

/** An app in a list. */
export interface ListedApp {
  readonly id: bigint
  readonly name: string
  readonly tags: readonly string[]
}

/** Usage of an app on a day, `YYYY-MM-DD`. */
export type DayOfUsage = z.infer<typeof dayOfUsage>

/** An app's rank in a week; undefined if it was not in the list. */
export interface WeekOfRanks {
  readonly week: DateWindow
  readonly ranks: Readonly<Record<Sort, bigint | undefined>>
}

const sql = (name: string) => readFileSync(new URL(`sql/${name}.sql`, import.meta.url), 'utf8')
const APP = `
  SELECT app_id, app_name, CAST(to_json(subcategories) AS VARCHAR) AS tags
  FROM apps WHERE app_id = TRY_CAST($app AS BIGINT)`
const HISTORY = sql('history')
const FOUND = sql('found')
const RANK = (sort: Sort) => `SELECT rank FROM ${sort}($start, $end) WHERE app_id = TRY_CAST($app AS BIGINT)`

const SHARE = `
  SELECT CAST(coalesce(sum(total_tokens), 0) AS VARCHAR) AS all_tokens,
    CAST(coalesce(sum(total_tokens) FILTER (app_id = TRY_CAST($app AS BIGINT)), 0) AS VARCHAR) AS own_tokens
  FROM popular($start, $end, category := $category)`

/** Weeks of ranks in the table. */
const WEEKS = 12
const WEEK_DAYS = 7

/** Apps in a search result. */
const FOUND_APPS = 50

/** Days for the order of found apps and for shares. */
const RECENT_DAYS = 30

const appRows = z.array(z.object({ app_id: z.bigint(), app_name: z.string(), tags: z.string() }))
const tagList = z.array(z.string())
const dayOfUsage = z.object({
  day: z.string(),
  requests: z.bigint(),
  prompt_tokens: z.string(),
  completion_tokens: z.string(),
  total_tokens: z.string(),
})
const historyRows = z.array(dayOfUsage)
const rankRows = z.array(z.object({ rank: z.bigint() }))
const shareRows = z.tuple([z.object({ all_tokens: z.string(), own_tokens: z.string() })])
const foundRows = z.array(z.object({ app_id: z.bigint(), app_name: z.string(), total_tokens: z.string() }))

/**
 * The app with this id.
 * @throws {ApiError} 404 with the reasons why an app may not be listed.
 */
export async function readApp(snapshot: ReadableSnapshot, id: string): Promise<ListedApp> {
  const [row] = appRows.parse(await snapshot.query(APP, { app: id }))
  if (row !== undefined) {
    return { id: row.app_id, name: row.app_name, tags: tagList.parse(JSON.parse(row.tags)) }
  }
  throw new ApiError(
    404,
    `No app with the id ${id} is listed in the snapshot of ${snapshot.asOf}. An app is not listed if it is not ` +
      'registered or not public, or if it is an alias: then its usage counts for another app',
  )
}

/** The days with usage of an app, in order. */
export async function readHistory(snapshot: ReadableSnapshot, id: bigint): Promise<readonly DayOfUsage[]> {
  return historyRows.parse(await snapshot.query(HISTORY, { app: String(id) }))
}

/** The ranks of an app in the last weeks of the data, newest first. */
export async function readRanks(snapshot: ReadableSnapshot, id: bigint): Promise<readonly WeekOfRanks[]> {
  const weeks = Array.from({ length: WEEKS }, (_, index) =>
    windowUpTo(addDays(snapshot.dataThrough, -WEEK_DAYS * index), WEEK_DAYS),
  ).filter(({ start }) => start >= snapshot.firstDay)
  return await Promise.all(
    weeks.map(async (week) => {
      const [popular, trending] = await Promise.all(
        SORTS.map((sort) => readRank(snapshot, { sort, week, id })),
      )
      return { week, ranks: { popular, trending } }
    }),
  )
}

async function readRank(
  snapshot: ReadableSnapshot,
  { sort, week, id }: { readonly sort: Sort; readonly week: DateWindow; readonly id: bigint },
): Promise<bigint | undefined> {
  const { start, end } = week
  const [row] = rankRows.parse(await snapshot.query(RANK(sort), { start, end, app: String(id) }))
  return row?.rank
}

/** An app's share of a category's tokens in the last 30 days of the data. */
export interface CategoryShare {
  readonly category: Category
  readonly own: bigint
  readonly all: bigint
}

/** The share of an app in each of its categories. */
export async function readShares(
  snapshot: ReadableSnapshot,
  { id, tags }: ListedApp,
): Promise<readonly CategoryShare[]> {
  const categories = CATEGORIES.filter(
    (category) =>
      snapshot.categories.has(category) && subcategoriesOf(category).some((each) => tags.includes(each)),
  )
  return await Promise.all(
    categories.map(async (category) => {
      const values = { ...recentWindow(snapshot), category, app: String(id) }
      const [row] = shareRows.parse(await snapshot.query(SHARE, values))
      return { category, own: BigInt(row.own_tokens), all: BigInt(row.all_tokens) }
    }),
  )
}

function recentWindow({ dataThrough }: ReadableSnapshot): DateWindow {
  return windowUpTo(dataThrough, RECENT_DAYS)
}

/** The apps with `text` in their name, ordered by tokens of the last 30 days. */
export async function findApps(snapshot: ReadableSnapshot, text: string) {
  return foundRows.parse(await snapshot.query(FOUND, { ...recentWindow(snapshot), text, limit: FOUND_APPS }))
}
