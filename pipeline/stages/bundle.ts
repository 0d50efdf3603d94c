/**
 * The stage bundle: hands the checked snapshot over as files. Its tables are written as Parquet and CSV, the DuckDB file
 * is closed, and everything is described and summed from one description (CONTRACT 4.6, 8).
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SUMS_FILE, measureFile, sumsText } from '../bundle/checksums.ts'
import type { FileFacts } from '../bundle/checksums.ts'
import { croissant } from '../bundle/croissant.ts'
import { dataFileNames, dataPackage } from '../bundle/data-package.ts'
import { describeSnapshot } from '../bundle/description.ts'
import type { Description } from '../bundle/description.ts'
import { DAYS_FILE, appendMonths } from '../bundle/months.ts'
import { parquetOptions, writeTable } from '../bundle/table-files.ts'
import { DAYS_TABLE } from '../bundle/tables.ts'
import { citationText, licenceText, readmeText } from '../bundle/texts.ts'
import { addDays } from '../contract/calendar.ts'
import { SNAPSHOT_FILE } from '../contract/files.ts'
import { pluralize } from '../contract/terminal.ts'
import { completeSettledFiles, takeOver } from '../snapshot/settled.ts'
import type { Run, StageResult } from './stage.ts'

/** Writes the files that stand beside the DuckDB file of the snapshot in the build folder. */
export async function bundle(run: Run): Promise<StageResult> {
  const description = await describeSnapshot(run.connection, {
    asOf: run.asOf,
    publicUrl: run.config.publicUrl,
  })
  for (const table of description.tables) {
    if (table.name === DAYS_TABLE) await writeDays(run, description)
    else await writeTable(run.connection, description, { table, folder: run.buildFolder })
  }
  await closeSnapshot(run)
  const data = measureFiles(run, [SNAPSHOT_FILE, ...dataFileNames(description.tables)])
  const texts = writeTexts(run, description, data)
  const files = [...data, ...measureFiles(run, texts)]
  writeFileSync(join(run.buildFolder, SUMS_FILE), sumsText(files))
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return {
    summary: `${pluralize(files.length, 'file')}, ${(bytes / 1e6).toFixed(1)} MB`,
    facts: { files: files.length, bytes },
  }
}

/** Settled days are taken over as they are. */
async function writeDays(run: Run, description: Description): Promise<void> {
  const { first_day, data_through: to } = description.meta
  const path = join(run.buildFolder, DAYS_FILE)
  const settled = await completeSettledFiles(run, first_day)
  if (settled !== undefined) takeOver(settled.parquet, path)
  const from = settled === undefined ? first_day : addDays(settled.through, 1)
  await appendMonths(run.connection, path, { from, to }, parquetOptions(description))
}

/** From here on the DuckDB file is only read: a checksum of it holds. */
async function closeSnapshot({ connection }: Run): Promise<void> {
  await connection.run('USE warehouse')
  await connection.run('CHECKPOINT snapshot')
  await connection.run('DETACH snapshot')
}

function measureFiles({ buildFolder }: Run, names: readonly string[]): FileFacts[] {
  return names.map((name) => measureFile(buildFolder, name))
}

function writeTexts(run: Run, description: Description, data: readonly FileFacts[]): string[] {
  const texts = {
    'datapackage.json': jsonText(dataPackage(description, data)),
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
