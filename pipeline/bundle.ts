/**
 * Stage 5: hands the checked snapshot over as files. Its tables are written as Parquet and CSV, the DuckDB file
 * is closed, and everything is described and summed from one description (CONTRACT 4.6, 8).
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { measureFile, sumsText } from './bundle/checksums.ts'
import type { FileFacts } from './bundle/checksums.ts'
import { croissant } from './bundle/croissant.ts'
import { dataFileNames, dataPackage } from './bundle/data-package.ts'
import { describeSnapshot } from './bundle/description.ts'
import type { Description } from './bundle/description.ts'
import { writeTable } from './bundle/table-files.ts'
import { citationText, licenceText, readmeText } from './bundle/texts.ts'
import { SNAPSHOT_FILE } from './contract.ts'
import type { Run, StageResult } from './stage.ts'

/** Writes the files that stand beside the DuckDB file of the snapshot in the build folder. */
export async function bundle(run: Run): Promise<StageResult> {
  const description = await describeSnapshot(run.connection, {
    asOf: run.asOf,
    publicUrl: run.config.publicUrl,
  })
  for (const table of description.tables) {
    await writeTable(run.connection, description, { table, folder: run.buildFolder })
  }
  await closeSnapshot(run)
  const data = await measureFiles(run, [SNAPSHOT_FILE, ...dataFileNames(description.tables)])
  const texts = writeTexts(run, description, data)
  const files = [...data, ...(await measureFiles(run, texts))]
  writeFileSync(join(run.buildFolder, 'SHA256SUMS'), sumsText(files))
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return {
    summary: `${files.length} files, ${(bytes / 1e6).toFixed(1)} MB`,
    facts: { files: files.length, bytes },
  }
}

/** From here on the DuckDB file is only read: a checksum of it holds. */
async function closeSnapshot({ connection }: Run): Promise<void> {
  await connection.run('USE warehouse')
  await connection.run('CHECKPOINT snapshot')
  await connection.run('DETACH snapshot')
}

async function measureFiles({ buildFolder }: Run, names: readonly string[]): Promise<FileFacts[]> {
  const facts: FileFacts[] = []
  for (const name of names) facts.push(await measureFile(buildFolder, name))
  return facts
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
