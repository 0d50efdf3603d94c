/**
 * The stage bundle: writes the tables of the checked snapshot as Parquet and CSV, closes the DuckDB file, and writes
 * descriptions and checksums (CONTRACT 4.6, 8).
 */
import { join } from 'node:path'
import { describeSnapshot } from '../bundle/description.ts'
import { writeTables, writeTexts } from '../bundle/write-files.ts'
import { listSnapshots } from '../snapshot/list.ts'
import { recordOf } from '../snapshot/records.ts'
import { pluralize } from '../program/terminal.ts'
import type { Run, StageResult } from './stage.ts'

/** Writes the files that stand beside the DuckDB file of the snapshot in the build folder. */
export async function bundle(run: Run): Promise<StageResult> {
  const { connection, buildFolder: folder, snapshotsFolder } = run
  const description = await describeSnapshot(connection, { asOf: run.asOf, publicUrl: run.config.publicUrl })
  const newest = listSnapshots(run.config.dataDir).at(-1)
  const before =
    newest === undefined
      ? undefined
      : { folder: join(snapshotsFolder, newest), files: recordOf(run.config.dataDir, newest)?.files ?? [] }
  const tables = await writeTables(connection, description, { folder, before })
  await closeSnapshot(run)
  const files = writeTexts(description, tables, folder)
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const months = tables.filter(({ table }) => table.name === 'app_daily')
  const reused = months.filter(({ isReused }) => isReused)
  return {
    summary: `${pluralize(files.length, 'file')}, ${(bytes / 1e6).toFixed(1)} MB; ${reused.length} of ${pluralize(months.length, 'month')} reused`,
    facts: { files: files.length, bytes, months: months.length, months_reused: reused.length },
  }
}

/** Closes the DuckDB file: from here on it does not change, and its checksum holds. */
async function closeSnapshot({ connection }: Run): Promise<void> {
  await connection.run('USE warehouse')
  await connection.run('CHECKPOINT snapshot')
  await connection.run('DETACH snapshot')
}
