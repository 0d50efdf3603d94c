/** The tables of a snapshot as Parquet and CSV files. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { join } from 'node:path'
import { SPREADSHEET_FORMULA } from '../contract/dataset.ts'
import { identifier, literal } from '../duckdb/sql-values.ts'
import { measureFile } from './checksums.ts'
import type { FileFacts } from './checksums.ts'
import type { DescribedTable, Description, Field } from './description.ts'
import { FILE_FORMATS } from './tables.ts'
import type { FileFormat } from './tables.ts'

/** Separates the items of a list in a CSV cell. */
const LIST_DELIMITER = '|'

/** A file with the rows of a table, or with the rows of one month. */
export type TableFile = FileFacts & {
  readonly table: DescribedTable
  readonly format: FileFormat
  /** Month of a partition: `YYYY-MM`. */
  readonly month?: string
  /** Fingerprint of a partition: hash of its rows and of how they are written. */
  readonly fingerprint?: string
  /** Whether the previous snapshot has the same partition. */
  readonly isReused?: boolean
}

/**
 * Writes the files of a described table of the attached database `snapshot` into `folder`. The same table gives the same
 * bytes.
 */
export async function writeTable(
  connection: DuckDBConnection,
  description: Description,
  { table, folder }: { readonly table: DescribedTable; readonly folder: string },
): Promise<TableFile[]> {
  const files: TableFile[] = []
  for (const format of FILE_FORMATS) {
    const name = `${table.name}.${format}`
    const options = format === 'csv' ? '(FORMAT csv, HEADER)' : parquetOptions(aboutSnapshot(description))
    await connection.run(`COPY (${selectRows(table, format)}) TO ${literal(join(folder, name))} ${options}`)
    files.push({ ...measureFile(folder, name), table, format })
  }
  return files
}

function selectRows({ name, fields }: DescribedTable, format: FileFormat): string {
  const from = `FROM snapshot.${identifier(name)}`
  return format === 'parquet' ? from : `SELECT ${fields.map(csvCell).join(', ')} ${from}`
}

/**
 * The options of DuckDB's COPY for Parquet.
 * @param about metadata inside the file.
 */
export function parquetOptions(about: Readonly<Record<string, string>>): string {
  const entries = Object.entries(about).map(([key, value]) => `${key}: ${literal(value)}`)
  return `(FORMAT parquet, COMPRESSION zstd, KV_METADATA {${entries.join(', ')}})`
}

function csvCell({ name, type }: Field): string {
  const column = identifier(name)
  return `${csvValue(column, type)} AS ${column}`
}

function csvValue(column: string, type: string): string {
  switch (type) {
    case 'VARCHAR':
      return `CASE WHEN regexp_matches(${column}, '${SPREADSHEET_FORMULA}') THEN '''' || ${column} ELSE ${column} END`
    case 'VARCHAR[]':
      return `array_to_string(${column}, '${LIST_DELIMITER}')`
    case 'TIMESTAMP WITH TIME ZONE':
      return `strftime(${column} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ')`
    default:
      return column
  }
}

function aboutSnapshot({ meta, snapshot, version }: Description): Readonly<Record<string, string>> {
  return {
    snapshot,
    version,
    as_of: meta.as_of,
    data_through: meta.data_through,
    publisher: meta.publisher,
    license: meta.licence,
    license_url: meta.licence_url,
    attribution: meta.attribution,
    sources: meta.sources ?? '',
    comparability: meta.comparability,
  }
}
