/** Reads one app from a snapshot, in one statement. */
import { z } from 'zod'
import { addDays } from '../../pipeline/contract/calendar.ts'
import { COVERAGE_STATUSES, SORTS, type Sort } from '../../pipeline/contract/dataset.ts'
import { windowUpTo, type DateWindow } from '../datasets/window.ts'
import type { Snapshot } from '../datasets/snapshots/facts.ts'
import { ApiError } from '../http/errors.ts'

const daySchema = z.object({
  day: z.string(),
  requests: z.bigint(),
  prompt_tokens: z.bigint(),
  completion_tokens: z.bigint(),
  total_tokens: z.bigint(),
  coverage: z.enum(COVERAGE_STATUSES),
})

const appsSchema = z.array(
  z.object({
    name: z.string(),
    tags: z.array(z.string()),
    days: z.array(daySchema).nullable(),
    ranks: z.array(z.object({ week: z.int(), sort: z.enum(SORTS), rank: z.bigint() })).nullable(),
  }),
)

export interface App {
  readonly name: string
  readonly tags: readonly string[]
  /** Every day from its first with usage on, also those without usage or data. */
  readonly days: readonly z.infer<typeof daySchema>[]
  /** Its ranks in the last weeks of the data, newest first. */
  readonly weeks: readonly (Readonly<Record<Sort, bigint | undefined>> & { readonly week: DateWindow })[]
}

const WEEKS = 12
const WEEK_DAYS = 7

const RANK = (sort: Sort, { start, end }: DateWindow, week: number) => `
  SELECT ${week} AS week, '${sort}' AS sort, rank FROM ${sort}('${start}', '${end}')
  WHERE app_id = TRY_CAST($app AS BIGINT)`

const APP = (ranks: string) => `
  SELECT a.app_name AS name, a.subcategories AS tags,
    (
      SELECT list({
        day: CAST(c.day AS VARCHAR), requests: CAST(coalesce(d.requests, 0) AS BIGINT),
        prompt_tokens: CAST(coalesce(d.prompt_tokens, 0) AS HUGEINT),
        completion_tokens: CAST(coalesce(d.completion_tokens, 0) AS HUGEINT),
        total_tokens: CAST(coalesce(d.prompt_tokens, 0) AS HUGEINT) + coalesce(d.completion_tokens, 0),
        coverage: c.status
      } ORDER BY c.day)
      FROM coverage AS c
      LEFT JOIN app_daily AS d ON d.day = c.day AND d.app_id = TRY_CAST($app AS BIGINT)
      WHERE c.day >= (SELECT min(f.day) FROM app_daily AS f WHERE f.app_id = TRY_CAST($app AS BIGINT))
    ) AS days,
    (SELECT list(r) FROM (${ranks}) AS r) AS ranks
  FROM apps AS a WHERE a.app_id = TRY_CAST($app AS BIGINT)`

/**
 * The app with this id, with the ranks of its last weeks if they are wanted.
 * @throws {ApiError} 404 with the reasons why an app may not be listed.
 */
export async function readApp(snapshot: Snapshot, id: string, { withRanks = false } = {}): Promise<App> {
  const windows = Array.from({ length: withRanks ? WEEKS : 0 }, (_, index) =>
    windowUpTo(addDays(snapshot.dataThrough, -WEEK_DAYS * index), WEEK_DAYS),
  ).filter(({ start }) => start >= snapshot.firstDay)
  const ranks = windows.flatMap((window, week) => SORTS.map((sort) => RANK(sort, window, week)))
  const none = "SELECT 0 AS week, '' AS sort, CAST(0 AS BIGINT) AS rank WHERE false"
  const statement = APP(ranks.length === 0 ? none : ranks.join(' UNION ALL '))
  const [app] = appsSchema.parse(await snapshot.query(statement, { app: id }))
  if (app === undefined) {
    throw new ApiError(
      404,
      `No app with the id ${id} is listed in the snapshot of ${snapshot.asOf}. An app is not listed if it is not ` +
        'registered or not public, or if it is an alias: then its usage counts for another app',
    )
  }
  const rankIn = (week: number, sort: Sort) =>
    app.ranks?.find((each) => each.week === week && each.sort === sort)?.rank
  const weeks = windows.map((window, week) => ({
    week: window,
    popular: rankIn(week, 'popular'),
    trending: rankIn(week, 'trending'),
  }))
  return { ...app, days: app.days ?? [], weeks }
}

const foundSchema = z.array(z.object({ id: z.string(), name: z.string(), tokens: z.bigint() }))

const FOUND = `
  SELECT CAST(a.app_id AS VARCHAR) AS id, a.app_name AS name,
    CAST(coalesce(p.total_tokens, 0) AS HUGEINT) AS tokens
  FROM apps AS a LEFT JOIN popular($start, $end) AS p ON p.app_id = a.app_id
  WHERE contains(lower(a.app_name), lower($text))
  ORDER BY tokens DESC, a.app_id
  LIMIT $limit`

const FOUND_DAYS = 30
const FOUND_APPS = 50

/** The apps with `text` in their name, in any case, by their tokens in the last 30 days of the data. */
export async function findApps(snapshot: Snapshot, text: string) {
  const window = windowUpTo(snapshot.dataThrough, FOUND_DAYS)
  return foundSchema.parse(await snapshot.query(FOUND, { ...window, text, limit: FOUND_APPS }))
}
