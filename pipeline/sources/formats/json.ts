/** Reads NDJSON: by DuckDB, or by lines where DuckDB or the rules reject a row, and for the registry and imports. */
import { Readable } from 'node:stream'
import { text as textOfStream } from 'node:stream/consumers'
import { DataError, messageOf } from '../../errors.ts'
import { identifier, literal } from '../../duckdb/sql-values.ts'
import { USAGE_COLUMNS, allColumns, missingColumns, plainName, textColumn } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import { pathList } from '../incoming.ts'
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

/** A string, or what DuckDB takes beside JSON: a comma behind the last value, NaN and infinity. */
const BESIDE_JSON = /("[^"\\]*(?:\\.[^"\\]*)*")|,(?=\s*[}\]])|(-?\b(?:nan|inf(?:inity)?)\b)/gi

type Convert = (text: string) => string

const LETTER_CASES: readonly Convert[] = [(name) => name.toLowerCase(), (name) => name.toUpperCase()]

/** A line as it is; without bare control characters, which a column that is not used may hold; as DuckDB takes it. */
const FORMS_OF_LINE: readonly Convert[] = [(line) => line, withoutControls, strictJson]

/**
 * How DuckDB reads a file of usage; undefined if the file has to be read by lines. Its keys are those of the first line; keys
 * that the first line lacks are in the same letters, lower or upper case.
 * @param copy the path for an unpacked copy.
 * @throws DataError with the file if it cannot be read, or is one JSON list.
 */
export async function scanJsonLines(file: RawFile, copy: string): Promise<Scan | undefined> {
  const { path, head } = await prepareText(file, copy)
  const first = head.trimStart().split('\n', 1).join('')
  if (first.startsWith('[')) {
    throw new DataError(
      `${file.name} is a JSON list; a file here has one JSON object per line. ` +
        'Move it away, and take it in with npm run nightly -- import FILE',
    )
  }
  const { value } = parseLine(first)
  const names = isRecord(value) ? Object.keys(value) : []
  const plain = names.map(plainName)
  if (missingColumns(USAGE_COLUMNS, plain).length > 0 || new Set(plain).size < plain.length) return undefined
  const columns = allColumns(USAGE_COLUMNS)
  const known = names.filter((_, index) => columns.some((column) => column === plain[index]))
  const inCase = LETTER_CASES.find((convert) => known.every((name) => name === convert(name)))
  if (inCase === undefined) return undefined
  const keyOf = (column: string) => names[plain.indexOf(column)] ?? inCase(column)
  const declared = columns.map((column) => `${literal(keyOf(column))}: 'VARCHAR'`).join(', ')
  const isNested = ['app', 'request_id'].map((column) => {
    const key = identifier(keyOf(column))
    return `starts_with(${key}, '{') OR starts_with(${key}, '[')`
  })
  const [hasPrompt, hasCompletion, hasId, hasApp] = [
    'prompt_tokens',
    'completion_tokens',
    'app_id',
    'app',
  ].map((column) => `contains(json, ${literal(JSON.stringify(keyOf(column)))})`)
  return {
    path,
    types: new Map(columns.map((column) => [column, textColumn(column, identifier(keyOf(column)))])),
    rows: (paths) =>
      `read_json(${paths}, format = 'newline_delimited', columns = {${declared}}, hive_partitioning = false)`,
    fault: `CASE WHEN ${isNested.join(' OR ')} THEN 'nested' END`,
    lacksKeys: `FROM read_json_objects(${pathList([path])}, format = 'newline_delimited')
      WHERE NOT (${hasPrompt} AND ${hasCompletion} AND (${hasId} OR ${hasApp}))`,
  }
}

/** The documents of a file of JSON lines. */
export async function* readJsonLines(file: RawFile): AsyncGenerator<Document> {
  let row = 0
  for await (const chunk of readLines(file)) {
    for (const line of chunk.toString('utf8').replace(/\n$/, '').split('\n')) {
      row += 1
      // Trims a byte order mark too.
      const content = line.trim()
      if (content !== '') yield { row, ...parseLine(content) }
    }
  }
}

function parseLine(line: string): Omit<Document, 'row'> {
  for (const convert of FORMS_OF_LINE) {
    try {
      const value = parseExactly(convert(line))
      if (isRecord(value)) return { value }
    } catch {
      // The fault below says it.
    }
  }
  return { value: undefined, fault: 'not a JSON object', payload: line }
}

function withoutControls(line: string): string {
  return line.replaceAll(/\p{Cc}/gu, NO_TEXT)
}

/** NaN and infinity become texts, which are no numbers either. */
function strictJson(line: string): string {
  return withoutControls(line).replaceAll(BESIDE_JSON, (_, text?: string, word?: string) =>
    text === undefined && word !== undefined ? `"${word}"` : (text ?? ''),
  )
}

/**
 * The elements of one JSON document: of a list, or itself.
 * @throws DataError if it is no JSON.
 */
export async function* readWholeJson(file: RawFile): AsyncGenerator<Document> {
  const content = (await textOfStream(Readable.from(readLines(file)))).trim()
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
