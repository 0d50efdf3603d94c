/** Values of ours as DuckDB takes them: bound to parameters, or written into a statement. */
import { DuckDBDateValue, DuckDBListValue, DuckDBTimestampTZValue } from '@duckdb/node-api'

/** A UTC day, `YYYY-MM-DD`, as DuckDB DATE. */
export function dateValue(day: string): DuckDBDateValue {
  return new DuckDBDateValue(Date.parse(`${day}T00:00:00Z`) / 86_400_000)
}

/** UTC days as DuckDB list. */
export function dateListValue(days: readonly string[]): DuckDBListValue {
  return new DuckDBListValue(days.map(dateValue))
}

/** Texts as DuckDB list. */
export function listValue(texts: readonly string[]): DuckDBListValue {
  return new DuckDBListValue([...texts])
}

/** A time as DuckDB TIMESTAMPTZ. */
export function timeValue(time: Date): DuckDBTimestampTZValue {
  return new DuckDBTimestampTZValue(BigInt(time.getTime()) * 1000n)
}

/** A text as SQL literal, for the few places where DuckDB takes no parameter. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** An identifier for SQL, quoted. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** A path as DuckDB's readers take it, for which `*`, `?` and `[` in it would be a pattern. */
export function pathPattern(path: string): string {
  return path.replaceAll(/[[*?]/g, '[$&]')
}
