/**
 * The protocol of staging. Rows that DuckDB does not read in place stand in the temporary table `staged`, as text: `file`
 * and `row` say where a row is from, `fault` why it is none, `payload` its line then; the columns of the input follow, null
 * where a value is missing, and empty where the column `app` names no app.
 *
 * 1. Usage: `staged` has the Arrow files, and the text files that have to be read line by line (count.ts).
 * 2. The registry and an import stage every file; `registry_rows` and the days of an import are decoded from there.
 */
import type { DuckDBAppender, DuckDBConnection } from '@duckdb/node-api'
import { literal } from '../duckdb/sql-values.ts'
import { withAppender } from '../duckdb/statements.ts'
import { isShortage } from '../errors.ts'
import {
  APP_TEXT,
  LISTS,
  NULLABLE_TEXTS,
  allColumns,
  isValidated,
  missingColumns,
  plainName,
  type Columns,
} from './columns.ts'
import type { RawFile } from './drop-folder.ts'
import { reading } from './formats/bytes.ts'
import { readCsvRows } from './formats/csv.ts'
import { isRecord, readJson, type Document } from './formats/json.ts'
import { readParquetRows, scanParquet, withoutDescriptive } from './formats/parquet.ts'
import { readColumns, type Scan } from './incoming.ts'

/** How text formats write null where the column is text; `without_null_word` in DuckDB. */
const NULL_WORDS: readonly (string | null)[] = ['\\N', 'NULL', 'null', 'NA']

/** Creates the empty temporary table `staged`. */
export async function createStagingTable(connection: DuckDBConnection, columns: Columns): Promise<void> {
  const inputs = allColumns(columns).map((column) => `${column} VARCHAR`)
  await connection.run(
    `CREATE OR REPLACE TEMP TABLE staged (file VARCHAR, row BIGINT, fault VARCHAR, payload VARCHAR, ${inputs.join(', ')})`,
  )
}

/**
 * Appends the rows of the files to `staged`.
 * @param convert makes rows of a document of any columns; without it the files have the columns.
 * @throws DataError with the file that cannot be read or lacks a required column.
 */
export async function stageFiles(
  connection: DuckDBConnection,
  files: readonly RawFile[],
  columns: Columns,
  convert?: (document: Document) => readonly Document[],
): Promise<void> {
  for (const file of files) {
    if (file.format === 'parquet' && convert === undefined) {
      await stageParquet(connection, file, columns)
      continue
    }
    const found = convert === undefined ? columns : { required: [], optional: [] }
    await withAppender(connection, 'staged', async (appender) => {
      for await (const document of readDocuments(connection, file, found)) {
        for (const row of convert?.(document) ?? [document]) appendRow(appender, file, row, columns)
      }
    })
  }
}

async function stageParquet(connection: DuckDBConnection, file: RawFile, columns: Columns): Promise<void> {
  const insert = ({ types, rows, fault = 'NULL' }: Scan) =>
    reading(file, 'Parquet', () =>
      connection.run(
        `INSERT INTO staged
         SELECT
           ${literal(file.name)}, row_number() OVER (), ${fault}, NULL, ${readColumns(file.name, types, columns, 'texts')}
         FROM ${rows([file.path])}`,
      ),
    )
  const scan = await scanParquet(connection, file, columns)
  await insert(scan).catch((error: unknown) => {
    const rest = withoutDescriptive(scan, columns)
    if (rest === undefined || isShortage(error)) throw error
    return insert(rest)
  })
}

/** The documents of a file, in order. */
async function* readDocuments(
  connection: DuckDBConnection,
  file: RawFile,
  columns: Columns,
): AsyncGenerator<Document> {
  if (file.format === 'csv') return yield* readCsvRows(file, columns)
  if (file.format === 'ndjson') return yield* readJson(file)
  if (file.format === 'parquet') return yield* readParquetRows(connection, file)
  // Loads the Arrow library only for Arrow files, which most runs and commands do not read.
  const { readArrowRows } = await import('./formats/arrow.ts')
  yield* readArrowRows(file, columns)
}

function appendRow(
  appender: DuckDBAppender,
  { name: file, format }: RawFile,
  { row, value, ...broken }: Document,
  columns: Columns,
): void {
  const found = Map.groupBy(isRecord(value) ? Object.entries(value) : [], ([name]) => plainName(name))
  const isText = format !== 'parquet' && format !== 'arrow'
  const values = allColumns(columns).map((name) => {
    const text = textOf(found.get(name)?.[0]?.[1], name)
    const known = isText && NULLABLE_TEXTS.includes(name) && NULL_WORDS.includes(text) ? null : text
    return name === APP_TEXT && found.has(name) ? (known ?? '') : known
  })
  const fault = broken.fault ?? faultOf(found, columns) ?? null
  const payload = fault === null ? null : (broken.payload ?? JSON.stringify(value) ?? null)
  appender.appendVarchar(file)
  appender.appendBigInt(BigInt(row))
  for (const text of [fault, payload, ...values]) {
    if (text === null) appender.appendNull()
    else appender.appendVarchar(text)
  }
  appender.endRow()
}

function textOf(value: unknown, name: string): string | null {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || typeof value === 'number') return String(value)
  return Array.isArray(value) && LISTS.includes(name) ? JSON.stringify(value) : null
}

/** The first fault of a document: of its entries by plain name. */
function faultOf(
  found: ReadonlyMap<string, readonly (readonly [string, unknown])[]>,
  columns: Columns,
): string | undefined {
  const [missing] = missingColumns(columns, [...found.keys()])
  if (missing !== undefined) return `the key ${missing} is missing`
  for (const [name, [first, second]] of found) {
    if (first === undefined || !isValidated(columns, name)) continue
    if (second !== undefined) return `the key ${name} stands twice: ${first[0]} and ${second[0]}`
    const [, value] = first
    const isNested = typeof value === 'object' && value !== null
    if (isNested && textOf(value, name) === null) return `${name} is an object or a list, not one value`
  }
  return undefined
}
