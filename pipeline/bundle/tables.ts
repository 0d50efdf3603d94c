/** The files of the small tables: Parquet and CSV. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { join } from 'node:path'
import { LICENCE, SPREADSHEET_FORMULA } from '../contract/dataset.ts'
import type { PublishedFile } from '../contract/snapshot-record.ts'
import { identifier, literal } from '../duckdb/sql-values.ts'
import { measureFile } from '../snapshot/verify.ts'
import { FILE_FORMATS, type DescribedTable, type Description, type Field } from './description.ts'

/** A file with the rows of a table, or with the rows of one month. */
export type TableFile = PublishedFile & {
  readonly table: DescribedTable
  /** Month of a partition: `YYYY-MM`. */
  readonly month?: string
  /** Whether the previous snapshot has the same partition. */
  readonly isReused?: boolean
}

/** Writes the files of a table of the attached database `snapshot` into `folder`. The same table gives the same bytes. */
export async function writeTable(
  connection: DuckDBConnection,
  { attribution }: Description['meta'],
  { table, folder }: { readonly table: DescribedTable; readonly folder: string },
): Promise<TableFile[]> {
  const from = `FROM snapshot.${identifier(table.name)}`
  const statements = {
    parquet: [from, parquetOptions({ attribution })],
    csv: [`SELECT ${table.fields.map(csvCell).join(', ')} ${from}`, '(FORMAT csv, HEADER)'],
  } as const
  return await Array.fromAsync(FILE_FORMATS, async (format) => {
    const name = `${table.name}.${format}`
    const [rows, options] = statements[format]
    await connection.run(`COPY (${rows}) TO ${literal(join(folder, name))} ${options}`)
    return { ...measureFile(folder, name), table }
  })
}

/** The options of DuckDB's COPY for Parquet, with the licence and these texts as metadata of the file. */
export function parquetOptions(about: Readonly<Record<string, string>> = {}): string {
  const texts = Object.entries({ license: LICENCE.name, ...about }).map(
    ([key, text]) => `${key}: ${literal(text)}`,
  )
  return `(FORMAT parquet, COMPRESSION zstd, KV_METADATA {${texts.join(', ')}})`
}

/** A list is separated by `|`, and a text that spreadsheets read as a formula has an apostrophe before it. */
function csvCell({ name, type }: Field): string {
  const column = identifier(name)
  const values: Readonly<Record<string, string>> = {
    VARCHAR: `CASE WHEN regexp_matches(${column}, '${SPREADSHEET_FORMULA}') THEN '''' || ${column} ELSE ${column} END`,
    'VARCHAR[]': `array_to_string(${column}, '|')`,
    'TIMESTAMP WITH TIME ZONE': `strftime(${column} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ')`,
  }
  return `${values[type] ?? column} AS ${column}`
}
