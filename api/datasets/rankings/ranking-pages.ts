/** Pages of a ranking, by the macros of the snapshot, from all apps or from some of them. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { rankingRowSchema, type RankingRow, type Sort } from '../../../pipeline/contract/dataset.ts'
import type { RankingsQuery } from './query.ts'
import type { ReadableSnapshot } from '../snapshots/open-snapshot.ts'

const SQL: Readonly<Record<Sort, string>> = {
  popular: sqlFile('popular.sql'),
  trending: sqlFile('trending.sql'),
}
const FIND_CONTENDERS = sqlFile('contenders.sql')
const OUTSIDE =
  'SELECT CAST(tokens AS VARCHAR) AS tokens FROM fast.outside($start, $end, $category, $subcategory)'

const digits = z.string().regex(/^\d+$/)
const rowsSchema = z.array(rankingRowSchema.extend({ measure: digits }))
const boundSchema = z.tuple([z.object({ tokens: digits.nullable() })])

export interface RankingPage {
  readonly rows: readonly RankingRow[]
  /**
   * Tokens that whoever stands on the page has inside the window at least, since its growth are some of them;
   * undefined where there is room left.
   */
  readonly least: bigint | undefined
}

/** The page from all apps. */
export async function readWhole(
  { query }: ReadableSnapshot,
  { sort, ...values }: RankingsQuery,
): Promise<RankingPage> {
  return pageOf(await query(SQL[sort], values), values.limit)
}

/** The page from the heads alone; undefined in a snapshot that has none. */
export async function readHeads(
  { queryHeads }: ReadableSnapshot,
  { sort, ...values }: RankingsQuery,
): Promise<RankingPage | undefined> {
  return queryHeads && pageOf(await queryHeads(SQL[sort], values), values.limit)
}

/** The tokens that an app which is no head may have inside the window, at most; undefined when there is none. */
export async function readBound(
  { queryHeads }: ReadableSnapshot,
  { start, end, category, subcategory }: RankingsQuery,
): Promise<bigint | undefined> {
  if (queryHeads === undefined) return undefined
  const [{ tokens }] = boundSchema.parse(await queryHeads(OUTSIDE, { start, end, category, subcategory }))
  return tokens === null ? undefined : BigInt(tokens)
}

/** The page from the apps with at least `least` tokens inside the window. */
export async function readContenders(
  { amongContenders }: ReadableSnapshot,
  { sort, ...values }: RankingsQuery,
  least: bigint,
): Promise<RankingPage> {
  const { start, end } = values
  return await amongContenders(async (query) => {
    await query('TRUNCATE temp.apps', {})
    await query(FIND_CONTENDERS, { start, end, least: String(least) })
    return pageOf(await query(SQL[sort], values), values.limit)
  })
}

function pageOf(found: unknown, limit: number): RankingPage {
  const rows = rowsSchema.parse(found)
  const last = rows[limit - 1]
  return {
    rows: rows.map(({ measure: _measure, ...row }) => row),
    least: last && BigInt(last.measure),
  }
}

function sqlFile(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8')
}
