/** Parquet files of raw usage, counted where they lie: which expression reads which column of which type. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { DataError, firstLineOf } from '../errors.ts'
import { listValue, literal } from '../duckdb/sql-values.ts'
import { countSchema, queryRows, readRow } from '../duckdb/statements.ts'
import { USAGE_COLUMNS, requireColumns } from './columns.ts'
import { requireReadable } from './drop-folder.ts'
import type { RawFile } from './drop-folder.ts'
import { exactPath, pathLiteral } from './path-literal.ts'

/** Name (lower case) and DuckDB type of the columns of a file. */
type ColumnTypes = ReadonlyMap<string, string>

/** Files with the same columns and types; they are read in one pass. */
type SchemaGroup = {
  readonly types: ColumnTypes
  readonly files: RawFile[]
}

/** An expression that reads a column of a type; undefined where the type cannot hold such a value. */
type Reading = (column: string, type: string) => string | undefined

/** The column in which DuckDB numbers the rows of a file, from 0. */
const ROW_NUMBER = 'file_row_number'

const FITS_64_BITS = /^(?:U?(?:TINYINT|SMALLINT|INTEGER)|BIGINT)$/
const OTHER_NUMBER = /^(?:UBIGINT|U?HUGEINT|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\))$/
const TIME_WITH_ZONE = 'TIMESTAMP WITH TIME ZONE'
const TIME = /^(?:DATE|TIMESTAMP(?:_S|_MS|_NS| WITH TIME ZONE)?)$/

const readTime: Reading = (column, type) => {
  if (type === TIME_WITH_ZONE) return `${column} AT TIME ZONE 'UTC'`
  if (TIME.test(type)) return `CAST(${column} AS TIMESTAMP)`
  return type === 'VARCHAR' ? `utc_from_text(${column})` : undefined
}

const readId: Reading = (column, type) => {
  if (FITS_64_BITS.test(type)) return `CAST(${column} AS BIGINT)`
  if (OTHER_NUMBER.test(type)) return `id_from_number(${column})`
  return type === 'VARCHAR' ? `id_from_text(${column})` : undefined
}

const readCount: Reading = (column, type) => {
  if (FITS_64_BITS.test(type)) return column
  if (OTHER_NUMBER.test(type)) return `count_from_number(${column})`
  return type === 'VARCHAR' ? `count_from_text(${column})` : undefined
}

const readRequests: Reading = (column, type) => {
  const count = readCount(column, type)
  return count && `coalesce(${count}, 1)`
}

const readText: Reading = (column) => `nullif(CAST(${column} AS VARCHAR), '')`

/** The columns of `incoming`; `missing` is what stands where a file lacks an optional one. */
const USAGE_READINGS: readonly { column: string; read: Reading; missing?: string }[] = [
  { column: 'ts', read: readTime },
  { column: 'app_id', read: readId },
  { column: 'prompt_tokens', read: readCount },
  { column: 'completion_tokens', read: readCount },
  { column: 'requests', read: readRequests, missing: '1' },
  { column: 'request_id', read: readText, missing: 'CAST(NULL AS VARCHAR)' },
]

/** Columns whose statistics in the footer are numbers or times, and their types; an optional one may be missing. */
const PROVABLE: readonly (readonly [column: string, type: RegExp])[] = [
  ['ts', TIME],
  ...['app_id', 'prompt_tokens', 'completion_tokens', 'requests'].map(
    (column) => [column, FITS_64_BITS] as const,
  ),
]

const proofRow = z.object({ proven: z.boolean(), rows: countSchema, small: z.boolean() })
const columnRow = z.object({ column_name: z.string(), column_type: z.string() })

/** What the footers of Parquet files tell when they prove every row good. */
export type Proof = {
  readonly rows: number
  /** No sum over the rows is beyond the integers that a DOUBLE holds exactly. */
  readonly smallSums: boolean
}

/** How the Parquet files of a day are read. */
export type ParquetReading = {
  /** One SELECT per schema among the files, each giving the columns of `incoming`. */
  readonly selects: readonly string[]
  /** Undefined where the footers do not prove every row good. */
  readonly proof: Proof | undefined
  /** Some file has the column requests: its rows may stand for several each. */
  readonly aggregated: boolean
  /** Some file has the column request_id. */
  readonly identified: boolean
}

/**
 * Finds out how to read the Parquet files of a day; expects the session variable `day`.
 * @throws DataError that names the file which cannot be read, or whose columns cannot hold usage.
 */
export async function readParquet(
  connection: DuckDBConnection,
  files: readonly RawFile[],
): Promise<ParquetReading> {
  const groups = await groupBySchema(connection, files)
  const provable = groups.every(({ types }) =>
    PROVABLE.every(([name, type]) => type.test(types.get(name) ?? 'BIGINT')),
  )
  return {
    selects: groups.map(selectGroup),
    proof: provable ? await proofOf(connection, files) : undefined,
    aggregated: groups.some(({ types }) => types.has('requests')),
    identified: groups.some(({ types }) => types.has('request_id')),
  }
}

