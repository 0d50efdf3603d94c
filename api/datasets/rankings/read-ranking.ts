/** From which apps a page of a ranking is read, so that it costs little and still is the page of all apps. */
import type { RankingRow } from '../../../pipeline/contract/dataset.ts'
import type { RankingsQuery } from './query.ts'
import { readBound, readContenders, readHeads, readWhole } from './ranking-pages.ts'
import type { ReadableSnapshot } from '../snapshots/open-snapshot.ts'
import { daysOf } from './window.ts'

type Rows = readonly RankingRow[]

/** One page of a ranking: everybody who shows rankings asks here. */
export async function readRanking(snapshot: ReadableSnapshot, query: RankingsQuery): Promise<Rows> {
  if (isSmallTrend(snapshot, query)) return (await readWhole(snapshot, query)).rows
  const last = recall(snapshot, query)
  const expected = last === undefined ? undefined : await readExpected(snapshot, query, last)
  return expected ?? (await readFromHeads(snapshot, query))
}

/** Rows of app_daily in a window whose growth is worked out from all apps as fast as from the heads. */
const FEW_ROWS = 25_000

/** Growth over a day or two inside a subcategory, where the heads are asked in vain most. */
function isSmallTrend({ rowsPerDay }: ReadableSnapshot, query: RankingsQuery): boolean {
  const { sort, subcategory } = query
  return sort === 'trending' && subcategory !== null && rowsPerDay * daysOf(query) <= FEW_ROWS
}

/** From the heads, where no other app can be on the page; where one can, they tell what it takes at least. */
async function readFromHeads(snapshot: ReadableSnapshot, query: RankingsQuery): Promise<Rows> {
  const [heads, bound] = await Promise.all([readHeads(snapshot, query), readBound(snapshot, query)])
  const least = heads?.least
  const isSure = bound === undefined || (least !== undefined && least > bound)
  if (heads !== undefined && isSure) return heads.rows
  if (least === undefined) return (await readWhole(snapshot, query)).rows
  remember(snapshot, query, least)
  return (await readContenders(snapshot, query, least)).rows
}

/**
 * From the apps that are expected on the page, where the heads may not do: what it takes is seldom less than half of
 * what it took `last`. Undefined where it is, which the page itself tells, and where the heads are expected to do.
 */
async function readExpected(
  snapshot: ReadableSnapshot,
  query: RankingsQuery,
  last: bigint,
): Promise<Rows | undefined> {
  const bound = await readBound(snapshot, query)
  // Near the border the heads are spared: asked in vain, they cost as much as the page itself.
  if (bound === undefined || bound * 4n < last * 3n) return undefined
  const expected = last / 2n
  const { rows, least } = await readContenders(snapshot, query, expected)
  if (least === undefined || least < expected) return undefined
  remember(snapshot, query, least)
  return rows
}

/** What it last took to be on a page of a kind that the heads could not always give, by snapshot and kind. */
const taken = new WeakMap<ReadableSnapshot, Map<string, bigint>>()
const KINDS_REMEMBERED = 1000

function recall(snapshot: ReadableSnapshot, query: RankingsQuery): bigint | undefined {
  return taken.get(snapshot)?.get(kindOf(query))
}

function remember(snapshot: ReadableSnapshot, query: RankingsQuery, least: bigint): void {
  const kinds = taken.get(snapshot) ?? new Map<string, bigint>()
  taken.set(snapshot, kinds)
  if (kinds.size >= KINDS_REMEMBERED) kinds.clear()
  kinds.set(kindOf(query), least)
}

function kindOf(query: RankingsQuery): string {
  const { sort, category, subcategory, limit, offset } = query
  return JSON.stringify([sort, daysOf(query), category, subcategory, offset + limit])
}
