/** The windows of serving's part of the bench, queried by the service's reader and by plain SQL. */
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { DuckDBInstance, VARCHAR, type DuckDBConnection } from '@duckdb/node-api'
import { readCandidates, readRanking } from '../../../api/datasets/rankings.ts'
import { openSnapshot, type OpenSnapshot as Snapshot } from '../../support/snapshots.ts'
import type { RankingsQuery } from '../../../api/datasets/rankings.ts'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { SORTS, type Sort } from '../../../pipeline/contract/dataset.ts'
import { SNAPSHOT_FILE } from '../../../pipeline/contract/files.ts'
import { percentile, timed } from '../measure.ts'

/** Lengths of the windows in days; `whole` starts with the first day of the data. */
const LENGTHS = [1, 7, 30, 90, 365, 'whole'] as const
type Length = (typeof LENGTHS)[number]

const FILTERS = {
  none: { category: null, subcategory: null },
  category: { category: 'coding', subcategory: null },
  subcategory: { category: null, subcategory: 'cli-agent' },
} as const
type Filter = keyof typeof FILTERS
const FILTER_NAMES = ['none', 'category', 'subcategory'] as const satisfies readonly Filter[]

const PAGE = { limit: 100, offset: 0 }

/** One kind of window; many are queried, with different last days. */
export interface Kind {
  readonly sort: Sort
  readonly filter: Filter
  readonly length: Length
}

export const KINDS: readonly Kind[] = SORTS.flatMap((sort) =>
  FILTER_NAMES.flatMap((filter) => LENGTHS.map((length) => ({ sort, filter, length }))),
)

/** Prefix of a kind's figures. */
export function nameOf({ sort, filter, length }: Kind): string {
  return `${sort}.${filter}.${length}`
}

/** Windows of a kind whose ends are spread over the second half of the data. */
function windowsOf(
  { sort, filter, length }: Kind,
  { firstDay, dataThrough, count }: Pick<Snapshot, 'firstDay' | 'dataThrough'> & { readonly count: number },
): RankingsQuery[] {
  const days = (Date.parse(dataThrough) - Date.parse(firstDay)) / 86_400_000
  return Array.from({ length: count }, (_, index) => {
    const end = addDays(dataThrough, -Math.floor((index * days) / 2 / count))
    const start = length === 'whole' ? firstDay : addDays(end, 1 - length)
    return { sort, start: start < firstDay ? firstDay : start, end, ...FILTERS[filter], ...PAGE }
  })
}

const PLAIN = (sort: Sort) => `
  SELECT app_id, app_name, rank, total_requests, CAST(total_tokens AS VARCHAR) AS total_tokens
  FROM ${sort}($start, $end, category := $category, subcategory := $subcategory)
  WHERE rank <= $limit ORDER BY rank`

/** Windows of each kind for the service's reader, and the stride of windows that plain SQL answers too. */
export interface WindowCounts {
  readonly windows: number
  readonly plainEvery: number
}

/** Queries windows of each kind with the service's reader, and some of them with plain SQL in between. */
export async function measureWindows(
  dataDir: string,
  { windows: count, plainEvery }: WindowCounts,
): Promise<Record<string, number>> {
  const folder = join(dataDir, 'current')
  const snapshot = await openSnapshot(realpathSync(folder))
  const instance = await DuckDBInstance.create(join(folder, SNAPSHOT_FILE), { access_mode: 'READ_ONLY' })
  const plain = await instance.connect()
  const figures: Record<string, number> = {}
  for (const kind of KINDS) {
    const [first, ...windows] = windowsOf(kind, { ...snapshot, count: count + 1 })
    // The first one reads the file and prepares the statements.
    if (first !== undefined) await compare(snapshot, plain, first)
    const taken: Taken = { ours: [], plain: [], fallenBack: [], fallenBackPlain: [] }
    for (const [index, window] of windows.entries()) {
      const { ms, plainMs } =
        index % plainEvery === 0
          ? await compare(snapshot, plain, window)
          : await queryService(snapshot, window)
      taken.ours.push(ms)
      if (plainMs !== undefined) taken.plain.push(plainMs)
      if ((await readCandidates(snapshot, window, window.limit)) === undefined) {
        taken.fallenBack.push(ms)
        if (plainMs !== undefined) taken.fallenBackPlain.push(plainMs)
      }
    }
    addFigures(figures, nameOf(kind), taken)
  }
  return figures
}

/** Milliseconds of each window; `fallenBack` are those that the candidates cannot prove. */
interface Taken {
  readonly ours: number[]
  readonly plain: number[]
  readonly fallenBack: number[]
  readonly fallenBackPlain: number[]
}

function addFigures(figures: Record<string, number>, name: string, taken: Taken): void {
  figures[`${name}.p50`] = percentile(taken.ours, 0.5)
  figures[`${name}.p99`] = percentile(taken.ours, 0.99)
  figures[`${name}.plain`] = percentile(taken.plain, 0.5)
  figures[`${name}.plainP99`] = percentile(taken.plain, 0.99)
  figures[`${name}.fallBacks`] = taken.fallenBack.length
  if (taken.fallenBackPlain.length > 0) {
    figures[`${name}.fallBackP50`] = percentile(taken.fallenBack, 0.5)
    figures[`${name}.fallBackPlain`] = percentile(taken.fallenBackPlain, 0.5)
  }
}

interface Times {
  readonly ms: number
  readonly plainMs?: number
}

async function queryService(snapshot: Snapshot, window: RankingsQuery): Promise<Times> {
  return { ms: await timed(() => readRanking(snapshot, window)) }
}

/**
 * Queries both.
 * @throws when their rows differ.
 */
async function compare(
  snapshot: Snapshot,
  connection: DuckDBConnection,
  window: RankingsQuery,
): Promise<Times> {
  const start = performance.now()
  const { rows } = await readRanking(snapshot, window)
  const middle = performance.now()
  const plainRows = await ask(connection, PLAIN(window.sort), window)
  const end = performance.now()
  if (!isDeepStrictEqual(rows, plainRows)) throw new Error(`The answers differ: ${JSON.stringify(window)}`)
  return { ms: middle - start, plainMs: end - middle }
}

async function ask(
  connection: DuckDBConnection,
  sql: string,
  { start, end, category, subcategory, limit }: RankingsQuery,
): Promise<readonly unknown[]> {
  // A bare null has no type, and a macro's argument needs one.
  const types = { category: VARCHAR, subcategory: VARCHAR }
  const reader = await connection.runAndReadAll(sql, { start, end, category, subcategory, limit }, types)
  return reader.getRowObjectsJS()
}
