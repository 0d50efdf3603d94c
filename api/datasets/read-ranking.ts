import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { rankingRowSchema, type RankingRow, type Sort } from '../../pipeline/contract.ts'
import type { RankingsQuery } from './query.ts'
import type { Snapshot } from './snapshot.ts'

const SQL: Readonly<Record<Sort, string>> = {
  popular: readFileSync(new URL('popular.sql', import.meta.url), 'utf8'),
  trending: readFileSync(new URL('trending.sql', import.meta.url), 'utf8'),
}

const rowsSchema = z.array(rankingRowSchema)

/** One page of a ranking, by the macros of the snapshot; everybody who shows rankings asks here. */
export async function readRanking(
  snapshot: Snapshot,
  { sort, ...values }: RankingsQuery,
): Promise<readonly RankingRow[]> {
  return rowsSchema.parse(await snapshot.query(SQL[sort], values))
}
