/**
 * The view `incoming`: the rows of the files being counted, read in place, and those that are staged. It has the columns of
 * usage, `violation` and `is_plain` (values.sql), and where a row is from: day, file (its number in `day_files`), row and
 * payload. `row` is NULL for text files, which DuckDB reads without the numbers of lines.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { literal, pathPattern } from '../duckdb/sql-values.ts'
import { DataError } from '../errors.ts'
import {
  APP_TEXT,
  LISTS,
  NULLABLE_TEXTS,
  PULLED_COLUMNS,
  USAGE_COLUMNS,
  allColumns,
  isValidated,
  type Columns,
} from './columns.ts'
import type { RawFile } from './drop-folder.ts'

/** Stands for bytes and characters that are no text. */
export const NO_TEXT = '\uFFFD'

/** A column of a file in DuckDB: its quoted name, or an expression for its value, and its type. */
export type TypedColumn = { readonly name: string; readonly type: string }

/** The columns that a file has, by their names here. */
export type TypedColumns = ReadonlyMap<string, TypedColumn>

/** How DuckDB reads a file. */
export type Scan = {
  /** The file, or its unpacked copy. */
  readonly path: string
  readonly types: TypedColumns
  /** The table function over some paths. */
  readonly rows: (paths: readonly string[]) => string
  /** An expression for the number of a row. */
  readonly row?: string
  /** An expression for a fault that the values do not show. */
  readonly fault?: string
  /** An expression for the row as it was, where its values are not that. */
  readonly payload?: string
  /** Selects lines that lack a key, which `rows` takes for a null. */
  readonly lacksKeys?: string
}

/** A file of the days being counted; its place in the list is its number in SQL. */
export type DayFile = { readonly day: string; readonly file: RawFile }

/** A list of paths for DuckDB's readers. */
export function pathList(paths: readonly string[]): string {
  return `[${paths.map((path) => literal(pathPattern(path))).join(', ')}]`
}

/** A column of a text file, in which some words stand for null where the column is text. */
export function textColumn(column: string, name: string): TypedColumn {
  const text = NULLABLE_TEXTS.includes(column) ? `without_null_word(${name})` : name
  return named(column, { name: text, type: 'VARCHAR' })
}

/** The column; one that may name an app is empty in rows that leave it out. */
export function named(column: string, { name, type }: TypedColumn): TypedColumn {
  if (column !== APP_TEXT || NO_TEXT_TYPE.test(type)) return { name, type }
  return { name: `coalesce(CAST(${name} AS VARCHAR), '')`, type: 'VARCHAR' }
}

/** The type of a column's values. */
function typeOf(column: string): 'TIMESTAMP' | 'BIGINT' | 'VARCHAR' {
  if (column === 'ts') return 'TIMESTAMP'
  return /^(?:app_id|requests|row_count|\w+_tokens)$/.test(column) ? 'BIGINT' : 'VARCHAR'
}

// A Parquet column without any value may be of the type "NULL".
const TIME = /^(?:DATE|TIMESTAMP(?:_S|_MS|_NS)?|"NULL")$/
const SMALL_INTEGER = /^(?:U?(?:TINYINT|SMALLINT|INTEGER)|BIGINT|"NULL")$/
const LARGE_NUMBER = /^(?:UBIGINT|U?HUGEINT|DECIMAL\(\d+,\d+\)|FLOAT16|FLOAT|DOUBLE)$/
const NO_TEXT_TYPE = /^(?:STRUCT|MAP|UNION|VARIANT|FIXED_LEN_BYTE_ARRAY|DECIMAL of)\b|\]$/

/** From here on, neighbouring integers share a floating-point number of the type. */
const INEXACT_FROM: Readonly<Record<string, number>> = { FLOAT16: 2 ** 11, FLOAT: 2 ** 24, DOUBLE: 2 ** 53 }

function timeOf({ name, type }: TypedColumn): string | undefined {
  if (type === 'TIMESTAMP WITH TIME ZONE') return `utc_from_zoned(${name})`
  if (TIME.test(type)) return `CAST(${name} AS TIMESTAMP)`
  return type === 'VARCHAR' ? `utc_from_text(${name})` : undefined
}

function countOf({ name, type }: TypedColumn): string | undefined {
  if (SMALL_INTEGER.test(type)) return `CAST(${name} AS BIGINT)`
  const number = `count_from_number(${name}, ${INEXACT_FROM[type] ?? 1e19})`
  // Data warehouses write whole numbers so; any other cast takes several times as long.
  if (type.endsWith(',0)')) return `coalesce(CAST(TRY_CAST(${name} AS DECIMAL(18, 0)) AS BIGINT), ${number})`
  if (LARGE_NUMBER.test(type)) return number
  return type === 'VARCHAR' ? `count_from_text(${name})` : undefined
}

/** The value as text; a list becomes JSON where the column may hold one, and any other nested value is none. */
function textOf({ name, type }: TypedColumn, column: string): string | undefined {
  if (!NO_TEXT_TYPE.test(type)) return `CAST(${name} AS VARCHAR)`
  return LISTS.includes(column) && type.endsWith(']') ? `CAST(to_json(${name}) AS VARCHAR)` : undefined
}

/** A number that is no exact integer is marked. */
function stagedOf(column: TypedColumn, name: string): string | undefined {
  const text = textOf(column, name)
  if (!LARGE_NUMBER.test(column.type)) return text
  return `coalesce(CAST(nullif(${countOf(column)}, -1) AS VARCHAR), ${text} || ' (not exact)')`
}

