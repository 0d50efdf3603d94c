/** Pages of a ranking, by the macros of the snapshot: everybody who shows rankings asks here. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { rankingRowSchema, type RankingRow, type Sort } from '../../pipeline/contract.ts'
import type { RankingsQuery } from './query.ts'
import type { Snapshot } from './snapshot.ts'

const SQL: Readonly<Record<Sort, string>> = {
  popular: readFileSync(new URL('popular.sql', import.meta.url), 'utf8'),
  trending: readFileSync(new URL('trending.sql', import.meta.url), 'utf8'),
}

const digits = z.string().regex(/^\d+$/)
const measuredRowSchema = rankingRowSchema.extend({ measure: digits })
const boundSchema = z.tuple([z.object({ tokens: digits.nullable() })])

const OUTSIDE =
  'SELECT CAST(tokens AS VARCHAR) AS tokens FROM fast.outside($start, $end, $category, $subcategory)'

/** One page of a ranking. The heads alone are asked where that is sure to give the same rows. */
export async function readRanking(snapshot: Snapshot, query: RankingsQuery): Promise<readonly RankingRow[]> {
  return (await readHeads(snapshot, query)) ?? (await readWhole(snapshot, query))
}

/** The page from all apps. */
export async function readWhole(
  snapshot: Snapshot,
  { sort, ...values }: RankingsQuery,
): Promise<readonly RankingRow[]> {
  return pageOf(await snapshot.query(SQL[sort], values)).map(({ measure: _measure, ...row }) => row)
}

/**
 * The page from the heads; undefined when an app outside of them might stand in it. None does where the last row
 * is above what any of them can have: its tokens, and so its growth, are at most the bound.
 */
export async function readHeads(
  { queryHeads }: Snapshot,
  { sort, ...values }: RankingsQuery,
): Promise<readonly RankingRow[] | undefined> {
  if (queryHeads === undefined) return undefined
  const { start, end, category, subcategory, limit } = values
  const [rows, bounds] = await Promise.all([
    queryHeads(SQL[sort], values),
    queryHeads(OUTSIDE, { start, end, category, subcategory }),
  ])
  const page = pageOf(rows)
  const [{ tokens: outside }] = boundSchema.parse(bounds)
  const last = page[limit - 1]
  const isSure = outside === null || (last !== undefined && BigInt(last.measure) > BigInt(outside))
  return isSure ? page.map(({ measure: _measure, ...row }) => row) : undefined
}

function pageOf(rows: unknown): readonly z.infer<typeof measuredRowSchema>[] {
  return z.array(measuredRowSchema).parse(rows)
}
