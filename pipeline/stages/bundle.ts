/**
 * The stage bundle: writes the tables of the checked snapshot as Parquet and CSV, closes the DuckDB file, and writes
 * descriptions, checksums and the record (CONTRACT 4.6, 8).
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { croissant } from '../bundle/croissant.ts'
import { describeSnapshot, isMonthly, type Description } from '../bundle/description.ts'
import { writeMonths } from '../bundle/months.ts'
import { writeTable, type TableFile } from '../bundle/tables.ts'
import { licenceText, readmeText } from '../bundle/texts.ts'
import { CROISSANT_FILE, SNAPSHOT_FILE } from '../contract/files.ts'
import {
  RECORD_FILE,
  SUMS_FILE,
  snapshotRecordSchema,
  type PublishedFile,
} from '../contract/snapshot-record.ts'
import { pluralize } from '../program/terminal.ts'
import { listSnapshots } from '../snapshot/list.ts'
import { recordOf } from '../snapshot/records.ts'
import { measureFile } from '../snapshot/verify.ts'
import type { Run, StageResult } from './stage.ts'

/** Writes the files that stand beside the DuckDB file of the snapshot in the build folder. */
export async function bundle(run: Run): Promise<StageResult> {
  const description = await describeSnapshot(run.connection, run.asOf, run.config.publicUrl)
  const tables = await writeTables(run, description)
  await closeSnapshot(run)
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
  const { connection, buildFolder: folder, snapshotsFolder } = run
  const { dataDir } = run.config
  const newest = listSnapshots(dataDir).at(-1)
  const filesOf = (id: string) => recordOf(dataDir, id)?.files ?? []
  const before =
    newest === undefined ? undefined : { folder: join(snapshotsFolder, newest), files: filesOf(newest) }
  const files: TableFile[] = []
  for (const table of description.tables) {
    const written = isMonthly(table)
      ? await writeMonths(connection, table, { folder, before })
      : await writeTable(connection, description, { table, folder })
    files.push(...written)
  }
  return files
}

/** Closes the DuckDB file: from here on it does not change, and its checksum holds. */
async function closeSnapshot({ connection }: Run): Promise<void> {
  await connection.run('USE warehouse')
  await connection.run('CHECKPOINT snapshot')
  await connection.run('DETACH snapshot')
}

/**
 * Writes the descriptions of the tables and of the closed DuckDB file, the checksums, and the snapshot's record last; returns
 * all files that the checksums list.
 */
function writeTexts(
  description: Description,
  tables: readonly TableFile[],
  folder: string,
): readonly PublishedFile[] {
  const database = measureFile(folder, SNAPSHOT_FILE)
  const texts = { 'README.md': readmeText(description), LICENSE: licenceText(description) }
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text)
  const files = [database, ...tables, ...Object.keys(texts).map((name) => measureFile(folder, name))]
  // In the form of `sha256sum -c`.
  writeFileSync(join(folder, SUMS_FILE), files.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(''))
  writeFileSync(join(folder, CROISSANT_FILE), jsonText(croissant(description, database, tables)))
  const { snapshot: id, meta } = description
  const facts = { id, ...meta, files: [...files, measureFile(folder, SUMS_FILE)] }
  // The schema leaves out what the record does not keep.
  writeFileSync(join(folder, RECORD_FILE), jsonText(snapshotRecordSchema.parse(facts)))
  return files
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