async function groupBySchema(
  connection: DuckDBConnection,
  files: readonly RawFile[],
): Promise<SchemaGroup[]> {
  const groups = new Map<string, SchemaGroup>()
  for (const file of files) {
    requireReadable(file)
    const types = await describeParquet(connection, file)
    requireColumns(file, [...types.keys()], USAGE_COLUMNS.required)
    // Rows can only be numbered file by file where a column has the name that numbers come under.
    const signature = JSON.stringify([...types, types.has(ROW_NUMBER) ? file.path : null])
    const group = groups.get(signature) ?? { types, files: [] }
    group.files.push(file)
    groups.set(signature, group)
  }
  return [...groups.values()]
}

async function proofOf(connection: DuckDBConnection, files: readonly RawFile[]): Promise<Proof | undefined> {
  if (files.length === 0) return { rows: 0, smallSums: true }
  const paths = listValue(files.map(exactPath))
  const { proven, rows, small } = await readRow(connection, 'load/footer-proof.sql', proofRow, { paths })
  return proven ? { rows, smallSums: small } : undefined
}

/**
 * Reads the columns of usage of each file to their end, once something in a day could not be read.
 * @throws DataError that names the first file that cannot be.
 */
export async function readThrough(connection: DuckDBConnection, files: readonly RawFile[]): Promise<void> {
  for (const file of files) {
    const types = await describeParquet(connection, file)
    const columns = USAGE_READINGS.map(({ column }) => column).filter((column) => types.has(column))
    const hashes = columns.map((column) => `bit_xor(hash(${column}))`).join(', ')
    try {
      await connection.run(`SELECT ${hashes} FROM ${parquetRows(file)}`)
    } catch (error) {
      throw new DataError(
        `${file.name} cannot be read as Parquet: ${firstLineOf(error)}. Deliver the file again, whole`,
        { cause: error },
      )
    }
  }
}

/** What stands behind FROM to read a Parquet file. A folder above it named `app_id=7` is no column. */
export function parquetRows(file: RawFile): string {
  return `read_parquet(${pathLiteral(file)}, hive_partitioning = false)`
}

/** Name (lower case) and DuckDB type of each column of a Parquet file, from its footer. */
export async function describeParquet(connection: DuckDBConnection, file: RawFile): Promise<ColumnTypes> {
  const sql = `DESCRIBE FROM ${parquetRows(file)}`
  try {
    const columns = await queryRows(connection, sql, columnRow)
    return new Map(columns.map((column) => [column.column_name.toLowerCase(), column.column_type]))
  } catch (error) {
    throw new DataError(`${file.name} cannot be read as Parquet: ${firstLineOf(error)}`, { cause: error })
  }
}

function freeName(name: string, types: ColumnTypes): string {
  return types.has(name) ? freeName(`${name}_`, types) : name
}

// Their columns are the same: by name, they have their least and greatest values also where there are several files.
function selectGroup({ types, files }: SchemaGroup): string {
  const paths = files.map(pathLiteral).join(', ')
  const names = files.map(({ path, name }) => `${literal(path)}: ${literal(name)}`).join(', ')
  const inputs = USAGE_READINGS.map(
    (reading) => `${inputExpression(reading, types, files)} AS ${reading.column}`,
  )
  // The names under which DuckDB tells file and row may be those of columns that we ignore.
  const path = freeName('path', types)
  const numbered = types.has(ROW_NUMBER)
  const row = numbered ? 'row_number() OVER ()' : `${ROW_NUMBER} + 1`
  const present = USAGE_READINGS.filter(({ column }) => types.has(column))
  const payload = present.map(({ column }) => `${column}: ${column}`).join(', ')
  return `
    SELECT map_extract_value(MAP {${names}}, ${path}) AS file, ${row} AS row, 1 AS lines,
      CAST(NULL AS VARCHAR) AS fault, ${inputs.join(', ')}, CAST(to_json({${payload}}) AS VARCHAR) AS payload
    FROM read_parquet([${paths}], filename = '${path}', file_row_number = ${!numbered}, union_by_name = true,
      hive_partitioning = false)`
}

function inputExpression(
  { column, read, missing }: (typeof USAGE_READINGS)[number],
  types: ColumnTypes,
  files: readonly RawFile[],
): string {
  const type = types.get(column)
  const expression = type === undefined ? missing : read(column, type)
  if (expression !== undefined) return expression
  const names = files.map(({ name }) => name).join(', ')
  throw new DataError(`${names}: the column ${column} is of type ${type}, which cannot hold it`)
}
