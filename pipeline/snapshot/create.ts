/** The snapshot's file with its table app_daily, the history of all days. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { piecesOf } from '../contract/calendar.ts'
import type { DayRange } from '../contract/calendar.ts'
import { SNAPSHOT_FILE } from '../contract/files.ts'
import { literal } from '../duckdb/sql-values.ts'
import type { Run } from '../stages/stage.ts'
import { execute, sqlFile } from '../duckdb/statements.ts'

// What is built is thrown away by whatever ends the run too early: a log of each step, synced to disk, would serve nobody.
const UNLOGGED = 'RECOVERY_MODE NO_WAL_WRITES'

/** How much there is to write. */
export type Extent = {
  /** Days between which the snapshot has data. */
  readonly days: DayRange
  /** Whether BIGINT is too narrow for a day of some app. */
  readonly wide: boolean
  /** Days that are written in one go. */
  readonly daysAtOnce: number
}

/** Attaches a new snapshot as `snapshot`, with its tables and macros, of which app_daily is filled. */
export async function createSnapshot(run: Run, { days, wide, daysAtOnce }: Extent): Promise<void> {
  const { connection, buildFolder } = run
  mkdirSync(buildFolder, { recursive: true })
  // In the storage version that every DuckDB since 0.10 opens.
  await attachSnapshot(connection, buildFolder, `snapshot (STORAGE_VERSION 'v1.0.0', ${UNLOGGED})`)
  await connection.run(`USE snapshot; ${sqlFile('snapshot.sql')}`)
  if (wide) await execute(connection, 'rank/widen.sql')
  // A few days at a time, in order: readers skip what lies outside their window.
  for (const { from, to } of piecesOf(days, daysAtOnce)) {
    await execute(connection, 'rank/app-daily.sql', { first_day: from, last_day: to })
  }
}

/** Attaches the DuckDB file of the snapshot in a folder; after the name there may be options, in braces. */
export async function attachSnapshot(
  connection: DuckDBConnection,
  folder: string,
  name: string,
): Promise<void> {
  await connection.run(`ATTACH ${literal(join(folder, SNAPSHOT_FILE))} AS ${name}`)
}
