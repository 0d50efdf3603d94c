/** Creates the snapshot's file with the table app_daily. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { addDays, type DayRange } from '../contract/calendar.ts'
import { SORTS } from '../contract/dataset.ts'
import { SNAPSHOT_FILE } from '../contract/files.ts'
import { literal } from '../duckdb/sql-values.ts'
import { execute, sqlFile } from '../duckdb/statements.ts'
import type { Run } from '../stages/stage.ts'
import { withPublished } from './attach.ts'

// An interrupted build is thrown away, so a WAL synced to disk would be useless.
const UNLOGGED = 'RECOVERY_MODE NO_WAL_WRITES'

/**
 * Type of totals of tokens: BIGINT while all usage together fits, since pandas and others turn DECIMAL into a
 * floating-point number; then DECIMAL, which is exact.
 */
export type TotalType = 'BIGINT' | 'DECIMAL(38, 0)'

/** `CREATE TABLE apps ( -- About the table.`, up to its semicolon, and in it `  app_name VARCHAR, -- About the column.` */
const DESCRIBED = /^CREATE ((?:TABLE|VIEW) \S+) .*? -- (.*)\n([^]*?);$/gm
const COLUMN = /^ +(?:\w\.|AS )?(\w+).*? -- (.*)$/gm

/**
 * The statements of a SQL file, with the type of totals in the place of TOKEN_TOTAL. The comments behind a table, a view and
 * their columns are stored in the database too, for its readers.
 */
export function sqlWithTotals(name: string, totals: TotalType): string {
  return sqlFile(name).replaceAll('TOKEN_TOTAL', totals).replaceAll(DESCRIBED, withComments)
}

/** Adds the statements that store the comments; `created` is what the statement creates, such as `TABLE apps`. */
function withComments(statement: string, created: string, about: string, body: string): string {
  const [, name] = created.split(' ')
  const columns = body
    .matchAll(COLUMN)
    .map(([, column, text = '']) => comment(`COLUMN ${name}.${column}`, text))
  return [statement, comment(created, about), ...columns].join('\n')
}

const comment = (on: string, text: string) => `COMMENT ON ${on} IS ${literal(text)};`

/** Creates the views of the attached snapshot, which is the current database and has all tables. */
export async function createViews(connection: DuckDBConnection, totals: TotalType): Promise<void> {
  for (const sort of SORTS)
    await connection.run(sqlWithTotals('snapshot.sql#latest-view', totals).replaceAll('SORT', sort))
  await connection.run(sqlWithTotals('snapshot.sql#history-view', totals))
}

/** Size of the history. */
export type Extent = {
  /** Days between which the snapshot has data. */
  readonly days: DayRange
  readonly totals: TotalType
}

/** A published snapshot whose rows by day before `firstChanged` are those of the new one. */
export type Base = { readonly id: string; readonly firstChanged: string }

/**
 * Attaches a new snapshot as `snapshot`, creates its tables, and fills app_daily. On a base the days before the first changed
 * one are read from its file, in half the time, and those of model_daily too.
 * @param daysAtOnce days written by one statement.
 */
export async function createSnapshot(
  run: Run,
  { days, totals }: Extent,
  { daysAtOnce, base }: { readonly daysAtOnce: number; readonly base: Base | undefined },
): Promise<void> {
  const { connection, buildFolder } = run
  mkdirSync(buildFolder, { recursive: true })
  // Every DuckDB since 0.10 opens this storage version.
  const file = literal(join(buildFolder, SNAPSHOT_FILE))
  await connection.run(`ATTACH ${file} AS snapshot (STORAGE_VERSION 'v1.0.0', ${UNLOGGED})`)
  await connection.run(`USE snapshot; ${sqlWithTotals('snapshot.sql#tables', totals)}`)
  const from = base?.firstChanged ?? days.from
  if (base !== undefined)
    await withPublished(run, base.id, 'newest', () => execute(connection, 'rank.sql#unchanged-days'))
  // A few days at a time, in order, so that readers skip the days outside their window.
  for (const { from: first_day, to: last_day } of piecesOf({ from, to: days.to }, daysAtOnce)) {
    await execute(connection, 'rank.sql#app-daily', { first_day, last_day })
  }
}

/** Splits a range into chunks of days; none if it ends before it begins. */
export function piecesOf({ from, to }: DayRange, length: number): DayRange[] {
  const pieces: DayRange[] = []
  for (let first = from; first <= to; first = addDays(first, length)) {
    const last = addDays(first, length - 1)
    pieces.push({ from: first, to: last < to ? last : to })
  }
  return pieces
}
