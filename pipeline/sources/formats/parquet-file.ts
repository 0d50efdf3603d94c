/** Parquet files: finds their columns in the footer, and makes the queries that read usage in place. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { DataError, firstLineOf, isShortage } from '../../errors.ts'
import { identifier, listValue, literal } from '../../duckdb/sql-values.ts'
import { countSchema, queryRows, readRow } from '../../duckdb/statements.ts'
import { USAGE_COLUMNS, isDecisive, matchColumns, plainName } from '../columns.ts'
import type { Columns } from '../columns.ts'
import { requireReadable } from '../drop-folder.ts'
import type { RawFile } from '../drop-folder.ts'
import { FITS_64_BITS, TIME, appExpression, findUnfit, incomingColumns } from '../readings.ts'
import type { TypedColumn, TypedColumns } from '../readings.ts'
import { exactPath, pathLiteral } from './path-literal.ts'
import { REPLACEMENT } from './text-file.ts'

/** Files with the same columns and types; one query reads them. */
type SchemaGroup = {
  readonly types: TypedColumns
  /** Names of all columns. */
  readonly names: readonly string[]
  readonly files: RawFile[]
}

/** DuckDB's column of row numbers in a file, from 0. */
const ROW_NUMBER = 'file_row_number'

/** DuckDB reads a DECIMAL with more digits wrongly, without an error. */
const DECIMAL_DIGITS = 38

/** Columns with numeric or time statistics in the footer, and their types; an optional one may be missing. */
const PROVABLE: readonly (readonly [column: string, type: RegExp])[] = [
  ['ts', TIME],
  ...['app_id', 'prompt_tokens', 'completion_tokens', 'requests'].map(
    (column) => [column, FITS_64_BITS] as const,
  ),
]

const proofRow = z.object({ proven: z.boolean(), rows: countSchema, small: z.boolean() })
const typeRow = z.object({ column_type: z.string() })
const elementRow = z.object({
  file_name: z.string(),
  name: z.string(),
  precision: z.string().nullable(),
  num_children: z.string().nullable(),
  rest: z.string(),
})
type SchemaElement = z.infer<typeof elementRow>

/** Result of footers that prove every row valid. */
export type Proof = {
  readonly rows: number
  /** No sum over the rows exceeds the integers that a DOUBLE holds exactly. */
  readonly smallSums: boolean
}

/** How Parquet files are read. */
export type ParquetReading = {
  /** One SELECT per schema, each with the columns of `incoming`. */
  readonly selects: readonly string[]
  /** Every column's statistics can prove its values valid. */
  readonly isProvable: boolean
  /** Some file has the column requests, so that a row may stand for several. */
  readonly aggregated: boolean
  /** Some file names apps in the column app. */
  readonly isNamed: boolean
  /** Some file has a column for the model of a request. */
  readonly tellsModel: boolean
  /** Some file has a column for a part of the tokens. */
  readonly tellsParts: boolean
  /** Some file has the column provider. */
  readonly tellsProvider: boolean
}

/**
 * Finds out how to read Parquet files of usage.
 * @param day an expression for the day of a row's folder, from its `file`.
 * @throws DataError with the file that cannot be read, or with unsuitable columns.
 */
export async function readParquet(
  connection: DuckDBConnection,
  files: readonly RawFile[],
  { day, columns }: { readonly day: string; readonly columns: Columns },
): Promise<ParquetReading> {
  const groups = await groupBySchema(connection, files, columns)
  for (const { types, files: unfit } of groups) requireFit(types, unfit)
  const isGiven = (column: string) => groups.some(({ types }) => types.has(column))
  return {
    selects: groups.map((group) => `SELECT ${day} AS day, * FROM (${selectGroup(group)})`),
    // The statistics do not show whether an app has a name.
    isProvable: groups.every(
      ({ types }) =>
        !types.has('app') && PROVABLE.every(([name, type]) => type.test(types.get(name)?.type ?? 'BIGINT')),
    ),
    aggregated: isGiven('requests'),
    isNamed: isGiven('app'),
    tellsModel: isGiven('model'),
    tellsParts: isGiven('reasoning_tokens') || isGiven('cached_tokens'),
    tellsProvider: isGiven('provider'),
  }
}

function requireFit(types: TypedColumns, files: readonly RawFile[]): void {
  const unfit = findUnfit(types)
  if (unfit === undefined) return
  const names = files.map(({ name }) => name).join(', ')
  throw new DataError(`${names}: the column ${unfit.column} is of type ${unfit.type}, which cannot hold it`)
}

/** Whether the footers of the files, all of one day, prove every row valid. */
export async function proveByFooters(
  connection: DuckDBConnection,
  files: readonly RawFile[],
): Promise<Proof | undefined> {
  if (files.length === 0) return { rows: 0, smallSums: true }
  const paths = listValue(files.map(exactPath))
  const { proven, rows, small } = await readRow(connection, 'load/footer-validation.sql', proofRow, { paths })
  return proven ? { rows, smallSums: small } : undefined
}

/**
 * Reads the usage columns of each file completely, after something in a day could not be read.
 * @throws DataError with the first unreadable file.
 */
