/** How each column of usage is read from each DuckDB type: one rule for every format. */
import { DataError } from '../errors.ts'
import { USAGE_COLUMNS, allColumns, isValidated } from './columns.ts'

/** A column of a file in DuckDB: its quoted name, or an expression for its value, and its type. */
export type TypedColumn = { readonly name: string; readonly type: string }

/** The columns of usage that a file has. */
export type TypedColumns = ReadonlyMap<string, TypedColumn>

/** Makes the expression that reads a column; undefined if its type cannot hold such a value. */
type Read = (column: TypedColumn) => string | undefined

const SMALL_INTEGER = /^(?:U?(?:TINYINT|SMALLINT|INTEGER)|BIGINT)$/
const LARGE_NUMBER = /^(?:UBIGINT|U?HUGEINT|DECIMAL\(\d+,\d+\))$/
const TIME = /^(?:DATE|TIMESTAMP(?:_S|_MS|_NS)?)$/
const NESTED = /^(?:STRUCT|MAP|UNION|VARIANT)\b|\]$/

/** From here on, neighbouring integers share a floating-point number of the type. */
const INEXACT_FROM: Readonly<Record<string, number>> = { FLOAT: 2 ** 24, DOUBLE: 2 ** 53 }

const readTime: Read = ({ name, type }) => {
  if (type === 'TIMESTAMP WITH TIME ZONE') return `${name} AT TIME ZONE 'UTC'`
  if (TIME.test(type)) return `CAST(${name} AS TIMESTAMP)`
  return type === 'VARCHAR' ? `utc_from_text(${name})` : undefined
}

const readCount: Read = ({ name, type }) => {
  if (SMALL_INTEGER.test(type)) return `CAST(${name} AS BIGINT)`
  if (LARGE_NUMBER.test(type)) return `count_from_number(${name}, 1e19)`
  const inexact = INEXACT_FROM[type]
  if (inexact !== undefined) return `count_from_number(${name}, ${inexact})`
  return type === 'VARCHAR' ? `count_from_text(${name})` : undefined
}

/** A list becomes JSON where the column may hold one. */
function readText(mayBeList: boolean): Read {
  return ({ name, type }) => {
    if (!NESTED.test(type)) return `nullif(CAST(${name} AS VARCHAR), '')`
    return mayBeList && type.endsWith(']') ? `CAST(to_json(${name}) AS VARCHAR)` : undefined
  }
}

const READ: Readonly<Record<string, Read>> = {
  ts: readTime,
  app_categories: readText(true),
  ...Object.fromEntries(
    [
      'app_id',
      'prompt_tokens',
      'completion_tokens',
      'requests',
      'row_count',
      'reasoning_tokens',
      'cached_tokens',
    ].map((column) => [column, readCount]),
  ),
}

const TYPES: Readonly<Record<string, string>> = { ts: 'TIMESTAMP' }

/** The value of a column that a file lacks. */
function missingValue(column: string): string {
  if (column === 'requests' || column === 'row_count') return 'CAST(1 AS BIGINT)'
  return `CAST(NULL AS ${TYPES[column] ?? (READ[column] === readCount ? 'BIGINT' : 'VARCHAR')})`
}

/**
 * The expressions for the usage columns of the view `incoming`.
 * @param app where the row's `app` counts: not beside an app_id.
 * @throws DataError with a column whose type cannot hold its values.
 */
export function usageExpressions(files: string, types: TypedColumns): string[] {
  return allColumns(USAGE_COLUMNS).map((name) => {
    const column = types.get(name)
    const value = column && (READ[name] ?? readText(false))(column)
    if (column !== undefined && value === undefined && isValidated(USAGE_COLUMNS, name)) {
      throw new DataError(`${files}: the column ${name} is of type ${column.type}, which cannot hold it`)
    }
    if (name === 'app') return `${appExpression(value, types)} AS app`
    const isDefault = name === 'requests' || name === 'row_count'
    return `${value === undefined ? missingValue(name) : isDefault ? `coalesce(${value}, 1)` : value} AS ${name}`
  })
}

/** The text by which a row names its app; empty if it names none, NULL if its app_id counts. */
function appExpression(text: string | undefined, types: TypedColumns): string {
  if (text === undefined) return 'CAST(NULL AS VARCHAR)'
  const id = types.get('app_id')
  return id === undefined
    ? `coalesce(${text}, '')`
    : `CASE WHEN ${id.name} IS NULL THEN coalesce(${text}, '') END`
}

/** A value of a Parquet column as text for staging; a floating-point number that may be rounded is marked. */
export function stagedText({ name, type }: TypedColumn, mayBeList: boolean): string | undefined {
  if (NESTED.test(type))
    return mayBeList && type.endsWith(']') ? `CAST(to_json(${name}) AS VARCHAR)` : undefined
  const text = `CAST(${name} AS VARCHAR)`
  const inexact = INEXACT_FROM[type]
  const whole = `CASE WHEN ${name} = floor(${name}) THEN CAST(TRY_CAST(${name} AS HUGEINT) AS VARCHAR) END`
  if (inexact !== undefined) {
    return `CASE WHEN abs(${name}) >= ${inexact} THEN ${text} || ' (rounded)' ELSE coalesce(${whole}, ${text}) END`
  }
  return type.startsWith('DECIMAL') ? `coalesce(${whole}, ${text})` : text
}
