/** Values in the form of DuckDB: bound as parameters, or written into a statement. */
import { DuckDBDateValue, DuckDBListValue, DuckDBTimestampTZValue } from '@duckdb/node-api'
import { millisecondsInDay } from 'date-fns/constants'

/** A UTC day, `YYYY-MM-DD`, as DATE. */
export function dateValue(day: string): DuckDBDateValue {
  return new DuckDBDateValue(Date.parse(day) / millisecondsInDay)
}

/** UTC days as a list. */
export function dateListValue(days: readonly string[]): DuckDBListValue {
  return new DuckDBListValue(days.map(dateValue))
}

/** Texts as a list. */
export function listValue(texts: readonly string[]): DuckDBListValue {
  return new DuckDBListValue([...texts])
}

/** A time as TIMESTAMPTZ. */
export function timeValue(time: Date): DuckDBTimestampTZValue {
  return new DuckDBTimestampTZValue(BigInt(time.getTime()) * 1000n)
}

/** A text as an SQL literal, for the few places where DuckDB accepts no parameter. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** A quoted SQL identifier. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A path for DuckDB's readers, with `*`, `?` and `[` escaped: there they are patterns. */
export function pathPattern(path: string): string {
  return path.replaceAll(/[[*?]/g, '[$&]')
}
