/**
 * Counts the usage of days with DuckDB (CONTRACT 7), for one CSV file in these steps:
 *
 * 1. `drop-folder.ts` lists it; `formats/csv.ts` says how DuckDB reads it, all of it as text.
 * 2. `incoming.ts` makes one view over all files, with the values that values.sql gives the texts.
 * 3. `groups.ts` groups the view. A file with a row that is not valid is read once more by lines, which gives row and reason
 *    (`staging.ts`).
 * 4. load.sql names the apps (`names.ts`), finds rejected and repeated rows, and adds the groups up, unless each is an app and
 *    a model of its own already.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { z } from 'zod'
import { scratchPath } from '../duckdb/database.ts'
import { execute, readRow, readRows } from '../duckdb/statements.ts'
import { DataError, isShortage } from '../errors.ts'
import { PULLED_COLUMNS, USAGE_COLUMNS, type Columns } from './columns.ts'
import { PULLED_FILE, refuseCopies, type RawFile, type UsageDay } from './drop-folder.ts'
import { hasGrown, unreadable } from './formats/bytes.ts'
import { scanCsv } from './formats/csv.ts'
import { scanJsonLines } from './formats/json.ts'
import { scanParquet, withoutDescriptive } from './formats/parquet.ts'
import { groupQueries, isByApp, type Batch } from './groups.ts'
import { defineIncoming, type DayFile, type Scan } from './incoming.ts'
import { appTextRow, nameApps } from './names.ts'
import { createStagingTable, stageFiles } from './staging.ts'

const fileRow = z.object({ file: z.int() })
const plainRow = z.object({ plain: z.boolean() })
const oddRow = z.object({ rejected: z.boolean(), doubtful: z.boolean() })
const apartRow = z.object({ apart: z.boolean() })
const messageRow = z.object({ message: z.string() })

/**
 * Counts days into temporary tables of the connection: `counted` (per day, app and hash of the model; app_id NULL holds the
 * rejected rows), `provider_counts`, `day_totals`, and `rejected` (the quarantine).
 * @returns what an operator should know about rows that count all the same.
 * @throws DataError with what cannot be read.
 */
export async function countUsage(connection: DuckDBConnection, days: readonly UsageDay[]): Promise<string[]> {
  for (const { files } of days) await refuseCopies(files)
  const files = days.flatMap(({ day, files: some }) => some.map((file) => ({ day, file })))
  const folder = await scratchPath(connection)
  try {
    mkdirSync(folder, { recursive: true })
    const scans = new Map<RawFile, Scan>()
    for (const { file } of files) {
      const scan = await scanFile(connection, file, join(folder, randomUUID()))
      if (scan !== undefined) scans.set(file, scan)
    }
    const batch = await groupFiles(connection, files, scans)
    await nameGroups(connection)
    await execute(connection, 'load.sql#rejected')
    await findRepeats(connection)
    await addUp(connection, batch)
    const notes = await readRows(connection, 'load.sql#large-parts', messageRow)
    return notes.map(({ message }) => message)
  } finally {
    await connection.run('CREATE OR REPLACE TEMP TABLE staged (file VARCHAR)')
    rmSync(folder, { recursive: true, force: true })
  }
}

function columnsOf({ path }: RawFile): Columns {
  return basename(path) === PULLED_FILE ? PULLED_COLUMNS : USAGE_COLUMNS
}

/** How DuckDB reads a file; undefined for one that has to be read by lines, or decoded first as Arrow. */
async function scanFile(
  connection: DuckDBConnection,
  file: RawFile,
  copy: string,
): Promise<Scan | undefined> {
  if (file.format === 'parquet') return scanParquet(connection, file, columnsOf(file))
  if (file.format === 'csv') return scanCsv(file, copy)
  return file.format === 'ndjson' ? scanJsonLines(file, copy) : undefined
}

/** Groups the rows of the files; repeats it while a file has to be read otherwise. */
async function groupFiles(
  connection: DuckDBConnection,
  files: readonly DayFile[],
  scans: Map<RawFile, Scan>,
): Promise<Batch> {
  const days = new Set(files.map(({ day }) => day))
  const areText = files.every(({ file }) => file.format !== 'parquet')
  for (;;) {
    const staged = files.map(({ file }) => file).filter((file) => !scans.has(file))
    if (staged.length > 0) {
      await createStagingTable(connection, USAGE_COLUMNS)
      await stageFiles(connection, staged, USAGE_COLUMNS)
    }
    const columns = await defineIncoming(connection, files, scans)
    const batch = { columns, days, areText }
    try {
      await groupRows(connection, batch, files)
    } catch (error) {
      if (isShortage(error) || !(await replaceUnreadable(connection, scans))) throw error
      continue
    }
    const suspects = await findSuspects(connection, files, scans)
    if (suspects.length === 0) return batch
    for (const file of suspects) scans.delete(file)
  }
}

