/**
 * What a night takes over from the nights before it: the rows of app_daily up to the end of a month, as they stand in
 * the two large files of a snapshot. `DATA_DIR/kept/<id>/` holds these files, `<id>` being the run that began them, and
 * the ledger in the warehouse says what they were made from. They only save work: what does not hold any more is
 * forgotten, and written anew from the warehouse, row for row and, as Parquet, byte for byte the same.
 */
import { constants, copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { UTCDate } from '@date-fns/utc'
import { startOfMonth } from 'date-fns/startOfMonth'
import { z } from 'zod'
import { quickChecksum } from './bundle/checksums.ts'
import { DAYS_FILE, appendMonths } from './bundle/months.ts'
import { SNAPSHOT_FILE, addDays, snapshotId, utcDay } from './contract.ts'
import { syncToDisk } from './durable-file.ts'
import type { Run } from './stage.ts'
import { execute, readRow, readRows, transaction } from './statements.ts'

/** Folder of the kept files in DATA_DIR. */
const KEPT_FOLDER = 'kept'

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

/** Files that hold every row of app_daily up to a day. */
export type Kept = {
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
 * The kept files, if they are whole and hold what would be written today; else they are forgotten.
 * @param shape whatever besides the rows decides what is kept of them.
 */
export async function findKept(
  run: Run,
  { shape, dataThrough }: { readonly shape: string; readonly dataThrough: string },
): Promise<Kept | undefined> {
  const ledger = await readLedger(run)
  if (ledger?.shape === shape && ledger.database_through <= settledThrough(dataThrough)) {
    const kept = keptIn(run, ledger.id, ledger.database_through)
    const complete = ledger.parquet_through === kept.through
    if (complete && !(await isStale(run, kept)) && areWhole(run, kept, ledger.checksums)) return kept
  }
  await forgetKept(run)
  return undefined
}

/** Removes the kept files: the next snapshot is written from the warehouse alone. */
export async function forgetKept(run: Run): Promise<void> {
  // The files first: they may be what fills the disk.
  rmSync(keptFolder(run), { recursive: true, force: true })
  await execute(run.connection, 'kept/forget.sql')
}

/**
 * Keeps the attached snapshot, which holds the rows of app_daily up to `through` and nothing else, for the nights to
 * come; `keepParquet` completes it.
 * @param before what was kept so far; its Parquet file is carried on.
 */
export async function keepDatabase(
  run: Run,
  {
    shape,
    through,
    before,
  }: { readonly shape: string; readonly through: string; readonly before: Kept | undefined },
): Promise<void> {
  const kept = keptIn(run, snapshotId(run.asOf), through)
  mkdirSync(folderOf(run, kept.id), { recursive: true })
  await run.connection.run('CHECKPOINT snapshot')
  takeOver(join(run.buildFolder, SNAPSHOT_FILE), kept.database)
  if (before !== undefined) renameSync(before.parquet, kept.parquet)
  await transaction(run.connection, async () => {
    await execute(run.connection, 'kept/forget.sql')
    await execute(run.connection, 'kept/enter.sql', {
      id: kept.id,
      shape,
      database_through: through,
      parquet_through: before?.through ?? null,
    })
    await execute(run.connection, 'kept/content.sql')
  })
}

/**
 * Carries the kept Parquet file on as far as the kept database goes, once the snapshot is proven.
 * @param firstDay the first day of the attached snapshot.
 * @returns what is kept now; undefined when there is nothing yet.
 */
export async function keepParquet(run: Run, firstDay: string): Promise<Kept | undefined> {
  const ledger = await readLedger(run)
  if (ledger === undefined) return undefined
  const { id, database_through: to, parquet_through } = ledger
  const kept = keptIn(run, id, to)
  if (parquet_through === to) return kept
  const from = parquet_through === null ? firstDay : addDays(parquet_through, 1)
  await appendMonths(run.connection, kept.parquet, { from, to })
  seal(run, kept)
  await execute(run.connection, 'kept/complete.sql', { checksums: checksumsOf(kept) })
  return kept
}

/** How far the files go that are kept now, and whether the run itself began them; undefined when there are none. */
export async function keptDays(run: Run): Promise<{ through: string; isNew: boolean } | undefined> {
  const ledger = await readLedger(run)
  return ledger && { through: ledger.database_through, isNew: ledger.id === snapshotId(run.asOf) }
}

/** Copies a file; where the file system can, both share what they have in common. */
export function takeOver(path: string, target: string): void {
  copyFileSync(path, target, constants.COPYFILE_FICLONE)
}

/** Makes the files survive a power cut, and removes those they replace. */
function seal(run: Run, { id }: Kept): void {
  const folder = folderOf(run, id)
  for (const name of readdirSync(folder)) syncToDisk(join(folder, name))
  syncToDisk(folder)
  for (const other of readdirSync(keptFolder(run))) {
    if (other !== id) rmSync(folderOf(run, other), { recursive: true })
  }
}

async function readLedger({ connection }: Run): Promise<z.infer<typeof ledgerRow> | undefined> {
  const [row] = await readRows(connection, 'kept/ledger.sql', ledgerRow)
  return row
}

async function isStale({ connection }: Run, { through }: Kept): Promise<boolean> {
  const { stale } = await readRow(connection, 'kept/stale.sql', staleRow, { through })
  return stale
}

/** Whether the files are still what they were when they were kept. */
function areWhole(run: Run, kept: Kept, checksums: string | null): boolean {
  const there = [kept.database, kept.parquet].every((path) => existsSync(path))
  if (there && checksumsOf(kept) === checksums) return true
  run.effects.progress.note(
    `What is kept in ${folderOf(run, kept.id)} is damaged, so everything is written anew`,
  )
  return false
}

function checksumsOf({ database, parquet }: Kept): string {
  return [database, parquet].map(quickChecksum).join(' ')
}

function keptFolder({ config }: Run): string {
  return join(config.dataDir, KEPT_FOLDER)
}

function folderOf(run: Run, id: string): string {
  return join(keptFolder(run), id)
}

function keptIn(run: Run, id: string, through: string): Kept {
  const folder = folderOf(run, id)
  return { id, through, database: join(folder, SNAPSHOT_FILE), parquet: join(folder, DAYS_FILE) }
}
