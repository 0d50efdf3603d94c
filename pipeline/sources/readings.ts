/** How each column of usage is read from each DuckDB type: one rule for every format. */
import { literal } from '../duckdb/sql-values.ts'
import { allColumns, isDecisive, USAGE_COLUMNS } from './columns.ts'

/** A column of a file in DuckDB: its quoted name, or an expression for its value, and its type. */
export type TypedColumn = { readonly name: string; readonly type: string }

/** A file's columns of usage. */
export type TypedColumns = ReadonlyMap<string, TypedColumn>

/** Makes the expression that reads a column of a type; undefined if the type cannot hold such a value. */
type Reading = (column: TypedColumn, types: TypedColumns) => string | undefined

export const FITS_64_BITS = /^(?:U?(?:TINYINT|SMALLINT|INTEGER)|BIGINT)$/
const OTHER_NUMBER = /^(?:UBIGINT|U?HUGEINT|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\))$/
const TIME_WITH_ZONE = 'TIMESTAMP WITH TIME ZONE'
export const TIME = /^(?:DATE|TIMESTAMP(?:_S|_MS|_NS| WITH TIME ZONE)?)$/
const PROVIDER_CHARACTERS = 100
const NESTED_TYPE = /^(?:STRUCT|MAP|UNION|VARIANT)\b|\]$/

/** From here on, neighbouring integers share a floating-point number of the type. */
const INEXACT_FROM: Readonly<Record<string, string>> = { FLOAT: '16777216', DOUBLE: '9007199254740992' }

const readTime: Reading = ({ name, type }) => {
  if (type === TIME_WITH_ZONE) return `${name} AT TIME ZONE 'UTC'`
  if (TIME.test(type)) return `CAST(${name} AS TIMESTAMP)`
  return type === 'VARCHAR' ? `utc_from_text(${name})` : undefined
}

/** The digits of a time beyond microseconds, so that rows which differ only in them do not tie. */
const readBelowMicrosecond: Reading = ({ name, type }) => {
  if (type === 'VARCHAR') return `digits_below_microsecond(${name})`
  return type === 'TIMESTAMP_NS' ? `lpad(CAST(epoch_ns(${name}) % 1000 AS VARCHAR), 3, '0')` : "''"
}

const readId: Reading = ({ name, type }) => {
  if (FITS_64_BITS.test(type)) return `CAST(${name} AS BIGINT)`
  if (OTHER_NUMBER.test(type)) return `id_from_number(${name})`
  return type === 'VARCHAR' ? `id_from_text(${name})` : undefined
}

const readCount: Reading = ({ name, type }) => {
  if (FITS_64_BITS.test(type)) return name
  if (OTHER_NUMBER.test(type)) return `count_from_number(${name})`
  return type === 'VARCHAR' ? `count_from_text(${name})` : undefined
}

const readRequests: Reading = (column, types) => {
  const count = readCount(column, types)
  return count && `coalesce(${count}, 1)`
}

const readText = ({ name, type }: TypedColumn) =>
  NESTED_TYPE.test(type) ? undefined : `nullif(CAST(${name} AS VARCHAR), '')`

/** A provider's name is kept whole; longer texts count as unknown. */
const readProvider: Reading = (column) => {
  const text = readText(column)
  return text && `CASE WHEN len(${text}) <= ${PROVIDER_CHARACTERS} THEN ${text} END`
}

/** A list becomes JSON. */
const readList: Reading = (column) => {
  const text = textExpression(column, true)
  return text && `nullif(${text}, '')`
}

const readModel: Reading = (column) => {
  const text = readText(column)
  return text && `model_from_text(${text})`
}

/** Tokens that are part of a count; unknown if the value is broken. */
function partOf(whole: string): Reading {
  return (column, types) => {
    const counted = types.get(whole)
    const [part, count] = [readCount(column, types), counted && readCount(counted, types)]
    return part && count && `CASE WHEN ${part} >= 0 AND ${part} <= ${count} THEN ${part} END`
  }
}

