/**
 * Reads text files document by document, with line and fault: the second reading of a file with a row that DuckDB's readers
 * or the rules do not take, and the reading of the registry and of imports.
 */
import { pipeline, Readable } from 'node:stream'
import { text as textOfStream } from 'node:stream/consumers'
import { CsvError, parse } from 'csv-parse'
import { z } from 'zod'
import { DataError, messageOf } from '../../errors.ts'
import {
  allColumns,
  isAlternative,
  isValidated,
  matchColumns,
  missingColumns,
  plainName,
} from '../columns.ts'
import type { Columns } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import { LONGEST_LINE, readLines } from './text-file.ts'

/** A JSON object, or a row of a table as an object of its texts. */
export type Document = {
  /** Line of a text file; otherwise number of the row or element, from 1. */
  readonly row: number
  readonly value: unknown
  /** Why the line is no document, and the line. */
  readonly fault?: string
  readonly payload?: string
}

/** A row as texts in the order of `allColumns`; null if a value is null or missing. */
export type TextRow = {
  readonly row: number
  readonly values: readonly (string | null)[]
  readonly fault?: string | undefined
  readonly payload?: string | undefined
}

/** Stands for bytes and characters that are no text. */
const NO_TEXT = '\uFFFD'

/** Characters that no app may hold. */
const CONTROL = /(?!\s)\p{Cc}/u

/** How text formats write null where the column is text. */
const NULL_WORDS: readonly (string | null)[] = ['\\N', 'NULL', 'null', 'NA']
const WITH_NULL_WORDS: readonly string[] = ['app', 'request_id']

const LINE_FEED = 10

/** The documents of a file of JSON lines. */
export async function* readJsonLines(file: RawFile): AsyncGenerator<Document> {
  let row = 0
  for await (const chunk of readLines(file)) {
    for (let start = 0; start < chunk.length;) {
      const found = chunk.indexOf(LINE_FEED, start)
      const end = found < 0 ? chunk.length : found
      const line = chunk.toString('utf8', start, end)
      start = end + 1
      row += 1
      const content = (row === 1 ? line.replace(/^\uFEFF/, '') : line).trim()
      if (content !== '') yield { row, ...parseLine(content) }
    }
  }
}

function parseLine(line: string): Omit<Document, 'row'> {
  // JSON forbids bare control characters; a column that is not used may hold some all the same.
  for (const form of [line, line.replaceAll(/\p{Cc}/gu, NO_TEXT)]) {
    try {
      const value = parseExactly(form)
      if (isRecord(value)) return { value }
    } catch {
      // The fault below says it.
    }
  }
  return { value: undefined, fault: 'not a JSON object', payload: line }
}

/**
 * The elements of one JSON document: of a list, or itself.
 * @throws DataError if it is no JSON.
 */
export async function* readWholeJson(file: RawFile): AsyncGenerator<Document> {
  const content = (await textOfStream(Readable.from(readLines(file)))).replace(/^\uFEFF/, '')
  try {
    for (const [index, value] of [parseExactly(content)].flat().entries()) yield { row: index + 1, value }
  } catch (error) {
    throw new DataError(`${file.name} is not JSON: ${messageOf(error)}`, { cause: error })
  }
}

/** The source text that JSON.parse passes to its reviver; TypeScript's types lack it. */
type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown

const keepDigits: Reviver = (_key, value, context) =>
  typeof value !== 'number' ? value : Number.isSafeInteger(value) ? String(value) : context?.source

