/** Reads NDJSON: by DuckDB, or by lines where DuckDB or the rules reject a row, and for the registry and imports. */
import { Readable } from 'node:stream'
import { text as textOfStream } from 'node:stream/consumers'
import { DataError, messageOf } from '../../errors.ts'
import { identifier, literal } from '../../duckdb/sql-values.ts'
import { USAGE_COLUMNS, allColumns, missingColumns, plainName, textColumn } from '../columns.ts'
import type { TypedColumns } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import type { Scan } from '../incoming.ts'
import { prepareText, readLines } from './bytes.ts'

/** A JSON object, or a row of a table as an object of its texts. */
export type Document = {
  /** Line of a text file; otherwise number of the row or element, from 1. */
  readonly row: number
  readonly value: unknown
  /** Why the line is no document, and the line. */
  readonly fault?: string
  readonly payload?: string
}

/** Stands for bytes and characters that are no text. */
export const NO_TEXT = '\uFFFD'

const LINE_FEED = 10

/**
 * How DuckDB reads a file of usage; undefined if the file has to be read by lines. Its keys are those of the first line.
 * @param copy the path for an unpacked copy.
 * @throws DataError with the file if it cannot be read, or is one JSON list.
 */
export async function scanJsonLines(file: RawFile, copy: string): Promise<Scan | undefined> {
  const { path, head } = await prepareText(file, copy)
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
  const types: TypedColumns = new Map(
    keys.map(([column, key]) => [column, textColumn(column, identifier(key))]),
  )
  const isNested = ['app', 'request_id'].map((column) => {
    const key = identifier(keys.find(([name]) => name === column)?.[1] ?? column)
    return `starts_with(${key}, '{') OR starts_with(${key}, '[')`
  })
  return {
    path,
    types,
    rows: (paths) =>
      `read_json(${paths}, format = 'newline_delimited', columns = {${declared}}, hive_partitioning = false)`,
    fault: `CASE WHEN ${isNested.join(' OR ')} THEN 'nested' END`,
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

/** Whether a key of tokens, or of the app, stands on fewer lines than the key of the time: a misspelt key is not null. */
export async function lacksKeys(file: RawFile): Promise<boolean> {
  const { required, alternative } = USAGE_COLUMNS
  const counts = new Map<string, number>(required.map((column) => [column, 0]))
  const keys = [...required.map((column) => [column, column]), ['app_id', alternative.app_id]]
  for await (const chunk of readLines(file)) {
    for (const [column = '', name] of keys) {
      const key = `"${name}"`
      for (let at = chunk.indexOf(key); at >= 0; at = chunk.indexOf(key, at + 1)) {
        counts.set(column, (counts.get(column) ?? 0) + 1)
      }
    }
  }
  return [...counts.values()].some((count) => count < (counts.get('ts') ?? 0))
}

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
