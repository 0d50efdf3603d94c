/**
 * The table `rankings` of a snapshot: the usual windows, both sorts, every filter. Each list is asked of the macros
 * that answer everybody else; only where they look is narrowed down, since most apps stand in no list.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { CATEGORIES, FLOOR_DATE, SORTS, addDays, subcategoriesOf } from './contract.ts'
import type { Category, Sort, Subcategory } from './contract.ts'
import type { Run } from './stage.ts'
import { execute, sqlFile, transaction } from './warehouse.ts'

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

type Window = {
  readonly days: number
  readonly sort: Sort
  readonly start_date: string
  readonly end_date: string
}

/** Fills the table `rankings` of the attached snapshot, which is the current database before and after. */
export async function fillRankings(run: Run, dataThrough: string): Promise<void> {
  const windows = windowsUntil(dataThrough)
  await findHeads(run.connection, windows)
  await cutDown(run.connection)
  await transaction(run.connection, () => fillLists(run, windows))
  await run.connection.run('USE snapshot; DETACH heads; DROP TABLE head_apps; DROP TABLE whole')
}

function windowsUntil(dataThrough: string): Window[] {
  return WINDOWS.flatMap((days) => {
    const start = addDays(dataThrough, 1 - days)
    const start_date = start < FLOOR_DATE ? FLOOR_DATE : start
    return SORTS.map((sort) => ({ days, sort, start_date, end_date: dataThrough }))
  })
}

/** Gathers in `head_apps` every app that may stand in a list. */
async function findHeads(connection: DuckDBConnection, windows: readonly Window[]): Promise<void> {
  await connection.run('CREATE OR REPLACE TEMP TABLE head_apps (app_id BIGINT)')
  for (const { sort, start_date, end_date } of windows) {
    await execute(connection, `rank/whole-${sort}.sql`, { start_date, end_date })
    await execute(connection, 'rank/heads.sql')
  }
}

/** Macros look into the current database, so the small one becomes that. */
async function cutDown(connection: DuckDBConnection): Promise<void> {
  await connection.run(`ATTACH ':memory:' AS heads; USE heads; ${sqlFile('snapshot.sql')}`)
  await execute(connection, 'rank/heads-tables.sql')
}

async function fillLists(run: Run, windows: readonly Window[]): Promise<void> {
  const lists = windows.flatMap((window) => FILTERS.map((filter) => ({ window, filter })))
  for (const [index, { window, filter }] of lists.entries()) {
    const { days, sort, start_date, end_date } = window
    await execute(run.connection, `rank/${sort}.sql`, { window_days: days, start_date, end_date, ...filter })
    run.effects.progress.step('rank', index + 1, lists.length)
  }
}
