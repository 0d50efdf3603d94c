/** Makes DuckDB's queries for text files: its readers take a whole file or reject it loudly, and then it is read by lines. */
import { parse } from 'csv-parse/sync'
import { z } from 'zod'
import { DataError } from '../../errors.ts'
import { identifier, literal } from '../../duckdb/sql-values.ts'
import { USAGE_COLUMNS, allColumns, matchColumns, missingColumns, plainName } from '../columns.ts'
import type { TypedColumn, TypedColumns } from '../typed-columns.ts'
import { isRecord, noHeader, parseExactly } from './documents.ts'
import { pathLiteral } from './parquet-file.ts'
import { LONGEST_LINE } from './text-file.ts'
import type { TextFile } from './text-file.ts'

/** How DuckDB reads files of one layout. */
export type Layout = {
  /** The table function and its options, except the files. */
  readonly rows: (paths: string) => string
  readonly types: TypedColumns
  /** An expression for a fault that only the reading by lines can describe; undefined if there is none. */
  readonly fault?: string
}

const headerSchema = z.tuple([z.array(z.string())])

/**
 * The layout of a text file of usage; undefined if the file has to be read by lines.
 * @throws DataError if the file has no columns of usage.
 */
export function layoutOf(text: TextFile): Layout | undefined {
  return text.file.format === 'csv' ? csvLayout(text) : jsonLayout(text)
}

function csvLayout(text: TextFile): Layout | undefined {
  const { file, head, hasQuotes, hasOpenQuote, longest } = text
  if (head.trim() === '') throw noHeader(file)
  const options = { to: 1, relax_quotes: true, skip_empty_lines: true, record_delimiter: ['\r\n', '\n'] }
  const found = headerSchema.safeParse(parse(head, options))
  if (!found.success || hasOpenQuote || longest >= LONGEST_LINE) return undefined
  const [header] = found.data
  const types = new Map<string, TypedColumn>()
  for (const [column, position] of matchColumns(file.name, header, USAGE_COLUMNS)) {
    types.set(column, typed(column, fieldName(position)))
  }
  const declared = header.map((_, position) => `${fieldName(position)}: 'VARCHAR'`).join(', ')
  // A thread that starts inside a quoted text may take its line breaks for the ends of rows.
  const rows = (paths: string) =>
    `read_csv([${paths}], columns = {${declared}}, header = true, delim = ',', quote = '"', escape = '"', comment = '',
       auto_detect = false, parallel = ${!hasQuotes}, hive_partitioning = false, filename = 'path')`
  return { rows, types }
}

function fieldName(position: number): string {
  return `field_${position + 1}`
}

/** The keys are spelled as in the first line; a file with other spellings further on is read by lines. */
function jsonLayout({ file, head }: TextFile): Layout | undefined {
  if (head.trimStart().startsWith('[')) {
    throw new DataError(
      `${file.name} is a JSON list; a file here has one JSON object per line. ` +
        'Move it away, and take it in with npm run nightly -- import FILE',
    )
  }
  const names = firstKeys(head)
  const plain = names.map(plainName)
  if (missingColumns(USAGE_COLUMNS, plain).length > 0 || new Set(plain).size < plain.length) return undefined
  const keys = allColumns(USAGE_COLUMNS).map(
    (column) => [column, names[plain.indexOf(column)] ?? column] as const,
  )
  const declared = keys.map(([, key]) => `${literal(key)}: 'VARCHAR'`).join(', ')
  const types = new Map(keys.map(([column, key]) => [column, typed(column, identifier(key))]))
  const nested = ['app', 'request_id'].map((column) => {
    const { name } = types.get(column) ?? { name: 'NULL' }
    return `WHEN starts_with(${name}, '{') OR starts_with(${name}, '[') THEN '${column} is nested'`
  })
  return {
    rows: (paths) =>
      `read_json([${paths}], format = 'newline_delimited', columns = {${declared}}, hive_partitioning = false, filename = 'path')`,
    types,
    fault: `CASE ${nested.join(' ')} END`,
  }
}

function firstKeys(head: string): readonly string[] {
  try {
    const value = parseExactly(head.trimStart().split('\n', 1).join(''))
    return isRecord(value) ? Object.keys(value) : []
  } catch {
    return []
  }
}

function typed(column: string, name: string): TypedColumn {
  const hasNullWords = column === 'app' || column === 'request_id'
  return { name: hasNullWords ? `without_null_word(${name})` : name, type: 'VARCHAR' }
}

/** The paths of files for a layout. */
export function pathsOf(texts: readonly TextFile[]): string {
  return texts.map(({ path }) => pathLiteral(path)).join(', ')
}