/** Parses JSON with numbers as text, so that they keep their digits. */
export function parseExactly(json: string): unknown {
  return JSON.parse(json, keepDigits)
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const csvRecord = z.object({
  record: z.array(z.string()),
  raw: z.string(),
  info: z.object({ lines: z.int() }),
})

/**
 * The rows of a CSV file (RFC 4180) below its header; empty fields are null.
 * @param columns those that the header must name.
 * @throws DataError with a quote that is not closed.
 */
export async function* readCsvRows(file: RawFile, columns: Columns): AsyncGenerator<Document> {
  const parser = parse({
    bom: true,
    info: true,
    raw: true,
    skip_empty_lines: true,
    relax_column_count: true,
    relax_quotes: true,
    record_delimiter: ['\r\n', '\n'],
    max_record_size: 5 * LONGEST_LINE,
  })
  // Passes a fault of the file on to the parser.
  pipeline(Readable.from(readLines(file)), parser, () => undefined)
  let header: readonly string[] | undefined
  try {
    for await (const item of parser) {
      const { record, raw, info } = csvRecord.parse(item)
      if (header === undefined) matchColumns(file.name, (header = record), columns)
      else yield csvDocument(header, record, { row: info.lines, payload: raw.trimEnd() })
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new DataError(
      `${file.name} cannot be read: ${error.message}. Expected comma-separated text (RFC 4180) in UTF-8`,
      { cause: error },
    )
  }
  if (header === undefined) throw noHeader(file)
}

export function noHeader({ name }: RawFile): DataError {
  return new DataError(`${name} is empty: expected a first line with the column names`)
}

function csvDocument(
  header: readonly string[],
  record: readonly string[],
  { row, payload }: { readonly row: number; readonly payload: string },
): Document {
  // Some programs end every row in a comma.
  const fields = record.length === header.length + 1 && record.at(-1) === '' ? header.length : record.length
  if (fields === header.length) {
    const pairs = header.map((name, index) => [name.trim(), record[index] === '' ? null : record[index]])
    return { row, value: Object.fromEntries(pairs) }
  }
  const fault = `broken line: ${fields} fields instead of ${header.length}`
  return { row, value: undefined, fault, payload }
}

/** A document as a row of the columns, or with its fault. */
export function textRow({ row, value, fault, payload }: Document, columns: Columns): TextRow {
  const names = allColumns(columns)
  if (!isRecord(value)) return { row, values: names.map(() => null), fault, payload }
  const found = Map.groupBy(Object.entries(value), ([name]) => plainName(name))
  const values = names.map((name) => textOf(found.get(name)?.[0]?.[1], columns, name))
  const violation = names
    .map((name, index) => columnFault(found.get(name) ?? [], values[index] ?? null, columns, name))
    .find((each) => each !== undefined)
  const [missing] = missingColumns(columns, [...found.keys()])
  const reason = missing === undefined ? violation : `the key ${missing} is missing`
  return reason === undefined
    ? {
        row,
        values: names.map((name, index) => plainText(found.has(name), values[index] ?? null, columns, name)),
      }
    : { row, values, fault: reason, payload: payload ?? JSON.stringify(value) }
}

function textOf(value: unknown, { lists = [] }: Columns, name: string): string | null {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || typeof value === 'number') return String(value)
  return Array.isArray(value) && lists.includes(name) ? JSON.stringify(value) : null
}

function columnFault(
  found: readonly (readonly [string, unknown])[],
  text: string | null,
  columns: Columns,
  name: string,
): string | undefined {
  if (!isValidated(columns, name)) return undefined
  const [first, second] = found
  if (second !== undefined) return `the key ${name} stands twice: ${first?.[0]} and ${second[0]}`
  if (text === null && typeof first?.[1] === 'object' && first[1] !== null) {
    return `${name} is an object or a list, not one value`
  }
  return text === null || isReadable(text, name) ? undefined : `${name} is not readable text in UTF-8`
}

function isReadable(text: string, name: string): boolean {
  return text.isWellFormed() && !text.includes(NO_TEXT) && !(name === 'app' && CONTROL.test(text))
}

/** The text that counts: empty for an alternative that names no app, null for a word that stands for it. */
function plainText(isThere: boolean, text: string | null, columns: Columns, name: string): string | null {
  const isNull = WITH_NULL_WORDS.includes(name) && NULL_WORDS.includes(text)
  const known = isNull || text?.isWellFormed() === false ? null : text
  return isAlternative(columns, name) && isThere ? (known ?? '') : known
}
