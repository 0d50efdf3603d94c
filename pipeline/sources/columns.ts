/** The columns of raw input: how those of a file match them, and how DuckDB reads their values. One rule for every format. */
import { DataError } from '../errors.ts'

/** Columns of a kind of raw input, names in lower case; further columns of a file are ignored. */
export type Columns = {
  readonly required: readonly string[]
  readonly optional: readonly string[]
  /** A required column and its alternative. A row that leaves the alternative empty names no app. */
  readonly alternative?: Readonly<Record<string, string>>
  /** Descriptive columns: their values never invalidate a row or a file. */
  readonly descriptive?: readonly string[]
  /** Columns that may hold a list. */
  readonly lists?: readonly string[]
}

/** The columns of raw usage (CONTRACT 7). */
export const USAGE_COLUMNS = {
  required: ['ts', 'app_id', 'prompt_tokens', 'completion_tokens'],
  optional: ['app', 'requests', 'request_id'],
  alternative: { app_id: 'app' },
  descriptive: [
    'model',
    'reasoning_tokens',
    'cached_tokens',
    'provider',
    'account_id',
    'app_title',
    'app_categories',
  ],
  lists: ['app_categories'],
} as const satisfies Columns

/** The columns of a day pulled from a cluster: `row_count` is how many raw rows a row stands for. */
export const PULLED_COLUMNS: Columns = {
  ...USAGE_COLUMNS,
  optional: [...USAGE_COLUMNS.optional, 'row_count'],
}

export function allColumns({ required, optional, descriptive = [] }: Columns): readonly string[] {
  return [...required, ...optional, ...descriptive]
}

/** Whether a broken value in the column invalidates its row. */
export function isValidated({ required, optional }: Columns, column: string): boolean {
  return required.includes(column) || optional.includes(column)
}

/** Whether the column is the alternative to another one. */
export function isAlternative({ alternative = {} }: Columns, column: string): boolean {
  return Object.values(alternative).includes(column)
}

/** Normalises a name: capitals and surrounding spaces do not count. */
export function plainName(name: string): string {
  return name.trim().toLowerCase()
}

/** The required columns that are not among the names, also not by their alternative. */
export function missingColumns(
  { required, alternative }: Columns,
  names: readonly string[],
): readonly string[] {
  return required.filter((column) => !names.includes(column) && !names.includes(alternative?.[column] ?? ''))
}

/**
 * The positions of the columns among the names of a file. A descriptive column that occurs twice is ignored.
 * @param file its name, for messages.
 * @throws DataError with the columns that a file lacks or has twice.
 */
export function matchColumns(
  file: string,
  found: readonly string[],
  columns: Columns,
): ReadonlyMap<string, number> {
  const names = found.map(plainName)
  const missing = missingColumns(columns, names)
  if (missing.length > 0) {
    throw new DataError(
      `${file} has no column ${missing.join(', ')}. Its columns are: ${found.join(', ') || 'none'}`,
    )
  }
  const matched = new Map<string, number>()
  for (const column of allColumns(columns)) {
    const [position, second] = [names.indexOf(column), names.lastIndexOf(column)]
    if (position === second && position >= 0) matched.set(column, position)
    if (position !== second && isValidated(columns, column)) {
      throw new DataError(
        `${file} names the column "${column}" twice: as "${found[position]}" and as "${found[second]}". ` +
          'Remove one of them',
      )
    }
  }
  return matched
}

/** A column of a file in DuckDB: its quoted name, or an expression for its value, and its type. */
export type TypedColumn = { readonly name: string; readonly type: string }

/** The columns that a file has, by their names here. */
export type TypedColumns = ReadonlyMap<string, TypedColumn>

/** Whether text formats may write null as a word there (CONTRACT 7). */
export function hasNullWords(column: string): boolean {
  return column === 'app' || column === 'request_id'
}

/** A column of a text file, in which some words stand for null where the column is text. */
export function textColumn(column: string, name: string): TypedColumn {
  return { name: hasNullWords(column) ? `without_null_word(${name})` : name, type: 'VARCHAR' }
}

// A Parquet column without any value may be of the type "NULL".
const TIME = /^(?:DATE|TIMESTAMP(?:_S|_MS|_NS)?|"NULL")$/
const SMALL_INTEGER = /^(?:U?(?:TINYINT|SMALLINT|INTEGER)|BIGINT|"NULL")$/
const LARGE_NUMBER = /^(?:UBIGINT|U?HUGEINT|DECIMAL\(\d+,\d+\)|FLOAT|DOUBLE)$/
const NESTED = /^(?:STRUCT|MAP|UNION|VARIANT)\b|\]$/

