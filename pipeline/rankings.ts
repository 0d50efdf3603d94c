/**
 * The table `rankings` of a snapshot: the usual windows, both sorts, every filter. Each list is asked of the macros
 * that answer everybody else; only where they look is narrowed down, since most apps stand in no list.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { CATEGORIES, FLOOR_DATE, SORTS, addDays, subcategoriesOf } from './contract.ts'
import type { Category, Subcategory } from './contract.ts'
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

/** A window of days, both ends inclusive. */
type Window = { readonly days: number; readonly start_date: string; readonly end_date: string }

/**
 * Fills the table `rankings` of the attached snapshot, which is the current database before and after. Macros look
 * into the current database: for the whole order of a window that is the snapshot, for its 40 lists a small one in
 * memory with the same macros and only the apps that can stand in a list.
 */
export async function fillRankings(run: Run, dataThrough: string): Promise<void> {
  const { connection } = run
  await connection.run(`ATTACH ':memory:' AS heads; USE heads; ${sqlFile('snapshot.sql')}`)
  for (const [index, days] of WINDOWS.entries()) {
    const start = addDays(dataThrough, 1 - days)
    const window = { days, start_date: start < FLOOR_DATE ? FLOOR_DATE : start, end_date: dataThrough }
    await connection.run('USE snapshot')
    await findHeads(connection, window)
    await connection.run('USE heads')
    await transaction(connection, () => fillLists(connection, window))
    run.effects.progress.step('rank', index + 1, WINDOWS.length)
  }
  await connection.run('USE snapshot; DETACH heads; DROP TABLE head_apps; DROP TABLE whole')
}

/** Brings into the small database every app that may stand in a list of this window. */
async function findHeads(connection: DuckDBConnection, { start_date, end_date }: Window): Promise<void> {
  await connection.run('CREATE OR REPLACE TEMP TABLE head_apps (app_id BIGINT)')
  for (const sort of SORTS) {
    await execute(connection, `rank/whole-${sort}.sql`, { start_date, end_date })
    await execute(connection, 'rank/heads.sql')
  }
  await execute(connection, 'rank/heads-daily.sql', { start_date, end_date })
  await execute(connection, 'rank/heads-apps.sql')
}

async function fillLists(connection: DuckDBConnection, { days, ...ends }: Window): Promise<void> {
  for (const sort of SORTS) {
    for (const filter of FILTERS) {
      await execute(connection, `rank/${sort}.sql`, { window_days: days, ...ends, ...filter })
    }
  }
}
