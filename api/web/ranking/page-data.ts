/** Reads the data of the ranking page from one snapshot. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { RankingRow } from '../../../pipeline/contract/dataset.ts'
import { MAX_OFFSET } from '../../datasets/rankings/parameters.ts'
import { hasFilter, type RankingsQuery } from '../../datasets/rankings/query.ts'
import { readMeasuredRanking, readRankingByRequests } from '../../datasets/rankings/read-ranking.ts'
import type { ReadableSnapshot, SnapshotFacts } from '../../datasets/snapshots/open-snapshot.ts'
import { daysOf, windowBefore, windowUpTo, type DateWindow } from '../../datasets/rankings/window.ts'
import type { Daily } from '../charts/columns.ts'
import { missingDays, readGaps, type Gaps } from './gaps.ts'

/** The measures that order `popular`; trending is ordered by tokens. */
export const MEASURES = ['tokens', 'requests'] as const
export type Measure = (typeof MEASURES)[number]

/** The ranking of a page. */
export type PageRanking = RankingsQuery & { readonly measure: Measure }

/** A row of the table. */
export interface PageRow {
  readonly app: RankingRow
  readonly tags: readonly string[]
  /** Tokens above the average of the three preceding windows; undefined for popular apps. */
  readonly excess: bigint | undefined
  /** Rank in the preceding window; undefined if the app was not in it. */
  readonly earlierRank: bigint | undefined
  /** The last days of the data. */
  readonly recent: Daily
  /** The days of the window. */
  readonly daily: Daily
}

/** A window for comparison. */
interface Earlier {
  readonly window: DateWindow
  /** Number of its missing days. */
  readonly missing: number
  /** Whether most of its days are present; otherwise its ranks would reflect the missing days. */
  readonly isComparable: boolean
}

export interface PageData {
  readonly rows: readonly PageRow[]
  /** Whether the page can show further ranks. */
  readonly hasNext: boolean
  readonly apps: bigint
  /** Requests or tokens of all apps in the window. */
  readonly total: bigint
  /** The same on each day of the window. */
  readonly daily: Daily
  readonly gaps: Gaps
  /** The preceding window, for changes of rank. */
  readonly earlier: Earlier
  readonly recentDays: DateWindow
}

/** Days of the sparklines. */
const RECENT_DAYS = 30

const sql = (name: string) => readFileSync(new URL(`sql/${name}.sql`, import.meta.url), 'utf8')
const TOTALS = sql('totals')
const DAILY = sql('daily-usage')
const TOTAL_DAILY = sql('total-daily-usage')
const TAGS = `
  SELECT app_id, to_json(subcategories) AS tags
  FROM apps WHERE list_contains(string_split($apps, ','), CAST(app_id AS VARCHAR))`
const EARLIER_RANKS = (ranking: string) => `
  SELECT app_id, rank FROM ${ranking}($start, $end, category := $category, subcategory := $subcategory)
  WHERE list_contains(string_split($apps, ','), CAST(app_id AS VARCHAR))`

const digits = z.string().transform(BigInt)
const totalsRows = z.tuple([z.object({ apps: z.bigint(), usage: digits })])
const earlierRows = z.array(z.object({ app_id: z.bigint(), rank: z.bigint() }))
const dailyRows = z.array(z.object({ app_id: z.bigint(), day: z.string(), usage: digits }))
const totalDailyRows = z.array(z.object({ day: z.string(), usage: digits }))
const tagRows = z.array(z.object({ app_id: z.bigint(), tags: z.string() }))
const tagList = z.array(z.string())

