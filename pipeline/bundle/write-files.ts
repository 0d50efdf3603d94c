/** Writes the files beside the DuckDB file of a snapshot, and its record. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CROISSANT_FILE, SNAPSHOT_FILE } from '../contract/files.ts'
import {
  RECORD_FILE,
  SUMS_FILE,
  snapshotRecordSchema,
  type PublishedFile,
  type SnapshotRecord,
} from '../contract/snapshot-record.ts'
import { measureFile } from './checksums.ts'
import { croissant } from './croissant.ts'
import { isMonthly, type Description } from './description.ts'
import { writeMonths, type Published } from './months.ts'
import { writeTable, type TableFile } from './tables.ts'
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
): readonly PublishedFile[] {
  const database = measureFile(folder, SNAPSHOT_FILE)
  const texts = { 'README.md': readmeText(description), LICENSE: licenceText(description) }
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text)
  const files = [database, ...tables, ...Object.keys(texts).map((name) => measureFile(folder, name))]
  // In the form of `sha256sum -c`.
  writeFileSync(join(folder, SUMS_FILE), files.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(''))
  writeFileSync(join(folder, CROISSANT_FILE), jsonText(croissant(description, database, tables)))
  const record = recordOf(description, [...files, measureFile(folder, SUMS_FILE)])
  writeFileSync(join(folder, RECORD_FILE), jsonText(record))
  return files
}

/** The record of the snapshot: its facts, and every file with its checksum (CONTRACT 4.6). */
function recordOf({ snapshot: id, meta }: Description, files: readonly PublishedFile[]): SnapshotRecord {
  // The schema leaves out what the record does not keep.
  return snapshotRecordSchema.parse({ id, ...meta, files })
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
