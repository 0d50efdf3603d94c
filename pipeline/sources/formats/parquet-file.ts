/** Parquet files: finds their columns in the footer, and makes the queries that read them in place. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { DataError, firstLineOf, isShortage } from '../../errors.ts'
import { identifier, literal, pathPattern } from '../../duckdb/sql-values.ts'
import { queryRows } from '../../duckdb/statements.ts'
import { isValidated, matchColumns } from '../columns.ts'
import type { Columns } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import type { TypedColumn, TypedColumns } from '../typed-columns.ts'
import type { Document } from './documents.ts'
import { parseExactly } from './documents.ts'

/** Files with the same columns and types; one query reads them. */
export type SchemaGroup = {
  readonly types: TypedColumns
  /** Names of all columns. */
  readonly names: readonly string[]
  readonly files: RawFile[]
}

/** DuckDB reads a DECIMAL with more digits wrongly, without an error. */
const DECIMAL_DIGITS = 38

const typeRow = z.object({ column_type: z.string() })
const elementRow = z.object({
  file_name: z.string(),
  name: z.string(),
  precision: z.string().nullable(),
  num_children: z.string().nullable(),
  rest: z.string(),
})
type SchemaElement = z.infer<typeof elementRow>

/** Table expression for Parquet files. A folder named `app_id=7` above them is not a column. */
export function parquetRows(files: readonly RawFile[], options = ''): string {
  return `read_parquet([${files.map(({ path }) => pathLiteral(path)).join(', ')}], hive_partitioning = false${options})`
}

/**
 * The path for DuckDB's readers, as an SQL literal.
 * @throws DataError if the path has a backslash beside a character of patterns: there it cannot be escaped.
 */
export function pathLiteral(path: string): string {
  const pattern = pathPattern(path)
  if (pattern === path || !path.includes('\\')) return literal(pattern)
  throw new DataError(
    `${path} cannot be read: it has a backslash beside one of * ? [, and DuckDB finds no such file. Rename the file, or the folder above it`,
  )
}

/** Reads a file, and names it in errors. */
export async function readingParquet<T>(file: RawFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (isShortage(error) || error instanceof DataError) throw error
    const message = firstLineOf(error)
    throw new DataError(`${file.name} cannot be read as Parquet: ${message}. ${remedyFor(message)}`, {
      cause: error,
    })
  }
}

function remedyFor(message: string): string {
  if (/BYTE_STREAM_SPLIT/i.test(message)) {
    return 'Integers are encoded as BYTE_STREAM_SPLIT: write the file with plain or dictionary encoding'
  }
  if (/codec/i.test(message)) return 'Write the file with the codec snappy, gzip, zstd or LZ4_RAW'
  if (/Invalid string encoding/.test(message)) return 'A text in it is not UTF-8: write the file again'
  if (/Permission denied/.test(message)) return 'Give the user of the run the right to read it'
  return 'Deliver the file again, whole'
}

/**
 * Groups files by their columns and types.
 * @throws DataError with a file that cannot be read, lacks a column, or has one twice.
 */
export async function groupBySchema(
  connection: DuckDBConnection,
  files: readonly RawFile[],
  columns: Columns,
): Promise<SchemaGroup[]> {
  const groups = new Map<string, SchemaGroup>()
  const schemas = await readSchemas(connection, files)
  for (const [index, file] of files.entries()) {
    const elements = schemas[index] ?? []
    const signature = JSON.stringify(
      elements.map(({ name, precision, num_children, rest }) => [name, precision, num_children, rest]),
    )
    const group = groups.get(signature) ?? (await describeGroup(connection, file, elements, columns))
    group.files.push(file)
    groups.set(signature, group)
  }
  return [...groups.values()]
}

async function describeGroup(
  connection: DuckDBConnection,
  file: RawFile,
  elements: readonly SchemaElement[],
  columns: Columns,
): Promise<SchemaGroup> {
  const top = topLevel(elements)
  const names = top.map(({ name }) => name)
  const matched = matchColumns(file.name, names, columns)
  const described = await readingParquet(file, () =>
    queryRows(connection, `DESCRIBE FROM ${parquetRows([file])}`, typeRow),
  )
  const types = new Map<string, TypedColumn>()
  for (const [column, position] of matched) {
    const { name, precision } = top[position] ?? { name: column, precision: null }
    const isTooWide = Number(precision ?? 0) > DECIMAL_DIGITS
    if (isTooWide && isValidated(columns, column)) {
      throw new DataError(
        `${file.name}: the column ${column} is a DECIMAL of ${precision} digits, of which no more than ` +
          `${DECIMAL_DIGITS} can be read. Write it as BIGINT or DECIMAL(${DECIMAL_DIGITS}, 0)`,
      )
    }
    const type = described[position]?.column_type ?? 'VARCHAR'
    if (!isTooWide) types.set(column, asText({ name: identifier(name), type }))
  }
  return { types, names, files: [] }
}

/**
 * Bytes without a type are text, as which Hive, Impala and older Spark write it. Bytes that are no UTF-8 become a text that
 * no validated column may hold.
 */
function asText({ name, type }: TypedColumn): TypedColumn {
  if (type !== 'BLOB') return { name, type }
  return {
    name: `CASE WHEN ${name} IS NOT NULL THEN coalesce(TRY(decode(${name})), chr(65533)) END`,
    type: 'VARCHAR',
  }
}

/** The schema elements of each file, in file order. */
async function readSchemas(
  connection: DuckDBConnection,
  files: readonly RawFile[],
): Promise<readonly SchemaElement[][]> {
  const query = (some: readonly RawFile[]) =>
    queryRows(
      connection,
      `SELECT file_name, name, CAST(precision AS VARCHAR) AS precision, CAST(num_children AS VARCHAR) AS num_children,
         concat_ws(' ', type, type_length, repetition_type, converted_type, scale, logical_type) AS rest
       FROM parquet_schema([${some.map(({ path }) => pathLiteral(path)).join(', ')}])`,
      elementRow,
    )
  if (files.length === 0) return []
  try {
    const byPath = Map.groupBy(await query(files), ({ file_name }) => file_name)
    return files.map(({ path }) => byPath.get(path) ?? [])
  } catch (error) {
    if (isShortage(error) || error instanceof DataError) throw error
    const schemas: SchemaElement[][] = []
    for (const file of files) schemas.push(await readingParquet(file, () => query([file])))
    return schemas
  }
}

/** The schema is a tree in preorder: the children of the root are the columns. */
function topLevel(elements: readonly SchemaElement[]): SchemaElement[] {
  const columns: SchemaElement[] = []
  let pending = 0
  for (const element of elements.slice(1)) {
    if (pending === 0) columns.push(element)
    else pending -= 1
    pending += Number(element.num_children ?? 0)
  }
  return columns
}

/** The rows of a Parquet file as documents. */
export async function* readParquetRows(
  connection: DuckDBConnection,
  file: RawFile,
): AsyncGenerator<Document> {
  const result = await readingParquet(file, () =>
    connection.stream(`SELECT CAST(to_json(file_rows) AS VARCHAR) FROM ${parquetRows([file])} AS file_rows`),
  )
  let row = 0
  for await (const rows of result.yieldRows()) {
    for (const [line] of rows) {
      row += 1
      yield { row, value: parseExactly(String(line)) }
    }
  }
}
