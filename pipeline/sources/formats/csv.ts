/** Reads CSV (RFC 4180): by DuckDB, or by lines where DuckDB or the rules reject a row, and for the registry and imports. */
import { pipeline, Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { parse as parseText } from 'csv-parse/sync'
import { z } from 'zod'
import { DataError } from '../../errors.ts'
import { USAGE_COLUMNS, matchColumns, type Columns } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import { named, pathList, textColumn, type Scan } from '../incoming.ts'
import { LONGEST_LINE, prepareText, readLines, unreadable } from './bytes.ts'
import type { Document } from './json.ts'

const QUOTE = 34

/** Columns in which a space before the value would make it another one. Numbers, times and models may have some. */
const TEXT_COLUMNS = ['app', 'request_id', 'provider', 'account_id']

/** Both readers take quotes inside of a field that has none around it, and spaces beside the quotes around a field. */
const DIALECT = {
  bom: true,
  ltrim: true,
  skip_empty_lines: true,
  // Spreadsheets write such rows for cells that were cleared.
  skip_records_with_empty_values: true,
  relax_column_count: true,
  relax_quotes: true,
  record_delimiter: ['\r\n', '\n'],
}

/** A record whose quotes are around its values, escaped inside of these, or inside of a value that has none around it. */
function recordOf(quoted: string): RegExp {
  const field = String.raw`[ \t]*(?:"${quoted}"[ \t]*|[^", \t\n][^,\n]*)?`
  return new RegExp(String.raw`^\s*${field}(?:,${field})*\s*$`)
}

/** A quote inside of a quoted value stands twice, or behind a backslash as Spark and MySQL write it. */
const DOUBLED = { escape: '"', form: recordOf(String.raw`[^"]*(?:""[^"]*)*`) }
const ESCAPED = { escape: '\\', form: recordOf(String.raw`[^"\\]*(?:\\[^][^"\\]*)*`) }

/** Whether a quote stands behind a backslash where no value ends. */
function isEscaped(chunk: Buffer): boolean {
  return chunk.includes('\\"') && /\\"[ \t]*[^",\s]/.test(chunk.toString('latin1'))
}

const headerSchema = z.tuple([z.array(z.string())])
const recordSchema = z.object({
  record: z.array(z.string()),
  raw: z.string(),
  info: z.object({ lines: z.int() }),
})

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
  if (head.trim() === '') throw withoutHeader(file)
  // DuckDB drops a last record with a quote that is not closed, in silence.
  if (quotes % 2 === 1 || isOtherwise) return undefined
  const found = headerSchema.safeParse(parseText(head, { ...DIALECT, to: 1 }))
  if (!found.success) return undefined
  const header = found.data[0].map(unquoted)
  const matched = matchColumns(file.name, header, USAGE_COLUMNS)
  const types = new Map(
    [...matched].map(([column, position]) => {
      const name = fieldName(position)
      const text = textColumn(column, TEXT_COLUMNS.includes(column) ? `ltrim(${name}, ' \t')` : name)
      return [column, named(USAGE_COLUMNS, column, text)]
    }),
  )
  const declared = header.map((_, position) => `${fieldName(position)}: 'VARCHAR'`).join(', ')
  // A thread that starts inside a quoted text may take its line breaks for the ends of rows.
  const rows = (paths: readonly string[]) =>
    `read_csv(${pathList(paths)}, columns = {${declared}}, header = true, delim = ',', quote = '"', escape = '"',
       comment = '', auto_detect = false, parallel = ${quotes === 0}, hive_partitioning = false)`
  const id = matched.get('request_id')
  return { path, types, rows, ...(id !== undefined && { fault: `id_violation(${fieldName(id)})` }) }
}

function fieldName(position: number): string {
  return `field_${position + 1}`
}

/**
 * The rows of a file below its header; empty fields are null.
 * @param columns those that the header must name.
 * @throws DataError with a quote that is not closed.
 */
export async function* readCsvRows(file: RawFile, columns: Columns): AsyncGenerator<Document> {
  const { escape, form } = await findQuoting(file)
  const parser = parse({ ...DIALECT, escape, info: true, raw: true, max_record_size: LONGEST_LINE })
  // Passes a fault of the file on to the parser.
  pipeline(Readable.from(readLines(file)), parser, () => undefined)
  let header: readonly string[] | undefined
  try {
    for await (const item of parser) {
      const { record, raw, info } = recordSchema.parse(item)
      const fields = record.map(unquoted)
      if (header === undefined) matchColumns(file.name, (header = fields), columns)
      else yield* readRecord(header, fields, { raw, line: info.lines }, form)
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw unreadable(file, error, '', [[/./, 'Expected comma-separated text (RFC 4180) in UTF-8']])
  }
  if (header === undefined) throw withoutHeader(file)
}

async function findQuoting(file: RawFile): Promise<typeof DOUBLED> {
  for await (const chunk of readLines(file)) if (isEscaped(chunk)) return ESCAPED
  return DOUBLED
}

/** The parser keeps the quotes of a field with a space behind the last one. */
function unquoted(field: string): string {
  return field.replace(/^[ \t]*"(.*)"[ \t]+$/s, '$1')
}

function withoutHeader({ name }: RawFile): DataError {
  return new DataError(`${name} is empty: expected a first line with the column names`)
}

/** A record as it stands in the file, and the line in which it ends. */
type RawRecord = { readonly raw: string; readonly line: number }

/** The row of a record. Where it is broken, each of its lines is one that is rejected: a stray quote joins many rows. */
function readRecord(
  header: readonly string[],
  fields: readonly string[],
  { raw, line }: RawRecord,
  form: RegExp,
) {
  // Some programs end every row in a comma.
  const isLonger = fields.length === header.length + 1 && fields.at(-1) === ''
  const isComplete = fields.length === header.length || isLonger
  if (isComplete && form.test(raw)) {
    const texts = header.map((name, index) => [name.trim(), fields[index]?.replace(/^[ \t]+/, '') || null])
    return [{ row: line, value: Object.fromEntries(texts) }]
  }
  const count = isComplete ? 'stray quotes' : `${fields.length} fields instead of ${header.length}`
  const remedy = raw.includes('"')
    ? '; put texts with commas or quotes into quotes, and double quotes inside'
    : ''
  const lines = raw.trimEnd().split('\n')
  return lines.map((payload, index) => {
    const fault = `broken line: ${count}${remedy}`
    return { row: line - lines.length + index + 1, value: undefined, fault, payload: payload.trimEnd() }
  })
}
