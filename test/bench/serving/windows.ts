/** The windows of serving's part of the bench, queried by the service's reader and by plain SQL. */
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { DuckDBInstance, VARCHAR, type DuckDBConnection } from '@duckdb/node-api'
import { readCandidates, readRanking } from '../../../api/datasets/rankings.ts'
import { openSnapshot, type OpenSnapshot as Snapshot } from '../../support/pipeline/snapshot.ts'
import type { RankingsQuery } from '../../../api/datasets/rankings.ts'
import { addDays, daysBetween } from '../../../pipeline/contract/calendar.ts'
import { SORTS, type Sort } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { percentile, type Figures } from '../measure.ts'

/** Lengths of the windows in days; `all` starts with the first day of the data. */
const LENGTHS = [1, 7, 30, 90, 365, 'all'] as const

const FILTERS = [
  { filter: 'none', category: null, subcategory: null },
  { filter: 'category', category: 'coding', subcategory: null },
  { filter: 'subcategory', category: null, subcategory: 'cli-agent' },
] as const

/** The kinds of windows; many of each are queried, with different last days. */
export const KINDS = SORTS.flatMap((sort) =>
  FILTERS.flatMap((filter) => LENGTHS.map((length) => ({ sort, ...filter, length }))),
)
type Kind = (typeof KINDS)[number]

/** Prefix of a kind's figures. */
export function nameOf({ sort, filter, length }: Kind): string {
  return `${sort}.${filter}.${length}`
}

/** Windows of a kind whose ends are spread over the second half of the data. */
function windowsOf(kind: Kind, { first_day, data_through }: Snapshot, count: number): RankingsQuery[] {
  const { filter: _filter, length, ...order } = kind
  const days = daysBetween(first_day, data_through)
  return Array.from({ length: count }, (_, index) => {
    const end_date = addDays(data_through, -Math.floor((index * days) / 2 / count))
    const start = length === 'all' ? first_day : addDays(end_date, 1 - length)
    return { ...order, start_date: start < first_day ? first_day : start, end_date, limit: 100, offset: 0 }
  })
}

/** A data folder, and how many windows of each kind are queried. */
type Windows = { readonly dataDir: string; readonly windows: number }

/**
 * Milliseconds of the service's reader and of plain SQL per kind, and the windows that the candidates cannot prove: their
 * number, and their median beside plain SQL. A case of the bench, in a process of its own.
 * @throws when the rows of the two differ.
 */
export async function measureWindows({ dataDir, windows }: Windows): Figures {
  const folder = join(dataDir, 'current')
  const snapshot = await openSnapshot(realpathSync(folder))
  const instance = await DuckDBInstance.create(join(folder, SNAPSHOT_FILE), { access_mode: 'READ_ONLY' })
  const plain = await instance.connect()
  const figures: Record<string, number> = {}
  for (const kind of KINDS) {
    const taken: { readonly ms: number; readonly plainMs: number; readonly isProven: boolean }[] = []
    for (const window of windowsOf(kind, snapshot, windows + 1)) {
      const times = await query(snapshot, plain, window)
      const isProven = (await readCandidates(snapshot, window, window.limit)) !== undefined
      taken.push({ ...times, isProven })
    }
    // The first one read the file and prepared the statements.
    taken.shift()
    const median = (of: 'ms' | 'plainMs', among = taken) =>
      percentile(
        among.map((times) => times[of]),
        0.5,
      )
    const unproven = taken.filter(({ isProven }) => !isProven)
    const name = nameOf(kind)
    figures[`${name}.ms`] = median('ms')
    figures[`${name}.plain`] = median('plainMs')
    figures[`${name}.unproven`] = unproven.length
    if (unproven.length > 0)
      figures[`${name}.unprovenRatio`] = median('ms', unproven) / median('plainMs', unproven)
  }
  return figures
}

const PLAIN = (sort: Sort) => `
  SELECT app_id, app_name, rank, total_requests, CAST(total_tokens AS VARCHAR) AS total_tokens
  FROM ${sort}($start_date, $end_date, category := $category, subcategory := $subcategory)
  WHERE rank <= $limit ORDER BY rank`

/** Queries the service's reader and plain SQL. */
async function query(snapshot: Snapshot, plain: DuckDBConnection, window: RankingsQuery) {
  const start = performance.now()
  const { rows } = await readRanking(snapshot, window)
  const middle = performance.now()
  const { sort, offset: _offset, ...values } = window
  // A bare null has no type, and a macro's argument needs one.
  const types = { category: VARCHAR, subcategory: VARCHAR }
  const reader = await plain.runAndReadAll(PLAIN(sort), values, types)
  const plainMs = performance.now() - middle
  if (!isDeepStrictEqual(rows, reader.getRowObjectsJS()))
    throw new Error(`The answers differ: ${JSON.stringify(window)}`)
  return { ms: middle - start, plainMs }
}
