/** Reads Parquet by DuckDB; the footer says which columns a file has. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { DataError, firstLineOf, isShortage } from '../../errors.ts'
import { identifier } from '../../duckdb/sql-values.ts'
import { queryRows } from '../../duckdb/statements.ts'
import { isValidated, matchColumns } from '../columns.ts'
import type { Columns, TypedColumn } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import { pathList } from '../incoming.ts'
import type { Scan } from '../incoming.ts'
import { parseExactly } from './json.ts'
import type { Document } from './json.ts'

/** DuckDB reads a DECIMAL with more digits wrongly, without an error. */
const DECIMAL_DIGITS = 38

/** Remedies by DuckDB's message. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /BYTE_STREAM_SPLIT/i,
    'Integers are encoded as BYTE_STREAM_SPLIT: write the file with plain or dictionary encoding',
  ],
  [/codec/i, 'Write the file with the codec snappy, gzip, zstd or LZ4_RAW'],
  [/Invalid string encoding/, 'A text in it is not UTF-8: write the file again'],
  [/Permission denied/, 'Give the user of the run the right to read it'],
]

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
function parquetRows(paths: string): string {
  return `read_parquet(${paths}, hive_partitioning = false)`
}

/** Reads a file, and names it in errors. */
export async function readingParquet<T>(file: RawFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (isShortage(error) || error instanceof DataError) throw error
    const message = firstLineOf(error)
    const remedy = REMEDIES.find(([words]) => words.test(message))?.[1] ?? 'Deliver the file again, whole'
    throw new DataError(`${file.name} cannot be read as Parquet: ${message}. ${remedy}`, { cause: error })
  }
}

/**
 * How DuckDB reads files, by file.
 * @throws DataError with a file that cannot be read, lacks a column, or has one twice.
 */
export async function scanParquet(
  connection: DuckDBConnection,
  files: readonly RawFile[],
  columns: Columns,
): Promise<ReadonlyMap<RawFile, Scan>> {
  const scans = new Map<RawFile, Scan>()
  const known = new Map<string, Omit<Scan, 'path'>>()
  const schemas = await readSchemas(connection, files)
  for (const [index, file] of files.entries()) {
    const elements = schemas[index] ?? []
    const signature = JSON.stringify(
      elements.map(({ name, precision, num_children, rest }) => [name, precision, num_children, rest]),
    )
    const scan = known.get(signature) ?? (await describeSchema(connection, file, elements, columns))
    known.set(signature, scan)
    scans.set(file, { ...scan, path: file.path })
  }
  return scans
}

async function describeSchema(
  connection: DuckDBConnection,
  file: RawFile,
  elements: readonly SchemaElement[],
  columns: Columns,
): Promise<Omit<Scan, 'path'>> {
  const top = topLevel(elements)
  const names = top.map(({ name }) => name)
  const matched = matchColumns(file.name, names, columns)
  const described = await readingParquet(file, () =>
    queryRows(connection, `DESCRIBE FROM ${parquetRows(pathList([file.path]))}`, typeRow),
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
  const isAlone = names.some((name) => /^file_(?:index|row_number)$/i.test(name))
  return {
    types,
    isAlone,
    row: isAlone ? 'row_number() OVER ()' : 'r.file_row_number + 1',
    rows: parquetRows,
  }
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
       FROM parquet_schema(${pathList(some.map(({ path }) => path))})`,
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
  const from = parquetRows(pathList([file.path]))
  const result = await readingParquet(file, () =>
    connection.stream(`SELECT CAST(to_json(file_rows) AS VARCHAR) FROM ${from} AS file_rows`),
  )
  let row = 0
  for await (const rows of result.yieldRows()) {
    for (const [line] of rows) {
      row += 1
      yield { row, value: parseExactly(String(line)) }
    }
  }
}
