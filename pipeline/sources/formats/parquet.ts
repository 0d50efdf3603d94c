/** Reads Parquet by DuckDB; the footer says which columns a file has. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { identifier, literal } from '../../duckdb/sql-values.ts'
import { queryRows } from '../../duckdb/statements.ts'
import { DataError } from '../../errors.ts'
import { isValidated, matchColumns, type Columns } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import { NO_TEXT, named, pathList, type Scan, type TypedColumn } from '../incoming.ts'
import { reading } from './bytes.ts'
import { parseLine, type Document } from './json.ts'

/** An element of a file's schema, a column or a part of one. */
const elementRow = z.object({ name: z.string(), type: z.string(), children: z.int() })
type SchemaElement = z.infer<typeof elementRow>

/** A folder named `app_id=7` above the files is not a column. */
function parquetRows(paths: readonly string[]): string {
  return `read_parquet(${pathList(paths)}, hive_partitioning = false)`
}

/**
 * How DuckDB reads a file.
 * @throws DataError with the file if it cannot be read, lacks a column, or has one twice.
 */
export async function scanParquet(
  connection: DuckDBConnection,
  file: RawFile,
  columns: Columns,
): Promise<Scan> {
  const found = topLevel(await readSchema(connection, file))
  const names = found.map(({ name }) => name)
  const types = new Map<string, TypedColumn>()
  let fault = 'NULL'
  for (const [column, position] of matchColumns(file.name, names, columns)) {
    const { name = column, type = 'VARCHAR' } = found[position] ?? {}
    const value = named(column, asText({ name: identifier(name), type }))
    // Other texts are validated as such anyway.
    if (column === 'request_id' && type === 'BLOB') fault = `id_violation(${value.name})`
    types.set(column, value)
  }
  const scan = { path: file.path, types, fault }
  // A column with DuckDB's name for the file or the row hides it: then no other file is read with this one.
  return names.some((name) => /^file_(?:index|row_number)$/i.test(name))
    ? { ...scan, rows: () => parquetRows([file.path]), row: 'row_number() OVER ()' }
    : { ...scan, rows: parquetRows, row: 'r.file_row_number + 1' }
}

/** The scan without the columns that decide nothing, where one of those cannot be read; undefined if it has none. */
export function withoutDescriptive(scan: Scan, columns: Columns): Scan | undefined {
  const types = new Map([...scan.types].filter(([column]) => isValidated(columns, column)))
  return types.size === scan.types.size ? undefined : { ...scan, types }
}

/**
 * JSON is the value that it says, without quotes. Bytes without a type are text, as which Hive, Impala and older Spark write
 * it. Bytes that are no UTF-8 become a text that no validated column may hold.
 */
function asText({ name, type }: TypedColumn): TypedColumn {
  if (type === 'JSON') return { name: `(${name} ->> '$')`, type: 'VARCHAR' }
  if (type !== 'BLOB') return { name, type }
  const text = `CASE WHEN ${name} IS NOT NULL THEN coalesce(TRY(decode(${name})), ${literal(NO_TEXT)}) END`
  return { name: text, type: 'VARCHAR' }
}

/**
 * The schema's elements in file order, with the types that DuckDB reads them as. It reads a DECIMAL of more than 38 digits
 * wrongly, without an error.
 */
function readSchema(connection: DuckDBConnection, file: RawFile): Promise<SchemaElement[]> {
  const query = `
    SELECT
      name, CAST(coalesce(num_children, 0) AS INTEGER) AS children,
      CASE
        WHEN precision > 38 THEN 'DECIMAL of ' || precision || ' digits'
        WHEN repetition_type = 'REPEATED' OR converted_type = 'LIST' OR starts_with(logical_type, 'List') THEN 'LIST[]'
        WHEN starts_with(logical_type, 'Float16') THEN 'FLOAT16'
        WHEN duckdb_type = 'BLOB' AND type = 'FIXED_LEN_BYTE_ARRAY' THEN type
        ELSE coalesce(duckdb_type, 'STRUCT')
      END AS type
    FROM parquet_schema(${pathList([file.path])})`
  return reading(file, 'Parquet', () => queryRows(connection, query, elementRow))
}

/** The schema is a tree in preorder: the children of the root are the columns. */
function topLevel(elements: readonly SchemaElement[]): SchemaElement[] {
  let pending = 0
  return elements.slice(1).filter(({ children }) => {
    const isTop = pending === 0
    pending += children - (isTop ? 0 : 1)
    return isTop
  })
}

/**
 * The rows of a Parquet file as documents.
 * @throws DataError for a column that DuckDB would misread.
 */
export async function* readParquetRows(
  connection: DuckDBConnection,
  file: RawFile,
): AsyncGenerator<Document> {
  const elements = await readSchema(connection, file)
  const wide = elements.find(({ type }) => type.startsWith('DECIMAL of'))
  if (wide !== undefined) {
    throw new DataError(
      `${file.name}: the column ${wide.name} is of type ${wide.type}, which cannot be read: write it as BIGINT, or leave it out`,
    )
  }
  const from = parquetRows([file.path])
  const result = await reading(file, 'Parquet', () =>
    connection.stream(`SELECT CAST(to_json(file_rows) AS VARCHAR) FROM ${from} AS file_rows`),
  )
  let row = 0
  for await (const rows of result.yieldRows()) {
    for (const [line] of rows) {
      row += 1
      yield { row, ...parseLine(String(line)) }
    }
  }
}