/** Groups the rows, those of Parquet by few keys where these suffice. */
async function groupRows(
  connection: DuckDBConnection,
  batch: Batch,
  files: readonly DayFile[],
): Promise<void> {
  if (isByApp(batch) && files.every(({ file }) => file.format === 'parquet')) {
    await connection.run(groupQueries(batch, 'few'))
    if ((await readRow(connection, 'load.sql#plain-groups', plainRow)).plain) return
  }
  await connection.run(groupQueries(batch, 'all'))
}

/** Whether a text file has grown since it was listed: DuckDB reads it to its end, maybe the half of a line. */
function isGrownText(file: RawFile): boolean {
  return file.format !== 'parquet' && hasGrown(file)
}

/**
 * Leaves the text files that DuckDB cannot read to the lines, and such Parquet files without their descriptive columns.
 * @returns false if DuckDB can read every file.
 * @throws DataError with a Parquet file that it cannot read.
 */
async function replaceUnreadable(connection: DuckDBConnection, scans: Map<RawFile, Scan>): Promise<boolean> {
  let isReplaced = false
  for (const [file, scan] of scans) {
    const columns = [...scan.types.values()].map(({ name }) => `bit_xor(hash(${name}))`)
    let rest: Scan | undefined
    try {
      await connection.run(`SELECT ${columns.join(', ')} FROM ${scan.rows([scan.path])}`)
      if (!isGrownText(file)) continue
    } catch (error) {
      if (isShortage(error)) throw error
      if (file.format === 'parquet') rest = withoutDescriptive(scan, columnsOf(file))
      if (file.format === 'parquet' && rest === undefined) throw unreadable(file, error, 'Parquet')
    }
    isReplaced = true
    if (rest === undefined) scans.delete(file)
    else scans.set(file, rest)
  }
  return isReplaced
}

/** The text files to be read by lines: with a row that is not valid, with a line that lacks a key, or that have grown. */
async function findSuspects(
  connection: DuckDBConnection,
  files: readonly DayFile[],
  scans: ReadonlyMap<RawFile, Scan>,
): Promise<RawFile[]> {
  const { rejected, doubtful } = await readRow(connection, 'load.sql#odd-groups', oddRow)
  const rejecting = rejected ? await readRows(connection, 'load.sql#rejected-files', fileRow) : []
  const suspects = rejecting.flatMap(({ file }) => files[file]?.file ?? [])
  for (const [file, { lacksKeys }] of scans) {
    const asked = doubtful && lacksKeys !== undefined ? await connection.runAndReadAll(lacksKeys) : undefined
    if (isGrownText(file) || (asked?.currentRowCount ?? 0) > 0) suspects.push(file)
  }
  return suspects
}

/** Gives the texts that name apps their ids, and stores who named them first. */
async function nameGroups(connection: DuckDBConnection): Promise<void> {
  const rows = await readRows(connection, 'load.sql#texts', appTextRow)
  await nameApps(connection, rows)
  if (rows.length > 0) await execute(connection, 'load.sql#named-apps')
}

/** @throws DataError with an id that more than half of a day's rows share. */
async function findRepeats(connection: DuckDBConnection): Promise<void> {
  await execute(connection, 'load.sql#repeated-ids')
  const [shared] = await readRows(connection, 'load.sql#shared-ids', messageRow)
  if (shared !== undefined) throw new DataError(shared.message)
  await execute(connection, 'load.sql#repeats')
}

/** Adds the groups up, unless each of them is an app and a model of its own. */
async function addUp(connection: DuckDBConnection, batch: Batch): Promise<void> {
  await execute(connection, 'load.sql#valid-rows')
  const isApart = isByApp(batch) && (await readRow(connection, 'load.sql#groups-apart', apartRow)).apart
  await execute(connection, isApart ? 'load.sql#groups-as-counted' : 'load.sql#counted')
  await execute(connection, 'load.sql#totals')
}
