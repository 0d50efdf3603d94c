/**
 * What a night takes over from the nights before it: the rows of app_daily up to the end of a month, as they stand in
 * the two large files of a snapshot. `DATA_DIR/kept/<id>/` holds these settled files, `<id>` being the run that began them, and
 * the ledger in the warehouse says what they were made from. They only save work: what does not hold any more is
 * forgotten, and written anew from the warehouse, row for row and, as Parquet, byte for byte the same.
 */
import { constants, copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { UTCDate } from '@date-fns/utc'
import { startOfMonth } from 'date-fns/startOfMonth'
import { z } from 'zod'
import { quickChecksum } from '../bundle/checksums.ts'
import { DAYS_FILE, appendMonths } from '../bundle/months.ts'
import { addDays, snapshotId, utcDay } from '../contract/calendar.ts'
import { SNAPSHOT_FILE } from '../contract/files.ts'
import { syncToDisk } from './durable-file.ts'
import type { Run } from '../stages/stage.ts'
import { execute, readRow, readRows, transaction } from '../duckdb/statements.ts'

/** Folder of the settled files in DATA_DIR, by the name it had first. */
const SETTLED_FOLDER = 'kept'

/** Days after which a month that is over is taken for settled: most late data and corrections come before. */
const SETTLED_AFTER_DAYS = 7

const ledgerRow = z.object({
  id: z.string(),
  shape: z.string(),
  database_through: z.string(),
  parquet_through: z.string().nullable(),
  checksums: z.string().nullable(),
})
const staleRow = z.object({ stale: z.boolean() })

/** Files that hold every row of app_daily up to the last settled day. */
export type SettledFiles = {
  /** Identifier of the run that began them. */
  readonly id: string
  /** Their last day, the last of a month, `YYYY-MM-DD`. */
  readonly through: string
  readonly database: string
  readonly parquet: string
}

/** The last day of the newest month that is settled, where the data reaches to `dataThrough`. */
export function settledThrough(dataThrough: string): string {
  const unsettled = new UTCDate(addDays(dataThrough, 1 - SETTLED_AFTER_DAYS))
  return addDays(utcDay(startOfMonth(unsettled)), -1)
}

/**
 * The settled files, if they are whole and hold what would be written today; else they are forgotten.
 * @param shape whatever besides the rows decides what is written of them.
 */
export async function findSettledFiles(
  run: Run,
  { shape, dataThrough }: { readonly shape: string; readonly dataThrough: string },
): Promise<SettledFiles | undefined> {
  const ledger = await readLedger(run)
  if (ledger?.shape === shape && ledger.database_through <= settledThrough(dataThrough)) {
    const files = filesIn(run, ledger.id, ledger.database_through)
    const complete = ledger.parquet_through === files.through
    if (complete && !(await isStale(run, files)) && areWhole(run, files, ledger.checksums)) return files
  }
  await forgetSettledFiles(run)
  return undefined
}

/** Removes the settled files: the next snapshot is written from the warehouse alone. */
export async function forgetSettledFiles(run: Run): Promise<void> {
  // The files first: they may be what fills the disk.
  rmSync(settledFolder(run), { recursive: true, force: true })
  await execute(run.connection, 'settled/forget.sql')
}

/**
 * Keeps the attached snapshot, which holds the rows of app_daily up to `through` and nothing else, for the nights to
 * come; `completeSettledFiles` does the rest.
 * @param before the files so far; the Parquet file is carried on.
 */
export async function beginSettledFiles(
  run: Run,
  {
    shape,
    through,
    before,
  }: { readonly shape: string; readonly through: string; readonly before: SettledFiles | undefined },
): Promise<void> {
  const files = filesIn(run, snapshotId(run.asOf), through)
  mkdirSync(folderOf(run, files.id), { recursive: true })
  await run.connection.run('CHECKPOINT snapshot')
  takeOver(join(run.buildFolder, SNAPSHOT_FILE), files.database)
  if (before !== undefined) renameSync(before.parquet, files.parquet)
  await transaction(run.connection, async () => {
    await execute(run.connection, 'settled/forget.sql')
    await execute(run.connection, 'settled/enter.sql', {
      id: files.id,
      shape,
      database_through: through,
      parquet_through: before?.through ?? null,
    })
    await execute(run.connection, 'settled/content.sql')
  })
}

/**
 * Carries the Parquet file on as far as the database goes, once the snapshot is proven.
 * @param firstDay the first day of the attached snapshot.
 * @returns the files as they are now; undefined when there are none yet.
 */
export async function completeSettledFiles(run: Run, firstDay: string): Promise<SettledFiles | undefined> {
  const ledger = await readLedger(run)
  if (ledger === undefined) return undefined
  const { id, database_through: to, parquet_through } = ledger
  const files = filesIn(run, id, to)
  if (parquet_through === to) return files
  const from = parquet_through === null ? firstDay : addDays(parquet_through, 1)
  await appendMonths(run.connection, files.parquet, { from, to })
  seal(run, files)
  await execute(run.connection, 'settled/complete.sql', { checksums: checksumsOf(files) })
  return files
}

/** Copies a file; where the file system can, both share what they have in common. */
export function takeOver(path: string, target: string): void {
  copyFileSync(path, target, constants.COPYFILE_FICLONE)
}

/** Makes the files survive a power cut, and removes those they replace. */
function seal(run: Run, { id }: SettledFiles): void {
  const folder = folderOf(run, id)
  for (const name of readdirSync(folder)) syncToDisk(join(folder, name))
  syncToDisk(folder)
  for (const other of readdirSync(settledFolder(run))) {
    if (other !== id) rmSync(folderOf(run, other), { recursive: true })
  }
}

async function readLedger({ connection }: Run): Promise<z.infer<typeof ledgerRow> | undefined> {
  const [row] = await readRows(connection, 'settled/ledger.sql', ledgerRow)
  return row
}

async function isStale({ connection }: Run, { through }: SettledFiles): Promise<boolean> {
  const { stale } = await readRow(connection, 'settled/stale.sql', staleRow, { through })
  return stale
}

/** Whether the files are still what they were when they were completed. */
function areWhole(run: Run, files: SettledFiles, checksums: string | null): boolean {
  const there = [files.database, files.parquet].every((path) => existsSync(path))
  if (there && checksumsOf(files) === checksums) return true
  run.effects.progress.note(
    `What is kept in ${folderOf(run, files.id)} is damaged, so everything is written anew`,
  )
  return false
}

function checksumsOf({ database, parquet }: SettledFiles): string {
  return [database, parquet].map(quickChecksum).join(' ')
}

function settledFolder({ config }: Run): string {
  return join(config.dataDir, SETTLED_FOLDER)
}

function folderOf(run: Run, id: string): string {
  return join(settledFolder(run), id)
}

function filesIn(run: Run, id: string, through: string): SettledFiles {
  const folder = folderOf(run, id)
  return { id, through, database: join(folder, SNAPSHOT_FILE), parquet: join(folder, DAYS_FILE) }
}
