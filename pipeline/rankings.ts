/**
 * The table `rankings` of a snapshot: the usual windows, both sorts, every filter. Who comes before whom, and whom a
 * filter lets through, is asked of the macros that answer everybody else.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { CATEGORIES, FLOOR_DATE, SORTS, addDays, subcategoriesOf } from './contract.ts'
import type { Category, Subcategory } from './contract.ts'
import type { Run } from './stage.ts'
import { execute, returnMemory } from './warehouse.ts'

/** Lengths in days of the precomputed windows; they end on the last day of the data. */
const WINDOWS = [1, 7, 30, 90] as const

type Filter = { readonly category: Category | null; readonly subcategory: Subcategory | null }

/** Every filter the rankings know: none, each group, each subcategory. */
const FILTERS: readonly Filter[] = [
  { category: null, subcategory: null },
  ...CATEGORIES.flatMap((category): Filter[] => [
    { category, subcategory: null },
    ...subcategoriesOf(category).map((subcategory) => ({ category, subcategory })),
  ]),
]

/** Fills the table `rankings` of the attached snapshot, which is the current database. */
export async function fillRankings(run: Run, dataThrough: string): Promise<void> {
  const { connection } = run
  await fillFilters(connection)
  for (const [index, days] of WINDOWS.entries()) {
    const start = addDays(dataThrough, 1 - days)
    const window = { start_date: start < FLOOR_DATE ? FLOOR_DATE : start, end_date: dataThrough }
    for (const sort of SORTS) {
      await execute(connection, `rank/whole-${sort}.sql`, window)
      await execute(connection, 'rank/lists.sql', { window_days: days, ...window, sort })
    }
    await returnMemory(connection)
    run.effects.progress.step('rank', index + 1, WINDOWS.length)
  }
  await connection.run('DROP TABLE whole; DROP TABLE members; DROP TABLE filters')
}

async function fillFilters(connection: DuckDBConnection): Promise<void> {
  await execute(connection, 'rank/filters.sql')
  for (const [number, { category, subcategory }] of FILTERS.entries()) {
    await connection.run('INSERT INTO filters VALUES ($1, $2, $3)', [number, category, subcategory])
    await execute(connection, 'rank/members.sql', { number, category, subcategory })
  }
}
