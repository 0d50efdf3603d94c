/**
 * The stage bundle: writes the tables of the checked snapshot as Parquet and CSV, closes the DuckDB file, and writes the
 * texts, the checksums and the record (CONTRACT 4.6, 8).
 */
import { join } from 'node:path'
import { describeSnapshot, isMonthly, type Description } from '../bundle/description.ts'
import { writeMonths } from '../bundle/months.ts'
import { writeTable, type TableFile } from '../bundle/tables.ts'
import { writeTexts } from '../bundle/texts.ts'
import { pluralize } from '../program/terminal.ts'
import { listSnapshots } from '../snapshot/list.ts'
import { recordOf } from '../snapshot/records.ts'
import type { Run, StageResult } from './stage.ts'

/** Writes the files that stand beside the DuckDB file of the snapshot in the build folder. */
export async function bundle(run: Run): Promise<StageResult> {
  const description = await describeSnapshot(run.connection, run.asOf, run.config.publicUrl)
  const tables = await writeTables(run, description)
  // From here on the DuckDB file does not change, and its checksum holds.
  await run.connection.run('USE warehouse; CHECKPOINT snapshot; DETACH snapshot')
  const files = writeTexts(description, tables, run.buildFolder)
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const months = tables.filter(({ table }) => table.name === 'app_daily')
  const reused = months.filter(({ isReused }) => isReused)
  return {
    summary: `${pluralize(files.length, 'file')}, ${(bytes / 1e6).toFixed(1)} MB; ${reused.length} of ${pluralize(months.length, 'month')} reused`,
    facts: { files: files.length, bytes, months: months.length, months_reused: reused.length },
  }
}

/** Writes the tables; months that did not change are those of the newest published snapshot. */
async function writeTables(run: Run, description: Description): Promise<TableFile[]> {
  const { connection, buildFolder: folder, snapshotsFolder, config } = run
  const newest = listSnapshots(config.dataDir).at(-1)
  const filesOf = (id: string) => recordOf(config.dataDir, id)?.files ?? []
  const before =
    newest === undefined ? undefined : { folder: join(snapshotsFolder, newest), files: filesOf(newest) }
  const files = await Array.fromAsync(description.tables, (table) =>
    isMonthly(table)
      ? writeMonths(connection, table, { folder, before })
      : writeTable(connection, description.meta, { table, folder }),
  )
  return files.flat()
}
