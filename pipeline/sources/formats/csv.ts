/** Reads CSV (RFC 4180): by DuckDB, or by lines where DuckDB or the rules reject a row, and for the registry and imports. */
import { DataError } from '../../errors.ts'
import { USAGE_COLUMNS, matchColumns, type Columns } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import { pathList, textColumn, type Scan } from '../incoming.ts'
import { LONGEST_LINE, prepareText, readLines } from './bytes.ts'
import type { Document } from './json.ts'

const QUOTE = 34

/** Columns in which a space before the value would make it another one. Numbers, times and models may have some. */
const TEXT_COLUMNS = ['app', 'request_id', 'provider', 'account_id']

/** A byte order mark, and lines without a value. */
const EMPTY_LINES = /^\uFEFF?(?:[\s,]*\n)?/

/** A quote inside of a quoted value stands twice, or behind a backslash as Spark and MySQL write it. */
const DOUBLED = quoting(String.raw`"([^"]*(?:""[^"]*)*)"(?!")`, /"(")/g)
const ESCAPED = quoting(String.raw`"([^"\\]*(?:\\[^][^"\\]*)*)"`, /\\(["\\])/g)

type Quoting = ReturnType<typeof quoting>

/**
 * @param quoted the form of a value between quotes.
 * @param escaped an escaped character there.
 */
function quoting(quoted: string, escaped: RegExp) {
  // The value and what is behind its quotes, or the value without quotes; then what ends the field.
  const value = String.raw`${quoted}([^,\n]*?)|(?![ \t"])([^,\n]*?)`
  return { field: new RegExp(String.raw`[ \t]*(?:${value})(,|\r?\n|$)`, 'y'), escaped }
}

/** Whether a quote stands behind a backslash where no value ends. */
function isEscaped(chunk: Buffer): boolean {
  return chunk.includes('\\"') && /\\"[ \t]*[^",\s]/.test(chunk.toString('latin1'))
}

/**
 * How DuckDB reads a file of usage; undefined if the file has to be read by lines.
 * @param copy the path for an unpacked copy.
 * @throws DataError with the file if it cannot be read or lacks a column.
 */
export async function scanCsv(file: RawFile, copy: string): Promise<Scan | undefined> {
  let quotes = 0
  let isOtherwise = false
  const { path, head } = await prepareText(file, copy, (chunk) => {
    isOtherwise ||= isEscaped(chunk)
    for (let at = chunk.indexOf(QUOTE); at >= 0; at = chunk.indexOf(QUOTE, at + 1)) quotes += 1
  })
  // DuckDB drops a last record with a quote that is not closed, in silence.
  if (head.trim() === '' || quotes % 2 === 1 || isOtherwise) return undefined
  const header = recordAt(head.replace(EMPTY_LINES, ''), 0, DOUBLED)?.values
  if (header === undefined) return undefined
  const matched = matchColumns(file.name, header, USAGE_COLUMNS)
  const types = new Map(
    [...matched].map(([column, position]) => {
      const name = `field_${position}`
      return [column, textColumn(column, TEXT_COLUMNS.includes(column) ? `ltrim(${name}, ' \t')` : name)]
    }),
  )
  const declared = header.map((_, position) => `field_${position}: 'VARCHAR'`).join(', ')
  // A thread that starts inside a quoted text may take its line breaks for the ends of rows.
  const rows = (paths: readonly string[]) =>
    `read_csv(${pathList(paths)}, columns = {${declared}}, header = true, delim = ',', quote = '"', escape = '"',
       comment = '', auto_detect = false, parallel = ${quotes === 0}, hive_partitioning = false)`
  const id = matched.get('request_id')
  return { path, types, rows, ...(id !== undefined && { fault: `id_violation(field_${id})` }) }
}

/**
 * The rows of a file below its header; empty fields are null.
 * @param columns those that the header must name.
 * @throws DataError with a quote that is not closed.
 */
export async function* readCsvRows(file: RawFile, columns: Columns): AsyncGenerator<Document> {
  const quotes = await findQuoting(file)
  let header: readonly string[] | undefined
  let line = 1
  let rest = ''
  for await (const chunk of readLines(file)) {
    rest += chunk.toString('utf8')
    let start = line === 1 && rest.startsWith('\uFEFF') ? 1 : 0
    while (start < rest.length) {
      const record = recordAt(rest, start, quotes)
      if (record === undefined) break
      if (header !== undefined) yield* rowsOf(header, record, line)
      else if (!isEmpty(record)) matchColumns(file.name, (header = record.values), columns)
      start += record.raw.length
      line += record.raw.split('\n').length - 1
    }
    rest = rest.slice(start)
    if (rest.length > LONGEST_LINE) break
  }
  if (rest !== '') {
    throw new DataError(
      `${file.name} cannot be read: line ${line} has a quote that is not closed. Expected comma-separated text (RFC 4180) in UTF-8`,
    )
  }
  if (header === undefined)
    throw new DataError(`${file.name} is empty: expected a first line with the column names`)
}

async function findQuoting(file: RawFile): Promise<Quoting> {
  for await (const chunk of readLines(file)) if (isEscaped(chunk)) return ESCAPED
  return DOUBLED
}

type CsvRecord = NonNullable<ReturnType<typeof recordAt>>

/**
 * The record at a position of a text, its values, and whether quotes are elsewhere than around and inside of these; undefined
 * if a quote is not closed.
 */
function recordAt(text: string, start: number, { field, escaped }: Quoting) {
  const values: string[] = []
  let hasStrayQuotes = false
  field.lastIndex = start
  for (;;) {
    const [, quoted, behind = '', plain = '', end] = field.exec(text) ?? []
    if (end === undefined) return undefined
    hasStrayQuotes ||= behind.trim() !== ''
    values.push(quoted?.replaceAll(escaped, '$1') ?? plain)
    if (end !== ',') return { raw: text.slice(start, field.lastIndex), values, hasStrayQuotes }
  }
}

/** Spreadsheets write commas for cells that were cleared. */
function isEmpty({ values }: CsvRecord): boolean {
  return values.every((value) => value.trim() === '')
}

/** The row of a record. Where it is broken, each of its lines is one that is rejected: a stray quote joins many rows. */
function rowsOf(header: readonly string[], record: CsvRecord, line: number): readonly Document[] {
  const { raw, values, hasStrayQuotes } = record
  if (isEmpty(record)) return []
  // Some programs end every row in a comma, but not the header.
  const isLonger = values.length === header.length + 1 && values.at(-1) === ''
  const isComplete = values.length === header.length || isLonger
  if (isComplete && !hasStrayQuotes) {
    const entries = header.map((name, index) => [name.trim(), values[index]?.replace(/^[ \t]+/, '') || null])
    return [{ row: line, value: Object.fromEntries(entries) }]
  }
  const count = isComplete ? 'stray quotes' : `${values.length} fields instead of ${header.length}`
  const remedy = '; put texts with commas or quotes into quotes, and double quotes inside'
  const fault = `broken line: ${count}${raw.includes('"') ? remedy : ''}`
  const lines = raw.trimEnd().split('\n')
  return lines.map((payload, index) => {
    return { row: line + index, value: undefined, fault, payload: payload.trimEnd() }
  })
}
