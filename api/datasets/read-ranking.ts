/** Pages of a ranking, by the macros of the snapshot: everybody who shows rankings asks here. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { rankingRowSchema, type RankingRow, type Sort } from '../../pipeline/contract.ts'
import type { RankingsQuery } from './query.ts'
import type { Snapshot } from './snapshot.ts'

const SQL: Readonly<Record<Sort, string>> = {
  popular: sqlFile('popular.sql'),
  trending: sqlFile('trending.sql'),
}
const FIND_CONTENDERS = sqlFile('contenders.sql')

const digits = z.string().regex(/^\d+$/)
const measuredRowSchema = rankingRowSchema.extend({ measure: digits })
type MeasuredRow = z.infer<typeof measuredRowSchema>
const boundSchema = z.tuple([z.object({ tokens: digits.nullable() })])

const OUTSIDE =
  'SELECT CAST(tokens AS VARCHAR) AS tokens FROM fast.outside($start, $end, $category, $subcategory)'

/**
 * One page of a ranking. The heads alone are asked where that is sure to give the same rows; where it is not, they
 * still tell which apps need to be looked at.
 */
export async function readRanking(snapshot: Snapshot, query: RankingsQuery): Promise<readonly RankingRow[]> {
  const heads = await readHeads(snapshot, query)
  if (heads?.isSure === true) return heads.rows
  return heads?.least === undefined
    ? await readWhole(snapshot, query)
    : await readContenders(snapshot, query, heads.least)
}

/** The page from all apps. */
export async function readWhole(
  snapshot: Snapshot,
  { sort, ...values }: RankingsQuery,
): Promise<readonly RankingRow[]> {
  return pageOf(await snapshot.query(SQL[sort], values)).map(toRow)
}

interface HeadsPage {
  readonly rows: readonly RankingRow[]
  /** Whether it is the page of all apps. */
  readonly isSure: boolean
  /** Tokens that each app on the page of all apps has inside the window at least; undefined for a page not full. */
  readonly least: string | undefined
}

/**
 * The page from the heads; undefined in a snapshot that has none. It is the page of all apps where its last row is
 * above what any other app can have: its tokens, and so its growth, are at most the bound.
 */
export async function readHeads(
  { queryHeads }: Snapshot,
  { sort, ...values }: RankingsQuery,
): Promise<HeadsPage | undefined> {
  if (queryHeads === undefined) return undefined
  const { start, end, category, subcategory, limit } = values
  const [rows, bounds] = await Promise.all([
    queryHeads(SQL[sort], values),
    queryHeads(OUTSIDE, { start, end, category, subcategory }),
  ])
  const page = pageOf(rows)
  const [{ tokens: outside }] = boundSchema.parse(bounds)
  // With more apps the last row can but rise, and whoever stands there has its growth in tokens at least.
  const least = page[limit - 1]?.measure
  const isSure = outside === null || (least !== undefined && BigInt(least) > BigInt(outside))
  return { rows: page.map(toRow), isSure, least }
}

/** The page from the apps with at least `least` tokens inside the window, which must be all that can stand on it. */
export async function readContenders(
  { amongContenders }: Snapshot,
  { sort, ...values }: RankingsQuery,
  least: string,
): Promise<readonly RankingRow[]> {
  const { start, end } = values
  return await amongContenders(async (query) => {
    await query('TRUNCATE temp.apps', {})
    await query(FIND_CONTENDERS, { start, end, least })
    return pageOf(await query(SQL[sort], values)).map(toRow)
  })
}

function pageOf(rows: unknown): readonly MeasuredRow[] {
  return z.array(measuredRowSchema).parse(rows)
}

function toRow({ measure: _measure, ...row }: MeasuredRow): RankingRow {
  return row
}

function sqlFile(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8')
}