/** The columns of `incoming`: their source columns, and their values if the file lacks the column or cannot hold it. */
const USAGE_READINGS: readonly { as: string; from: string; read: Reading; missing?: string }[] = [
  { as: 'ts', from: 'ts', read: readTime },
  { as: 'below_microsecond', from: 'ts', read: readBelowMicrosecond },
  { as: 'app_id', from: 'app_id', read: readId },
  { as: 'prompt_tokens', from: 'prompt_tokens', read: readCount },
  { as: 'completion_tokens', from: 'completion_tokens', read: readCount },
  { as: 'requests', from: 'requests', read: readRequests, missing: '1' },
  { as: 'request_id', from: 'request_id', read: readText, missing: 'CAST(NULL AS VARCHAR)' },
  { as: 'provider', from: 'provider', read: readProvider, missing: 'CAST(NULL AS VARCHAR)' },
  { as: 'model', from: 'model', read: readModel, missing: 'CAST(NULL AS VARCHAR)' },
  { as: 'account_id', from: 'account_id', read: readText, missing: 'CAST(NULL AS VARCHAR)' },
  { as: 'app_title', from: 'app_title', read: readText, missing: 'CAST(NULL AS VARCHAR)' },
  { as: 'app_categories', from: 'app_categories', read: readList, missing: 'CAST(NULL AS VARCHAR)' },
  {
    as: 'reasoning_tokens',
    from: 'reasoning_tokens',
    read: partOf('completion_tokens'),
    missing: 'CAST(NULL AS HUGEINT)',
  },
  {
    as: 'cached_tokens',
    from: 'cached_tokens',
    read: partOf('prompt_tokens'),
    missing: 'CAST(NULL AS HUGEINT)',
  },
]

const NUMBERS = ['app_id', 'prompt_tokens', 'completion_tokens', 'requests']

/** A column with an unsuitable type. */
export type UnfitColumn = { readonly column: string; readonly type: string }

/** The first column with an unsuitable type. */
export function findUnfit(types: TypedColumns): UnfitColumn | undefined {
  for (const { from, read } of USAGE_READINGS) {
    const column = types.get(from)
    if (column !== undefined && isDecisive(USAGE_COLUMNS, from) && read(column, types) === undefined) {
      return { column: from, type: column.type }
    }
  }
  return undefined
}

/** The expressions for the columns of `incoming` except file, row and lines; includes `fault` and `payload`. */
export function incomingColumns(
  types: TypedColumns,
  kept: { fault: string; payload: string; app: string },
): string[] {
  const values = USAGE_READINGS.map(({ as, from, read, missing = 'NULL' }) => {
    const column = types.get(from)
    return `${(column && read(column, types)) ?? missing} AS ${as}`
  })
  const present = allColumns(USAGE_COLUMNS).filter(
    (column) => types.has(column) && isDecisive(USAGE_COLUMNS, column),
  )
  const object = present.map((column) => `${column}: ${types.get(column)?.name}`).join(', ')
  return [
    `coalesce(${kept.fault}, ${inexactFault(types)}) AS fault`,
    ...values,
    `${kept.app} AS app`,
    `coalesce(${kept.payload}, CAST(to_json({${object}}) AS VARCHAR)) AS payload`,
  ]
}

/** The text by which a row names its app; empty if it names none, NULL if its app_id counts. */
export function appExpression(types: TypedColumns): string {
  const app = types.get('app')
  const id = types.get('app_id')
  const text = app && readText(app)
  if (text === undefined) return 'CAST(NULL AS VARCHAR)'
  return id === undefined
    ? `coalesce(${text}, '')`
    : `CASE WHEN ${id.name} IS NULL THEN coalesce(${text}, '') END`
}

/** The violation of a rounded number. */
function inexactFault(types: TypedColumns): string {
  const branches = NUMBERS.flatMap((column) => {
    const found = types.get(column)
    const isInexact = found && inexactCondition(found)
    const reason = `${column} is not exact: a floating-point number may have been rounded, write it as an integer`
    return isInexact === undefined ? [] : [`WHEN ${isInexact} THEN ${literal(reason)}`]
  })
  return branches.length === 0 ? 'CAST(NULL AS VARCHAR)' : `CASE ${branches.join(' ')} END`
}

function inexactCondition({ name, type }: TypedColumn): string | undefined {
  if (type === 'VARCHAR') return `is_inexact_text(${name})`
  const least = INEXACT_FROM[type]
  return least && `isfinite(${name}) AND abs(${name}) >= ${least} AND abs(${name}) <= 1e27`
}

/**
 * A value as text; undefined for an object, or for a list in a column without lists. A whole number becomes its digits:
 * `1e16` and `1.000` would not be integers. A number that may have been rounded gets an exponent.
 */
export function textExpression({ name, type }: TypedColumn, mayBeList: boolean): string | undefined {
  const text = `CAST(${name} AS VARCHAR)`
  if (NESTED_TYPE.test(type)) {
    return mayBeList && type.endsWith(']') ? `CAST(to_json(${name}) AS VARCHAR)` : undefined
  }
  const whole = `CASE WHEN ${name} = floor(${name}) THEN CAST(TRY_CAST(${name} AS HUGEINT) AS VARCHAR) END`
  const least = INEXACT_FROM[type]
  if (least !== undefined) {
    return `CASE WHEN isfinite(${name}) AND abs(${name}) >= ${least} THEN format('{:.16e}', ${name}) ELSE coalesce(${whole}, ${text}) END`
  }
  return type.startsWith('DECIMAL') ? `coalesce(${whole}, ${text})` : text
}
