/**
 * The snapshot's file with its table app_daily, the history of all days: taken over as far as it is settled, written from
 * the warehouse from there on.
 */
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'
import { parquetOptions } from '../bundle/table-files.ts'
import { addDays } from '../contract/calendar.ts'
import { SNAPSHOT_FILE } from '../contract/files.ts'
import { piecesOf } from '../contract/day-ranges.ts'
import type { DayRange } from '../contract/day-ranges.ts'
import { beginSettledFiles, findSettledFiles, settledThrough, takeOver } from './settled.ts'
import type { SettledFiles } from './settled.ts'
import { literal } from '../duckdb/sql-values.ts'
import type { Run } from '../stages/stage.ts'
import { execute, sqlFile } from '../duckdb/statements.ts'

const SCHEMA_FILE = 'snapshot.sql'
const WIDEN_FILE = 'rank/widen.sql'
const ROWS_FILE = 'rank/app-daily.sql'

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

/**
 * Attaches a new snapshot as `snapshot`, with its tables and macros, of which app_daily is filled.
 * @returns what was taken over, undefined when nothing was.
 */
export async function createSnapshot(run: Run, extent: Extent): Promise<SettledFiles | undefined> {
  const { days } = extent
  const shape = shapeOf(extent)
  const earlier = await findSettledFiles(run, { shape, dataThrough: days.to })
  mkdirSync(run.buildFolder, { recursive: true })
  await (earlier === undefined ? createEmpty(run, extent) : attachCopy(run, earlier))
  const settled = settledThrough(days.to)
  let from = earlier === undefined ? days.from : addDays(earlier.through, 1)
  if (from <= settled) {
    await fillDays(run, extent, { from, to: settled })
    await beginSettledFiles(run, { shape, through: settled, before: earlier })
    from = addDays(settled, 1)
  }
  await fillDays(run, extent, { from, to: days.to })
  return earlier
}

/** What decides besides the rows what is written of them: the writer of the files, and all that makes them. */
function shapeOf({ wide }: Extent): string {
  const sql = [SCHEMA_FILE, WIDEN_FILE, ROWS_FILE].map(sqlFile)
  const made = createHash('sha256').update(JSON.stringify([sql, parquetOptions()]))
  return JSON.stringify([version(), made.digest('hex'), wide])
}

/** In the storage version that every DuckDB since 0.10 opens. */
async function createEmpty({ connection, buildFolder }: Run, { wide }: Extent): Promise<void> {
  await attachSnapshot(connection, buildFolder, `snapshot (STORAGE_VERSION 'v1.0.0', ${UNLOGGED})`)
  await connection.run(`USE snapshot; ${sqlFile(SCHEMA_FILE)}`)
  if (wide) await execute(connection, WIDEN_FILE)
}

async function attachCopy({ connection, buildFolder }: Run, earlier: SettledFiles): Promise<void> {
  takeOver(earlier.database, join(buildFolder, SNAPSHOT_FILE))
  await attachSnapshot(connection, buildFolder, `snapshot (${UNLOGGED})`)
  await connection.run('USE snapshot')
}

/** Attaches the DuckDB file of the snapshot in a folder; after the name there may be options, in braces. */
export async function attachSnapshot(
  connection: DuckDBConnection,
  folder: string,
  name: string,
): Promise<void> {
  await connection.run(`ATTACH ${literal(join(folder, SNAPSHOT_FILE))} AS ${name}`)
}

/** A few days at a time, in order: readers skip what lies outside their window. */
async function fillDays(run: Run, { daysAtOnce }: Extent, days: DayRange): Promise<void> {
  for (const { from, to } of piecesOf(days, daysAtOnce)) {
    await execute(run.connection, ROWS_FILE, { first_day: from, last_day: to })
  }
}
