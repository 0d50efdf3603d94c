/** The windows that serving's part of the bench asks for, and who answers them: the service's own reader and plain SQL. */
import { join } from 'node:path'
import { DuckDBInstance, VARCHAR, type DuckDBConnection } from '@duckdb/node-api'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { readRanking } from '../../api/datasets/read-ranking.ts'
import { openSnapshot, type Snapshot } from '../../api/datasets/snapshot.ts'
import type { RankingsQuery } from '../../api/datasets/query.ts'
import { SNAPSHOT_FILE, SORTS, addDays, type Sort } from '../../pipeline/contract.ts'
import { percentile } from './measure.ts'

/** Lengths of the windows in days; `whole` starts with the first day of the data. */
export const LENGTHS = [1, 7, 30, 90, 365, 'whole'] as const
type Length = (typeof LENGTHS)[number]

const FILTERS = {
  none: { category: null, subcategory: null },
  category: { category: 'coding', subcategory: null },
  subcategory: { category: null, subcategory: 'cli-agent' },
} as const
type Filter = keyof typeof FILTERS
const FILTER_NAMES = ['none', 'category', 'subcategory'] as const satisfies readonly Filter[]

const PAGE = { limit: 100, offset: 0 }

/** One kind of window: many of them are asked, which end on various days. */
export interface Kind {
  readonly sort: Sort
  readonly filter: Filter
  readonly length: Length
}

export const KINDS: readonly Kind[] = SORTS.flatMap((sort) =>
  FILTER_NAMES.flatMap((filter) => LENGTHS.map((length) => ({ sort, filter, length }))),
)

/** What the figures of a kind begin with. */
export function nameOf({ sort, filter, length }: Kind): string {
  return `${sort}.${filter}.${length}`
}

/** Windows of a kind whose ends are spread over the second half of the data. */
export function windowsOf(
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

// True where the heads' own page may lack an app that is none of them.
const FALLS_BACK = (sort: Sort) => `
  SELECT NOT (b.tokens IS NULL OR coalesce(p.rows = $limit AND p.least > b.tokens, false)) AS falls_back
  FROM fast.outside($start, $end, $category, $subcategory) AS b, (
    SELECT count(*) AS rows, min(${sort === 'popular' ? 'total_tokens' : 'excess_tokens'}) AS least
    FROM ${sort}($start, $end, category := $category, subcategory := $subcategory)
    WHERE rank <= $limit
  ) AS p`

const fallsBackRows = z.tuple([z.object({ falls_back: z.boolean() })])

interface Figures {
  /** Milliseconds of each window. */
  readonly ours: number[]
  readonly plain: number[]
  /** Of those windows alone that the heads cannot answer. */
  readonly oursFallingBack: number[]
  readonly plainFallingBack: number[]
}

/** Asks `count` windows of each kind, each of the service's reader and of plain SQL in turn. */
export async function measureWindows(dataDir: string, count: number): Promise<Record<string, number>> {
  const folder = join(dataDir, 'current')
  const snapshot = await openSnapshot(folder)
  const instance = await DuckDBInstance.create(join(folder, SNAPSHOT_FILE), { access_mode: 'READ_ONLY' })
  const plain = await connectTo(instance, 'main')
  const heads = await connectTo(instance, 'fast,main')
  const all: Record<string, number> = {}
  for (const kind of KINDS) {
    const figures: Figures = { ours: [], plain: [], oursFallingBack: [], plainFallingBack: [] }
    const [first, ...windows] = windowsOf(kind, { ...snapshot, count: count + 1 })
    // The first one reads the file and prepares the statements.
    if (first !== undefined) await askBoth(snapshot, plain, first)
    for (const window of windows) {
      const { ours, other } = await askBoth(snapshot, plain, window)
      figures.ours.push(ours)
      figures.plain.push(other)
      if (!(await fallsBack(heads, window))) continue
      figures.oursFallingBack.push(ours)
      figures.plainFallingBack.push(other)
    }
    addFigures(all, nameOf(kind), figures)
  }
  return all
}

function addFigures(all: Record<string, number>, name: string, figures: Figures): void {
  all[`${name}.p50`] = percentile(figures.ours, 0.5)
  all[`${name}.p99`] = percentile(figures.ours, 0.99)
  all[`${name}.plain`] = percentile(figures.plain, 0.5)
  all[`${name}.plainP99`] = percentile(figures.plain, 0.99)
  all[`${name}.fallBacks`] = figures.oursFallingBack.length
  if (figures.oursFallingBack.length === 0) return
  all[`${name}.fallBackP99`] = percentile(figures.oursFallingBack, 0.99)
  all[`${name}.fallBackPlainP99`] = percentile(figures.plainFallingBack, 0.99)
}

async function connectTo(instance: DuckDBInstance, searchPath: string): Promise<DuckDBConnection> {
  const connection = await instance.connect()
  await connection.run(`SET search_path = '${searchPath}'`)
  return connection
}

/**
 * Milliseconds of both.
 * @throws when their rows differ.
 */
async function askBoth(
  snapshot: Snapshot,
  connection: DuckDBConnection,
  window: RankingsQuery,
): Promise<{ readonly ours: number; readonly other: number }> {
  const start = performance.now()
  const rows = await readRanking(snapshot, window)
  const middle = performance.now()
  const plainRows = await ask(connection, PLAIN(window.sort), window)
  const end = performance.now()
  if (!isDeepStrictEqual(rows, plainRows)) throw new Error(`The answers differ: ${JSON.stringify(window)}`)
  return { ours: middle - start, other: end - middle }
}

async function fallsBack(heads: DuckDBConnection, window: RankingsQuery): Promise<boolean> {
  const [{ falls_back }] = fallsBackRows.parse(await ask(heads, FALLS_BACK(window.sort), window))
  return falls_back
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
