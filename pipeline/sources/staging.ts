/**
 * The protocol of staging. Rows that DuckDB does not read in place stand in the temporary table `staged`, as text: `file`
 * and `row` say where a row is from, `fault` why it is none, `payload` its line then; the columns of the input follow, null
 * where a value is missing, and empty where the column `app` names no app.
 *
 * 1. Usage: `staged` has the Arrow files, and the text files that have to be read line by line (count.ts).
 * 2. The registry and an import stage every file; `registry_rows` and the days of an import are decoded from there.
 */
import type { DuckDBAppender, DuckDBConnection } from '@duckdb/node-api'
import { DataError } from '../errors.ts'
import { withAppender } from '../duckdb/appender.ts'
import { literal } from '../duckdb/sql-values.ts'
import { allColumns, isAlternative, isValidated } from './columns.ts'
import type { Columns } from './columns.ts'
import type { RawFile } from './drop-folder.ts'
import { readCsvRows, readJsonLines, textRow } from './formats/documents.ts'
import type { Document, TextRow } from './formats/documents.ts'
import { groupBySchema, parquetRows, readingParquet } from './formats/parquet-file.ts'
import type { SchemaGroup } from './formats/parquet-file.ts'
import { stagedText } from './typed-columns.ts'

/** Creates the empty temporary table `staged`. */
export async function createStagingTable(connection: DuckDBConnection, columns: Columns): Promise<void> {
  const inputs = allColumns(columns).map((column) => `${column} VARCHAR`)
  await connection.run(
    `CREATE OR REPLACE TEMP TABLE staged (file VARCHAR, row BIGINT, fault VARCHAR, payload VARCHAR, ${inputs.join(', ')})`,
  )
}

/**
 * Appends the rows of the files to `staged`.
 * @throws DataError with the file that cannot be read or lacks a required column.
 */
export async function stageFiles(
  connection: DuckDBConnection,
  files: readonly RawFile[],
  columns: Columns,
): Promise<void> {
  const others = files.filter(({ format }) => format !== 'parquet')
  if (others.length > 0) {
    await withAppender(connection, 'staged', async (appender) => {
      for (const file of others) {
        for await (const document of readDocuments(file, columns)) {
          appendRow(appender, file.name, textRow(document, columns))
        }
      }
    })
  }
  const parquet = files.filter(({ format }) => format === 'parquet')
  for (const group of await groupBySchema(connection, parquet, columns)) {
    for (const file of group.files) await stageParquet(connection, file, group, columns)
  }
}

async function* readDocuments(file: RawFile, columns: Columns): AsyncGenerator<Document> {
  if (file.format === 'csv') return yield* readCsvRows(file, columns)
  if (file.format === 'ndjson') return yield* readJsonLines(file)
  // Loads the Arrow library only for Arrow files, which most runs and commands do not read.
  const { readArrowRows } = await import('./formats/arrow-file.ts')
  yield* readArrowRows(file, columns)
}

/** Appends a row to `staged`. */
export function appendRow(
  appender: DuckDBAppender,
  file: string,
  { row, values, fault, payload }: TextRow,
): void {
  appender.appendVarchar(file)
  appender.appendBigInt(BigInt(row))
  for (const text of [fault, payload, ...values]) {
    if (text === null || text === undefined) appender.appendNull()
    else appender.appendVarchar(text)
  }
  appender.endRow()
}

async function stageParquet(
  connection: DuckDBConnection,
  file: RawFile,
  { types }: SchemaGroup,
  columns: Columns,
): Promise<void> {
  const values = allColumns(columns).map((name) => {
    const column = types.get(name)
    const text = column && stagedText(column, columns.lists?.includes(name) === true)
    if (column !== undefined && text === undefined && isValidated(columns, name)) {
      throw new DataError(`${file.name}: the column ${name} is of type ${column.type}, which cannot hold it`)
    }
    if (text === undefined) return 'NULL'
    return isAlternative(columns, name) ? `coalesce(${text}, '')` : text
  })
  await readingParquet(file, () =>
    connection.run(
      `INSERT INTO staged SELECT ${literal(file.name)}, row_number() OVER (), NULL, NULL, ${values.join(', ')}
       FROM ${parquetRows([file])}`,
    ),
  )
}