/** Reads the page of a ranking with all its context. */
export async function readPageData(snapshot: ReadableSnapshot, query: PageRanking): Promise<PageData> {
  if (!hasFilter(snapshot, query)) return await emptyPage(snapshot, query)
  const { rows: ranking, total: ranks } = await readRows(snapshot, query)
  const next = query.offset + query.limit
  const apps = ranking.map(({ app_id }) => app_id).join(',')
  const { category, subcategory, measure } = query
  const scope = { ...range(query), category, subcategory, measure }
  const recentDays = windowUpTo(snapshot.dataThrough, RECENT_DAYS)
  const earlier = earlierOf(snapshot, query)
  const [[totals], earlierRanks, recent, daily, total, tags, gaps] = await Promise.all([
    snapshot.query(TOTALS, scope).then((rows) => totalsRows.parse(rows)),
    earlier.isComparable ? readEarlierRanks(snapshot, { ...query, ...earlier.window }, apps) : undefined,
    readDaily(snapshot, { ...recentDays, measure, apps }),
    readDaily(snapshot, { ...range(query), measure, apps }),
    snapshot.query(TOTAL_DAILY, scope).then((rows) => totalDailyRows.parse(rows)),
    snapshot.query(TAGS, { apps }).then((rows) => tagRows.parse(rows)),
    readGaps(snapshot, query),
  ])
  const tagsOf = new Map(tags.map((row) => [row.app_id, tagList.parse(JSON.parse(row.tags))]))
  return {
    rows: ranking.map(({ excess, ...app }) => ({
      app,
      excess,
      tags: tagsOf.get(app.app_id) ?? [],
      earlierRank: earlierRanks?.get(app.app_id),
      recent: recent.get(app.app_id) ?? new Map(),
      daily: daily.get(app.app_id) ?? new Map(),
    })),
    hasNext: next <= MAX_OFFSET && next < ranks,
    apps: totals.apps,
    total: totals.usage,
    daily: new Map(total.map(({ day, usage }) => [day, usage])),
    gaps,
    earlier,
    recentDays,
  }
}

/**
 * Reads the rows of the page, with the growth of trending apps.
 * @throws {ApiError} 400 for a snapshot of an older version without an order by requests.
 */
export async function readRows(snapshot: ReadableSnapshot, { measure, ...query }: PageRanking) {
  const read = measure === 'requests' ? readRankingByRequests : readMeasuredRanking
  const { rows, total } = await read(snapshot, query)
  const excessOf = (ordered: string) => (query.sort === 'trending' ? BigInt(ordered) : undefined)
  return { rows: rows.map(({ measure: ordered, ...row }) => ({ ...row, excess: excessOf(ordered) })), total }
}

async function emptyPage(snapshot: ReadableSnapshot, query: RankingsQuery): Promise<PageData> {
  return {
    rows: [],
    hasNext: false,
    apps: 0n,
    total: 0n,
    daily: new Map(),
    gaps: await readGaps(snapshot, query),
    earlier: earlierOf(snapshot, query),
    recentDays: windowUpTo(snapshot.dataThrough, RECENT_DAYS),
  }
}

function range({ start, end }: RankingsQuery): DateWindow {
  return { start, end }
}

function earlierOf(snapshot: SnapshotFacts, query: RankingsQuery): Earlier {
  const window = windowBefore(query)
  const missing = missingDays(snapshot, window).size
  return { window, missing, isComparable: 2 * missing < daysOf(window) }
}

async function readEarlierRanks(
  snapshot: ReadableSnapshot,
  { sort, measure, start, end, category, subcategory }: PageRanking,
  apps: string,
): Promise<ReadonlyMap<bigint, bigint>> {
  const ranking = measure === 'requests' ? 'popular_by_requests' : sort
  const rows = await snapshot.query(EARLIER_RANKS(ranking), { start, end, category, subcategory, apps })
  return new Map(earlierRows.parse(rows).map(({ app_id, rank }) => [app_id, rank]))
}

async function readDaily(
  snapshot: ReadableSnapshot,
  { start, end, measure, apps }: DateWindow & { readonly measure: Measure; readonly apps: string },
): Promise<ReadonlyMap<bigint, Daily>> {
  const byApp = new Map<bigint, Map<string, bigint>>()
  const rows = dailyRows.parse(await snapshot.query(DAILY, { start, end, measure, apps }))
  for (const { app_id, day, usage } of rows) {
    const days = byApp.get(app_id) ?? new Map<string, bigint>()
    byApp.set(app_id, days.set(day, usage))
  }
  return byApp
}