export async function readThrough(connection: DuckDBConnection, files: readonly RawFile[]): Promise<void> {
  for (const { types, files: group } of await groupBySchema(connection, files, USAGE_COLUMNS)) {
    const columns = [...types].filter(([column]) => isDecisive(USAGE_COLUMNS, column))
    const hashes = columns.map(([, { name }]) => `bit_xor(hash(${name}))`).join(', ')
    for (const file of group) {
      await runOverParquet(file, () => connection.run(`SELECT ${hashes} FROM ${parquetRows(file)}`))
    }
  }
}

/** Reads a file, and names it in errors. */
export async function runOverParquet<T>(file: RawFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (isShortage(error)) throw error
    const message = firstLineOf(error)
    const remedy = /BYTE_STREAM_SPLIT/i.test(message)
      ? 'Integers are encoded as BYTE_STREAM_SPLIT: write the file with plain or dictionary encoding'
      : 'Deliver the file again, whole'
    throw new DataError(`${file.name} cannot be read as Parquet: ${message}. ${remedy}`, { cause: error })
  }
}

/** Table expression for a Parquet file. A folder named `app_id=7` above it is not a column. */
export function parquetRows(file: RawFile): string {
  return `read_parquet(${pathLiteral(file)}, hive_partitioning = false)`
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
    // Rows of several files cannot be numbered if a column has the name of DuckDB's row number.
    const isNumbered = elements.some(({ name }) => plainName(name) === ROW_NUMBER)
    const signature = JSON.stringify([
      isNumbered ? file.path : null,
      elements.map(({ name, precision, num_children, rest }) => [name, precision, num_children, rest]),
    ])
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
  const matched = matchColumns(
    file,
    top.map(({ name }) => name),
    columns,
  )
  const described = await runOverParquet(file, () =>
    queryRows(connection, `DESCRIBE FROM ${parquetRows(file)}`, typeRow),
  )
  const types = new Map<string, { name: string; type: string }>()
  for (const [column, position] of matched) {
    const { name, precision } = top[position] ?? { name: column, precision: null }
    const isTooWide = Number(precision ?? 0) > DECIMAL_DIGITS
    if (isTooWide && isDecisive(columns, column)) {
      throw new DataError(
        `${file.name}: the column ${column} is a DECIMAL of ${precision} digits, of which no more than ` +
          `${DECIMAL_DIGITS} can be read. Write it as BIGINT or DECIMAL(${DECIMAL_DIGITS}, 0)`,
      )
    }
    const type = described[position]?.column_type ?? 'VARCHAR'
    if (!isTooWide) types.set(column, asText({ name: identifier(name), type }))
  }
  return { types, names: top.map(({ name }) => name), files: [] }
}

/** Bytes that are not UTF-8, as DuckDB writes them: a backslash, an x and two digits. */
const ESCAPED_BYTE = String.raw`\\x(..)`

/**
 * Bytes without a type are text, as which Hive, Impala and older Spark write it. Where they are no UTF-8, each byte that is
 * no printable ASCII is the mark of text-file.ts and its two digits.
 */
function asText({ name, type }: TypedColumn): TypedColumn {
  if (type !== 'BLOB') return { name, type }
  const mended = `regexp_replace(CAST(${name} AS VARCHAR), '${ESCAPED_BYTE}', '${REPLACEMENT}\\1', 'g')`
  return { name: `coalesce(TRY(decode(${name})), ${mended})`, type: 'VARCHAR' }
}

/** The schema elements of each file, in file order. */
async function readSchemas(
  connection: DuckDBConnection,
  files: readonly RawFile[],
): Promise<readonly SchemaElement[][]> {
  for (const file of files) requireReadable(file)
  const query = (some: readonly RawFile[]) =>
    queryRows(
      connection,
      `SELECT file_name, name, CAST(precision AS VARCHAR) AS precision, CAST(num_children AS VARCHAR) AS num_children,
         concat_ws(' ', type, type_length, repetition_type, converted_type, scale, logical_type) AS rest
       FROM parquet_schema([${some.map(pathLiteral).join(', ')}])`,
      elementRow,
    )
  if (files.length === 0) return []
  try {
    const byPath = Map.groupBy(await query(files), ({ file_name }) => file_name)
    return files.map(({ path }) => byPath.get(path) ?? [])
  } catch (error) {
    if (isShortage(error)) throw error
    const schemas: SchemaElement[][] = []
    for (const file of files) schemas.push(await runOverParquet(file, () => query([file])))
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

function freeName(name: string, names: readonly string[]): string {
  return names.some((other) => other.toLowerCase() === name) ? freeName(`${name}_`, names) : name
}

// Their columns are the same: union by name keeps the statistics of several files.
function selectGroup({ types, names, files }: SchemaGroup): string {
  const paths = files.map(pathLiteral).join(', ')
  const fileNames = files.map(({ path, name }) => `${literal(path)}: ${literal(name)}`).join(', ')
  const columns = incomingColumns(types, { fault: 'NULL', payload: 'NULL', app: appExpression(types) })
  // An ignored column may have DuckDB's name for file or row.
  const path = freeName('path', names)
  const isNumbered = names.some((name) => name.toLowerCase() === ROW_NUMBER)
  const row = isNumbered ? 'row_number() OVER ()' : `${ROW_NUMBER} + 1`
  return `
    SELECT map_extract_value(MAP {${fileNames}}, ${path}) AS file, ${row} AS row, 1 AS lines, ${columns.join(', ')}
    FROM read_parquet([${paths}], filename = '${path}', file_row_number = ${!isNumbered}, union_by_name = true,
      hive_partitioning = false)`
}