/**
 * The expressions for the columns that a kind of input has.
 * @param files their names, for messages.
 * @param to `values` for the view `incoming`, `texts` for the table `staged`.
 * @throws DataError with a column whose type cannot hold its values.
 */
export function readColumns(
  files: string,
  types: TypedColumns,
  columns: Columns,
  to: 'values' | 'texts',
): string {
  const expressions = allColumns(columns).map((name) => {
    const type = to === 'texts' ? 'VARCHAR' : typeOf(name)
    const column = types.get(name)
    if (column === undefined) return `CAST(NULL AS ${type}) AS ${name}`
    const read = to === 'texts' ? stagedOf : { TIMESTAMP: timeOf, BIGINT: countOf, VARCHAR: textOf }[type]
    const value = read(column, name)
    if (value === undefined && isValidated(columns, name)) {
      throw new DataError(
        `${files}: the column ${name} is of type ${column.type}, which cannot hold it: write it as ${typeOf(name)}`,
      )
    }
    return `${value ?? 'NULL'} AS ${name}`
  })
  return expressions.join(', ')
}

/** The rows of a file in the table `staged`; its path is its name there. */
const STAGED: Omit<Scan, 'path'> = {
  types: new Map(allColumns(USAGE_COLUMNS).map((name) => [name, { name: `r.${name}`, type: 'VARCHAR' }])),
  rows: (names) =>
    `(SELECT s.*, list_position([${names.map(literal).join(', ')}], s.file) - 1 AS file_index FROM staged AS s)`,
  row: 'r.row',
  fault: 'coalesce(r.fault, id_violation(r.request_id))',
  payload: 'r.payload',
}

/** A row stands for one request and one raw row by default. Its id names its app, and its text only where it has none. */
const DEFAULTS = [
  'coalesce(r.requests, 1) AS requests',
  'coalesce(r.row_count, 1) AS row_count',
  'CASE WHEN r.app_id IS NULL THEN r.app END AS app',
  // An empty model is unknown anyway, and a text that is unchanged stays a dictionary.
  ...['provider', 'account_id', 'app_title', 'app_categories'].map(
    (column) => `nullif(r.${column}, '') AS ${column}`,
  ),
  'id_as_integer(r.request_id) AS request_id',
].join(', ')

/** What decides whether a row counts (values.sql). */
const VALIDATED =
  'r.day, r.fault, r.ts, r.app_id, r.app IS NOT NULL, r.prompt_tokens, r.completion_tokens, r.requests, r.row_count'

/**
 * Creates the table `day_files` and the view `incoming`.
 * @param scans of the files that are read in place; the others are staged.
 * @returns the columns of usage that some file has.
 */
export async function defineIncoming(
  connection: DuckDBConnection,
  files: readonly DayFile[],
  scans: ReadonlyMap<RawFile, Scan>,
): Promise<readonly string[]> {
  const numbered = files.map(({ day, file }, number) => {
    return { number, day, file, scan: scans.get(file) ?? { ...STAGED, path: file.name } }
  })
  const rows = numbered.map(({ number, day, file }) => `(${number}, DATE '${day}', ${literal(file.name)})`)
  // CSV files are read by position, so that equal reading may name the columns otherwise.
  const alike = Map.groupBy(numbered, ({ scan }) => JSON.stringify([scan.rows([]), [...scan.types]]))
  const parts = [...alike.values()].flatMap((some) =>
    some.slice(0, 1).map(({ scan }) => readTogether(scan, some)),
  )
  await connection.run(`
    CREATE OR REPLACE TEMP TABLE day_files AS FROM (VALUES ${rows.join(', ')}) AS f (file, day, name);
    CREATE OR REPLACE TEMP VIEW incoming AS
    SELECT
      r.*, is_plain(${VALIDATED}) AS is_plain, violation(${VALIDATED}) AS violation_but_text,
      coalesce(violation_but_text, text_violation(r.app)) AS violation
    FROM (SELECT r.* REPLACE (${DEFAULTS}) FROM (${parts.join(' UNION ALL ')}) AS r) AS r`)
  return [...new Set(numbered.flatMap(({ scan }) => [...scan.types.keys()]))]
}

type NumberedFile = DayFile & { readonly number: number; readonly scan: Scan }

/** The part of the view for files that one table function reads. */
function readTogether(
  { types, rows, row = 'NULL', fault = 'NULL', payload = 'NULL' }: Scan,
  files: readonly NumberedFile[],
): string {
  const validated = [...types].filter(([column]) => isValidated(USAGE_COLUMNS, column))
  const values = validated.map(([column, { name }]) => `${column}: ${name}`)
  return `
    SELECT
      ${ofFile(files.map(({ day }) => `DATE '${day}'`))} AS day, ${ofFile(files.map(({ number }) => number))} AS file,
      ${row} AS row, ${fault} AS fault, coalesce(${payload}, CAST(to_json({${values.join(', ')}}) AS VARCHAR)) AS payload,
      ${readColumns(files.map(({ file }) => file.name).join(', '), types, PULLED_COLUMNS, 'values')}
    FROM ${rows(files.map(({ scan }) => scan.path))} AS r`
}

/** A value by file; one that is the same for all files is a constant, which costs no time. */
function ofFile(values: readonly (string | number)[]): string {
  const [only, ...others] = new Set(values)
  return others.length === 0 ? String(only) : `[${values.join(', ')}][CAST(r.file_index AS BIGINT) + 1]`
}
