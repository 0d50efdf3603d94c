/**
 * The query that pulls a day. Rows that need judgement come as they are; only rows that no rule can reject are summed.
 * No alias equals a column, since ClickHouse would put the alias's expression in the column's place.
 */
import { addDays } from '../../contract/calendar.ts'
import { DataError } from '../../errors.ts'
import type { ClusterTable } from './table.ts'

const TIME = /^DateTime(?:64\(\d+(?:, '[^']+')?\)|\('[^']+'\))?$/
const INTEGER = /^(?:LowCardinality\()?(?:Nullable\()?U?Int\d+\)*$/
const TEXT = /^(?:LowCardinality\()?(?:Nullable\()?(?:String|FixedString\(\d+\)|UUID|Enum\d+\(.*\))\)*$/

/** The most requests that a valid row stands for. */
const MOST_REQUESTS = 1_000_000_000_000

/** The columns of usage that a table may have, with their type and what a group of rows has there. */
const COLUMNS = [
  { name: 'ts', type: TIME, isRequired: true, group: () => "toDateTime64(min(ts), 6, 'UTC')" },
  { name: 'app_id', type: INTEGER, isRequired: true, group: asItIs },
  { name: 'app', type: TEXT, isRequired: true, group: asItIs },
  { name: 'prompt_tokens', type: INTEGER, isRequired: true, group: sum },
  { name: 'completion_tokens', type: INTEGER, isRequired: true, group: sum },
  { name: 'requests', type: INTEGER, isRequired: true, group: sum },
  { name: 'request_id', type: TEXT, isRequired: true, group: () => "''" },
  { name: 'model', type: TEXT, isRequired: false, group: asItIs },
  { name: 'provider', type: TEXT, isRequired: false, group: asItIs },
  { name: 'account_id', type: TEXT, isRequired: false, group: asItIs },
  { name: 'app_title', type: TEXT, isRequired: false, group: first },
  { name: 'app_categories', type: TEXT, isRequired: false, group: first },
  { name: 'reasoning_tokens', type: INTEGER, isRequired: false, group: sum },
  { name: 'cached_tokens', type: INTEGER, isRequired: false, group: sum },
] as const

type ColumnName = (typeof COLUMNS)[number]['name']

/** Columns that only rows with the name of an app need. */
const OF_NAMED_APPS: readonly ColumnName[] = ['account_id', 'app_title', 'app_categories']

/** Rows that are alike in these are one group. */
const GROUP_KEYS: readonly ColumnName[] = ['app_id', 'app', 'model', 'provider', 'account_id']

/** @throws DataError for a missing column, or one of an unsuitable type. */
export function requireColumns({ name, types }: ClusterTable): void {
  const missing: ColumnName[] = (['ts', 'prompt_tokens', 'completion_tokens'] as const).filter(
    (column) => !types.has(column),
  )
  if (!types.has('app_id') && !types.has('app')) missing.push('app_id')
  if (missing.length > 0)
    throw new DataError(`${name} has no column ${missing.join(', ')}; see data/clickhouse.sql`)
  for (const { name: column, type, isRequired } of COLUMNS) {
    const found = types.get(column)
    if (!isRequired || found === undefined || type.test(found)) continue
    throw new DataError(`${name}: the column ${column} is of type ${found}, which cannot hold it`)
  }
}

/** Rows of one UTC day. */
export function onDay(day: string): string {
  return `ts >= ${midnight(day)} AND ts < ${midnight(addDays(day, 1))}`
}

function midnight(day: string): string {
  return `toDateTime64('${day} 00:00:00', 6, 'UTC')`
}

/** True for rows that no rule can reject. */
export function isPlain(table: ClusterTable): string {
  const [prompt, completion] = [valueOf(table, 'prompt_tokens'), valueOf(table, 'completion_tokens')]
  const [app, requests] = [valueOf(table, 'app'), valueOf(table, 'requests')]
  return (
    `(ifNull(${valueOf(table, 'app_id')} >= 0, ${app} != '') AND isValidUTF8(${app}) ` +
    `AND isNull(${prompt}) = isNull(${completion}) AND ifNull(${prompt}, 0) >= 0 AND ifNull(${completion}, 0) >= 0 ` +
    `AND ${requests} >= 0 AND ${requests} <= ${MOST_REQUESTS})`
  )
}

/** The rows of a day's file: columns as in CONTRACT 7, and `row_count`, the rows of the table that each stands for. */
export function pullQuery(table: ClusterTable, day: string): string {
  const isNamed = table.types.has('app')
  const columns = COLUMNS.filter(
    ({ name, type }) =>
      name === 'requests' ||
      (type.test(table.types.get(name) ?? '') && (isNamed || !OF_NAMED_APPS.includes(name))),
  )
  const select = (valueIn: (column: (typeof columns)[number]) => string, rowCount: string) =>
    [
      ...columns.map((column) => `${valueIn(column)} AS pulled_${column.name}`),
      `${rowCount} AS pulled_rows`,
    ].join(', ')
  const grouped = select(({ name, group }) => group(valueOf(table, name)), 'toInt64(count())')
  const alone = select(({ name }) => valueOf(table, name), 'toInt64(1)')
  const keys = columns.filter(({ name }) => GROUP_KEYS.includes(name)).map(({ name }) => `pulled_${name}`)
  const id = valueOf(table, 'request_id')
  const rowsOfDay = `FROM ${table.from} WHERE ${onDay(day)}`
  const repeated =
    `cityHash64(${id}) GLOBAL IN (SELECT cityHash64(${id}) AS id_hash ${rowsOfDay} AND ${id} != '' ` +
    'GROUP BY id_hash HAVING count() > 1)'
  const summed = `${isPlain(table)} AND (${id} = '' OR NOT ${repeated})`
  return `
    SELECT ${columns.map(({ name }) => `pulled_${name} AS ${name}`).join(', ')}, pulled_rows AS row_count
    FROM (
      SELECT ${grouped} ${rowsOfDay} AND ${summed} GROUP BY ${keys.join(', ')}, isNull(${valueOf(table, 'prompt_tokens')})
      UNION ALL
      SELECT ${alone} ${rowsOfDay} AND NOT (${summed})
    )`
}

/** The value of a row; for a column that the table lacks, what stands for none. */
function valueOf({ types }: ClusterTable, name: ColumnName): string {
  const column = COLUMNS.find((other) => other.name === name)
  const isThere = column?.type.test(types.get(name) ?? '') === true
  if (name === 'ts') return "toDateTime64(ts, 6, 'UTC')"
  if (column?.type === TEXT) return isThere ? `trimBoth(ifNull(toString(${name}), ''))` : "''"
  // A larger number than any valid count is invalid too.
  const value = isThere
    ? `if(isNull(${name}), NULL, ifNull(accurateCastOrNull(${name}, 'Int64'), -1))`
    : "CAST(NULL, 'Nullable(Int64)')"
  return name === 'requests' ? `ifNull(${value}, 1)` : value
}

function asItIs(value: string): string {
  return value
}

/** NULL for rows without a value; an error above 2^63. */
function sum(value: string): string {
  return `accurateCast(sum(toInt128(${value})), 'Nullable(Int64)')`
}

/** The value of the earliest row. */
function first(value: string): string {
  return `argMin(${value}, ts)`
}