/** From here on, neighbouring integers share a floating-point number of the type. */
const INEXACT_FROM: Readonly<Record<string, number>> = { FLOAT: 2 ** 24, DOUBLE: 2 ** 53 }

function timeOf({ name, type }: TypedColumn): string | undefined {
  if (type === 'TIMESTAMP WITH TIME ZONE') return `${name} AT TIME ZONE 'UTC'`
  if (TIME.test(type)) return `CAST(${name} AS TIMESTAMP)`
  return type === 'VARCHAR' ? `utc_from_text(${name})` : undefined
}

function countOf({ name, type }: TypedColumn): string | undefined {
  if (SMALL_INTEGER.test(type)) return `CAST(${name} AS BIGINT)`
  if (LARGE_NUMBER.test(type)) return `count_from_number(${name}, ${INEXACT_FROM[type] ?? 1e19})`
  return type === 'VARCHAR' ? `count_from_text(${name})` : undefined
}

/** The value as text; a list becomes JSON where the column may hold one, and any other nested value is none. */
function textOf({ name, type }: TypedColumn, { lists = [] }: Columns, column: string): string | undefined {
  if (!NESTED.test(type)) return `CAST(${name} AS VARCHAR)`
  return lists.includes(column) && type.endsWith(']') ? `CAST(to_json(${name}) AS VARCHAR)` : undefined
}

/** The types of usage; a column of no other is text. */
const USAGE_TYPES: Readonly<Record<string, 'TIMESTAMP' | 'BIGINT'>> = {
  ts: 'TIMESTAMP',
  app_id: 'BIGINT',
  prompt_tokens: 'BIGINT',
  completion_tokens: 'BIGINT',
  requests: 'BIGINT',
  row_count: 'BIGINT',
  reasoning_tokens: 'BIGINT',
  cached_tokens: 'BIGINT',
}

/**
 * The expressions for the usage columns of the view `incoming`.
 * @param app the expression for `app`, which is empty if a row names no app, and NULL if its app_id counts.
 * @throws DataError with a column whose type cannot hold its values.
 */
export function usageExpressions(files: string, types: TypedColumns, app = appOf(types)): string[] {
  return allColumns(PULLED_COLUMNS).map((name) => {
    const type = USAGE_TYPES[name] ?? 'VARCHAR'
    const column = types.get(name)
    const read = { TIMESTAMP: timeOf, BIGINT: countOf, VARCHAR: filledTextOf }[type]
    const found = column && read(column, name)
    if (column && !found && isValidated(PULLED_COLUMNS, name)) throw unsuitable(files, name, column)
    const value = (name === 'app' ? app : found) ?? `CAST(NULL AS ${type})`
    const isOneByDefault = name === 'requests' || name === 'row_count'
    return `${isOneByDefault ? `coalesce(${value}, 1)` : value} AS ${name}`
  })
}

/** An empty model is unknown anyway, and a text that is unchanged stays a dictionary. */
function filledTextOf(column: TypedColumn, name: string): string | undefined {
  const text = textOf(column, USAGE_COLUMNS, name)
  return text && (name === 'model' ? text : `nullif(${text}, '')`)
}

function appOf(types: TypedColumns): string | undefined {
  const [app, id] = [types.get('app'), types.get('app_id')]
  const text = app && `coalesce(CAST(${app.name} AS VARCHAR), '')`
  return text && id ? `CASE WHEN ${id.name} IS NULL THEN ${text} END` : text
}

/**
 * The expressions for the columns of the table `staged`, as text. A number that is no exact integer is marked.
 * @throws DataError with a column whose type cannot hold its values.
 */
export function stagedExpressions(file: string, types: TypedColumns, columns: Columns): string[] {
  return allColumns(columns).map((name) => {
    const column = types.get(name)
    const text = column && textOf(column, columns, name)
    if (column && !text && isValidated(columns, name)) throw unsuitable(file, name, column)
    if (column === undefined || text === undefined) return 'NULL'
    if (isAlternative(columns, name)) return `coalesce(${text}, '')`
    if (!LARGE_NUMBER.test(column.type)) return text
    return `coalesce(CAST(nullif(${countOf(column)}, -1) AS VARCHAR), ${text} || ' (not exact)')`
  })
}

function unsuitable(files: string, column: string, { type }: TypedColumn): DataError {
  return new DataError(`${files}: the column ${column} is of type ${type}, which cannot hold it`)
}
