/** Everything the page shows of a ranking, asked of one snapshot. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { type RankingRow, type Sort } from '../../../pipeline/contract/dataset.ts'
import { MAX_OFFSET } from '../../datasets/rankings/parameters.ts'
import { hasFilter, type RankingsQuery } from '../../datasets/rankings/query.ts'
import { readMeasuredRanking } from '../../datasets/rankings/read-ranking.ts'
import type { ReadableSnapshot, SnapshotFacts } from '../../datasets/snapshots/open-snapshot.ts'
import { daysOf, windowBefore, type DateWindow } from '../../datasets/rankings/window.ts'
import { missingDays } from './gaps.ts'

/** Tokens per day, `YYYY-MM-DD`; a day without usage is not in it. */
export type DailyTokens = ReadonlyMap<string, bigint>

/** A row of the table. */
export interface PageRow {
  readonly app: RankingRow
  readonly tags: readonly string[]
  /** Tokens more than the average of the three windows before; of popular apps it is not known. */
  readonly excess: bigint | undefined
  /** Rank in the window before; undefined where the app was not in it. */
  readonly earlierRank: bigint | undefined
  /** The last days of the data. */
  readonly recent: DailyTokens
  /** The days of the window. */
  readonly daily: DailyTokens
}

/** A window to compare with. */
interface Earlier {
  readonly window: DateWindow
  /** How many of its days the data lacks. */
  readonly missing: number
  /** Whether most of its days are there: otherwise its ranks would tell how long the rest is, not how the apps fared. */
  readonly isComparable: boolean
}

export interface PageData {
  readonly rows: readonly PageRow[]
  /** Whether ranks follow that a page can show. */
  readonly hasNext: boolean
  readonly apps: bigint
  readonly tokens: bigint
  /** Tokens of all apps on each day of the window. */
  readonly daily: DailyTokens
  /** Days of the window that the data lacks. */
  readonly missing: ReadonlySet<string>
  /** The window before this one, which ranks are compared with. */
  readonly earlier: Earlier
  readonly recentDays: DateWindow
}

/** Days of the small lines. */
const RECENT_DAYS = 30

const sql = (name: string) => readFileSync(new URL(`sql/${name}.sql`, import.meta.url), 'utf8')
const TOTALS = sql('totals')
const EARLIER: Readonly<Record<Sort, string>> = {
  popular: sql('earlier-popular'),
  trending: sql('earlier-trending'),
}
const DAILY = sql('daily-tokens')
const TOTAL_DAILY = sql('total-daily-tokens')
const TAGS = sql('app-tags')

const digits = z.string().transform(BigInt)
const totalsRows = z.tuple([z.object({ apps: z.bigint(), tokens: digits })])
const earlierRows = z.array(z.object({ app_id: z.bigint(), rank: z.bigint() }))
const dailyRows = z.array(z.object({ app_id: z.bigint(), day: z.string(), tokens: digits }))
const totalDailyRows = z.array(z.object({ day: z.string(), tokens: digits }))
const tagRows = z.array(z.object({ app_id: z.bigint(), tags: z.string() }))
const tagList = z.array(z.string())

/** Reads the page of a ranking with all that stands around it. */
export async function readPageData(snapshot: ReadableSnapshot, query: RankingsQuery): Promise<PageData> {
  if (!hasFilter(snapshot, query)) return emptyPage(snapshot, query)
  const { rows: ranking, total: ranks } = await readMeasuredRanking(snapshot, query)
  const next = query.offset + query.limit
  const apps = ranking.map(({ app_id }) => app_id).join(',')
  const filter = { category: query.category, subcategory: query.subcategory }
  const recentDays = recentDaysOf(snapshot)
  const earlier = earlierOf(snapshot, query)
  const [[totals], earlierRanks, recent, daily, total, tags] = await Promise.all([
    snapshot.query(TOTALS, { ...range(query), ...filter }).then((rows) => totalsRows.parse(rows)),
    earlier.isComparable ? readEarlierRanks(snapshot, { ...query, ...earlier.window }, apps) : undefined,
    readDaily(snapshot, recentDays, apps),
    readDaily(snapshot, range(query), apps),
    snapshot.query(TOTAL_DAILY, { ...range(query), ...filter }).then((rows) => totalDailyRows.parse(rows)),
    snapshot.query(TAGS, { apps }).then((rows) => tagRows.parse(rows)),
  ])
  const tagsOf = new Map(tags.map((row) => [row.app_id, tagList.parse(JSON.parse(row.tags))]))
  return {
    rows: ranking.map(({ measure, ...app }) => ({
      app,
      excess: query.sort === 'trending' ? BigInt(measure) : undefined,
      tags: tagsOf.get(app.app_id) ?? [],
      earlierRank: earlierRanks?.get(app.app_id),
      recent: recent.get(app.app_id) ?? new Map(),
      daily: daily.get(app.app_id) ?? new Map(),
    })),
    hasNext: next <= MAX_OFFSET && next < ranks,
    apps: totals.apps,
    tokens: totals.tokens,
    daily: new Map(total.map(({ day, tokens }) => [day, tokens])),
    missing: missingDays(snapshot, query),
    earlier,
    recentDays,
  }
}

function emptyPage(snapshot: SnapshotFacts, query: RankingsQuery): PageData {
  return {
    rows: [],
    hasNext: false,
    apps: 0n,
    tokens: 0n,
    daily: new Map(),
    missing: missingDays(snapshot, query),
    earlier: earlierOf(snapshot, query),
    recentDays: recentDaysOf(snapshot),
  }
}

function recentDaysOf({ dataThrough }: SnapshotFacts): DateWindow {
  return { start: addDays(dataThrough, 1 - RECENT_DAYS), end: dataThrough }
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
  { sort, start, end, category, subcategory }: RankingsQuery,
  apps: string,
): Promise<ReadonlyMap<bigint, bigint>> {
  const rows = await snapshot.query(EARLIER[sort], { start, end, category, subcategory, apps })
  return new Map(earlierRows.parse(rows).map(({ app_id, rank }) => [app_id, rank]))
}

async function readDaily(
  snapshot: ReadableSnapshot,
  { start, end }: DateWindow,
  apps: string,
): Promise<ReadonlyMap<bigint, DailyTokens>> {
  const byApp = new Map<bigint, Map<string, bigint>>()
  const rows = dailyRows.parse(await snapshot.query(DAILY, { start, end, apps }))
  for (const { app_id, day, tokens } of rows) {
    const days = byApp.get(app_id) ?? new Map<string, bigint>()
    byApp.set(app_id, days.set(day, tokens))
  }
  return byApp
}
