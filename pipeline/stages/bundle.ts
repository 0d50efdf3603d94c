/**
 * The stage bundle: hands the checked snapshot over as files. Its tables are written as Parquet and CSV, the DuckDB file
 * is closed, and everything is described and summed from one description (CONTRACT 4.6, 8).
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { measureFile, sumsText } from '../bundle/checksums.ts'
import { croissant } from '../bundle/croissant.ts'
import type { DataFile, TableFile } from '../bundle/data-file.ts'
import { DESCRIPTOR_FILE, dataPackage } from '../bundle/data-package.ts'
import { describeSnapshot } from '../bundle/description.ts'
import type { Description } from '../bundle/description.ts'
import { writeMonths } from '../bundle/months.ts'
import { writeTable } from '../bundle/table-files.ts'
import { citationText, licenceText, readmeText } from '../bundle/texts.ts'
import { DAYS_FOLDER, SNAPSHOT_FILE } from '../contract/files.ts'
import { SUMS_FILE } from '../contract/snapshot-record.ts'
import { listSnapshots } from '../snapshot/list.ts'
import { pluralize } from '../contract/terminal.ts'
import type { Run, StageResult } from './stage.ts'

/** Writes the files that stand beside the DuckDB file of the snapshot in the build folder. */
export async function bundle(run: Run): Promise<StageResult> {
  const description = await describeSnapshot(run.connection, {
    asOf: run.asOf,
    publicUrl: run.config.publicUrl,
  })
  const tables = await writeTables(run, description)
  await closeSnapshot(run)
  const data = [{ ...measureFile(run.buildFolder, SNAPSHOT_FILE), format: 'duckdb' } as const, ...tables]
  const texts = writeTexts(run, description, data)
  const files = [...data, ...texts.map((name) => measureFile(run.buildFolder, name))]
  writeFileSync(join(run.buildFolder, SUMS_FILE), sumsText(files))
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const months = tables.filter(({ month }) => month !== undefined)
  const reused = months.filter(({ isReused }) => isReused)
  return {
    summary: `${pluralize(files.length, 'file')}, ${(bytes / 1e6).toFixed(1)} MB; ${reused.length} of ${pluralize(months.length, 'month')} reused`,
    facts: { files: files.length, bytes, months: months.length, months_reused: reused.length },
  }
}

async function writeTables(run: Run, description: Description): Promise<TableFile[]> {
  const { connection, buildFolder: folder, snapshotsFolder } = run
  const newest = listSnapshots(run.config.dataDir).at(-1)
  const before = newest && join(snapshotsFolder, newest)
  const files: TableFile[] = []
  for (const table of description.tables) {
    const written =
      table.name === DAYS_FOLDER
        ? await writeMonths(connection, table, { folder, before })
        : await writeTable(connection, description, { table, folder })
    files.push(...written)
  }
  return files
}

/** From here on the DuckDB file is only read: a checksum of it holds. */
async function closeSnapshot({ connection }: Run): Promise<void> {
  await connection.run('USE warehouse')
  await connection.run('CHECKPOINT snapshot')
  await connection.run('DETACH snapshot')
}

function writeTexts(run: Run, description: Description, data: readonly DataFile[]): string[] {
  const texts = {
    [DESCRIPTOR_FILE]: jsonText(dataPackage(description, data)),
    'croissant.json': jsonText(croissant(description, data)),
    'CITATION.cff': citationText(description),
    'README.md': readmeText(description),
    LICENSE: licenceText(description),
  }
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(run.buildFolder, name), text)
  return Object.keys(texts)
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
