/** Creates the snapshot's file with the table app_daily. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { piecesOf } from '../contract/calendar.ts'
import type { DayRange } from '../contract/calendar.ts'
import { SNAPSHOT_FILE } from '../contract/files.ts'
import { literal } from '../duckdb/sql-values.ts'
import type { Run } from '../stages/stage.ts'
import { execute, sqlFile } from '../duckdb/statements.ts'

// An interrupted build is thrown away, so a WAL synced to disk would be useless.
const UNLOGGED = 'RECOVERY_MODE NO_WAL_WRITES'

/** Size of the history. */
export type Extent = {
  /** Days between which the snapshot has data. */
  readonly days: DayRange
  /** Whether some app's day exceeds BIGINT. */
  readonly wide: boolean
  /** Days written by one statement. */
  readonly daysAtOnce: number
}

/** Attaches a new snapshot as `snapshot`, creates its tables and macros, and fills app_daily. */
export async function createSnapshot(run: Run, { days, wide, daysAtOnce }: Extent): Promise<void> {
  const { connection, buildFolder } = run
  mkdirSync(buildFolder, { recursive: true })
  // Every DuckDB since 0.10 opens this storage version.
  await attachSnapshot(connection, buildFolder, `snapshot (STORAGE_VERSION 'v1.0.0', ${UNLOGGED})`)
  await connection.run(`USE snapshot; ${sqlFile('snapshot.sql')}`)
  if (wide) await execute(connection, 'rank/widen.sql')
  // A few days at a time, in order, so that readers skip the days outside their window.
  for (const { from, to } of piecesOf(days, daysAtOnce)) {
    await execute(connection, 'rank/app-daily.sql', { first_day: from, last_day: to })
  }
}

/** Attaches the snapshot's DuckDB file in a folder; `name` may carry options in braces. */
export async function attachSnapshot(
  connection: DuckDBConnection,
  folder: string,
  name: string,
): Promise<void> {
  await connection.run(`ATTACH ${literal(join(folder, SNAPSHOT_FILE))} AS ${name}`)
}
