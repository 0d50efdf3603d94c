/** Reads NDJSON: by DuckDB, or by lines where DuckDB or the rules reject a row, and for the registry and imports. */
import { literal } from '../../duckdb/sql-values.ts'
import { DataError, messageOf } from '../../errors.ts'
import { APP_TEXT, NULLABLE_TEXTS, USAGE_COLUMNS, allColumns, missingColumns, plainName } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import { NO_TEXT, pathList, textColumn, type Scan } from '../incoming.ts'
import { LONGEST_LINE, prepareText, readHead, readLines } from './bytes.ts'

/** A JSON object, or a row of a table as an object of its texts. */
export type Document = {
  /** Line of a text file; otherwise number of the row or element, from 1. */
  readonly row: number
  readonly value: unknown
  /** Why the line is no document, and the line. */
  readonly fault?: string
  readonly payload?: string
}

type Entries = Readonly<Record<string, unknown>>

/** A string, or what DuckDB takes beside JSON: a comma behind the last value, NaN and infinity. */
const BESIDE_JSON = /("[^"\\]*(?:\\.[^"\\]*)*")|,(?=\s*[}\]])|(-?\b(?:nan|inf(?:inity)?)\b)/gi

/** One document: a list, or an object that does not end in its first line. */
const WHOLE = /^\uFEFF?\s*(?:\[|\{[^\n]*(?<!\}\s*)\n\s*[^\s{])/

const KEYS: readonly string[] = allColumns(USAGE_COLUMNS)

/** Whether a line has a key, in DuckDB. */
const has = (key: string) => `contains(json, ${literal(JSON.stringify(key))})`

const FORMAT = `format = 'newline_delimited', maximum_object_size = ${LONGEST_LINE}`

/**
 * How DuckDB reads a file of usage; undefined if the file has to be read by lines, as where keys are missing or in capitals.
 * @param copy the path for an unpacked copy.
 * @throws DataError with the file if it cannot be read, or is JSON of another form.
 */
export async function scanJsonLines(file: RawFile, copy: string): Promise<Scan | undefined> {
  const { path, head } = await prepareText(file, copy)
  if (WHOLE.test(head)) {
    throw new DataError(
      `${file.name} is a JSON list, or JSON over several lines; a file here has one JSON object per line. ` +
        'Move it away, and take it in with npm run nightly -- import FILE',
    )
  }
  const lines = head.split('\n').map((line) => parseLine(line.trim()))
  const found = new Set(lines.flatMap(({ value = {} }) => Object.keys(value)))
  const isNamedOtherwise = [...found].some((key) => !KEYS.includes(key) && KEYS.includes(plainName(key)))
  if (isNamedOtherwise || missingColumns(USAGE_COLUMNS, [...found]).length > 0) return undefined
  // Texts, since DuckDB would read `1.5` as 2 and `true` as 1 where a number is declared.
  const declared = KEYS.map((key) => `${key}: 'VARCHAR'`).join(', ')
  // If the first rows lack the key, a later row that needs it is rejected here, and so read by lines.
  const keys = KEYS.filter((key) => key !== APP_TEXT || found.has(key))
  const nested = NULLABLE_TEXTS.map((key) => `starts_with(${key}, '{') OR starts_with(${key}, '[')`)
  return {
    path,
    types: new Map(keys.map((key) => [key, textColumn(key, key)])),
    rows: (paths) =>
      `read_json(${pathList(paths)}, ${FORMAT}, columns = {${declared}}, hive_partitioning = false)`,
    fault: `CASE WHEN ${nested.join(' OR ')} THEN 'nested' ELSE id_violation(request_id) END`,
    lacksKeys: `SELECT 1 FROM read_json_objects(${pathList([path])}, ${FORMAT})
      WHERE NOT (${has('prompt_tokens')} AND ${has('completion_tokens')} AND (${has('app_id')} OR ${has('app')})) LIMIT 1`,
  }
}

/**
 * The documents of a file of JSON lines, or of one document: the elements of a list, or itself.
 * @throws DataError if it is neither.
 */
export async function* readJson(file: RawFile): AsyncGenerator<Document> {
  if (WHOLE.test((await readHead(file)).toString('utf8'))) return yield* readWhole(file)
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

async function* readWhole(file: RawFile): AsyncGenerator<Document> {
  const content = Buffer.concat(await Array.fromAsync(readLines(file)))
    .toString('utf8')
    .trim()
  try {
    for (const [index, value] of [parseExactly(content)].flat().entries()) yield { row: index + 1, value }
  } catch (error) {
    throw new DataError(
      `${file.name} is not one JSON document: ${messageOf(error)}. Write one object a line (jq -c .)`,
      { cause: error },
    )
  }
}

/** The object of a line, or why it is none. */
export function parseLine(line: string): Omit<Document, 'row'> & { readonly value: Entries | undefined } {
  const value =
    objectIn(line) ?? objectIn(line.replaceAll(/\p{Cc}/gu, NO_TEXT).replaceAll(BESIDE_JSON, strictJson))
  return value === undefined
    ? { value, fault: 'not one JSON object: write one a line', payload: line }
    : { value }
}

function objectIn(line: string): Entries | undefined {
  try {
    const value = parseExactly(line)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** NaN and infinity become texts, which are no numbers either. */
function strictJson(_: string, text?: string, word?: string): string {
  return text ?? (word === undefined ? '' : `"${word}"`)
}

/** The source text that JSON.parse passes to its reviver; TypeScript's types lack it. */
type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown

const keepDigits: Reviver = (_key, value, context) =>
  typeof value !== 'number' ? value : Number.isSafeInteger(value) ? String(value) : context?.source

/** A number that may lose digits, behind the beginning of a value. */
const LONG_NUMBER = /(?:"\s*:|[[,])\s*-?(?:\d{16}|\d+[.eE])/

/** Parses JSON; a number that would lose digits becomes its text, as may any other. */
export function parseExactly(json: string): unknown {
  // With a function for each value JSON.parse takes ten times as long.
  return JSON.parse(json, LONG_NUMBER.test(json) ? keepDigits : undefined)
}

export function isRecord(value: unknown): value is Entries {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
