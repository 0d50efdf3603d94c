/** Writes the files beside the DuckDB file of a snapshot. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CROISSANT_FILE, SNAPSHOT_FILE } from '../contract/files.ts'
import { RECORD_FILE, SUMS_FILE } from '../contract/snapshot-record.ts'
import { measureFile, sumsText } from './checksums.ts'
import type { FileFacts } from './checksums.ts'
import { croissant } from './croissant.ts'
import type { Description } from './description.ts'
import { writeMonths } from './months.ts'
import type { Published } from './months.ts'
import { recordOfBundle } from './record.ts'
import { writeTable } from './table-files.ts'
import type { TableFile } from './table-files.ts'
import { isMonthly } from './tables.ts'
import { licenceText, readmeText } from './texts.ts'

/**
 * Writes the tables of the attached database `snapshot` into `folder`, as Parquet and CSV.
 * @param before the previous snapshot, for shared months; undefined if there is none.
 */
export async function writeTables(
  connection: DuckDBConnection,
  description: Description,
  { folder, before }: { readonly folder: string; readonly before: Published | undefined },
): Promise<TableFile[]> {
  const files: TableFile[] = []
  for (const table of description.tables) {
    const written = isMonthly(table)
      ? await writeMonths(connection, table, { folder, before })
      : await writeTable(connection, description, { table, folder })
    files.push(...written)
  }
  return files
}

/**
 * Writes the descriptions of the tables and of the closed DuckDB file into `folder`, the checksums and the snapshot's record
 * last; returns all files that the checksums list.
 */
export function writeTexts(
  description: Description,
  tables: readonly TableFile[],
  folder: string,
): readonly FileFacts[] {
  const database = measureFile(folder, SNAPSHOT_FILE)
  const texts = { 'README.md': readmeText(description), LICENSE: licenceText(description) }
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text)
  const files = [database, ...tables, ...Object.keys(texts).map((name) => measureFile(folder, name))]
  writeFileSync(join(folder, SUMS_FILE), sumsText(files))
  writeFileSync(join(folder, CROISSANT_FILE), jsonText(croissant(description, database, tables)))
  writeFileSync(join(folder, RECORD_FILE), jsonText(recordOfBundle(description, files, folder)))
  return files
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
