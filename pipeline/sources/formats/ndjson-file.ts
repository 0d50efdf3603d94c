/** NDJSON files: finds their keys, checks line ends, and makes DuckDB's query for the rows. */
import { isUtf8 } from 'node:buffer'
import { DataError } from '../../errors.ts'
import { literal } from '../../duckdb/sql-values.ts'
import { allColumns, isDecisive, isInstead, namesFor } from '../columns.ts'
import type { Columns } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import { CARRIAGE_RETURN, LINE_FEED, mendUtf8, readLines } from './text-file.ts'
import type { TextFile, TextFormat, TextSource } from './text-pass.ts'

const TAB = 9
const SPACE = 32

/** What a blank line may hold. */
const BLANKS: ReadonlySet<number | undefined> = new Set([TAB, SPACE, CARRIAGE_RETURN])

/** One JSON object per line. */
export const NDJSON: TextFormat = {
  headerLines: 0,
  remedy: 'Expected one JSON object per line in UTF-8',
  inspect: inspectNdjson,
  mend: (lines) => mendTexts(mendUtf8(lines)),
  select: selectNdjson,
}

/** @throws DataError if the file has lone carriage returns: DuckDB may lose the text after one. */
async function inspectNdjson(file: RawFile): Promise<TextFile> {
  let rows = 0
  let isClean = true
  let last: number | undefined
  let hasLoneReturn = false
  for await (const lines of readLines(file)) {
    rows += countObjects(lines)
    isClean &&= isUtf8(lines) && mendTexts(lines) === lines
    hasLoneReturn ||= last === CARRIAGE_RETURN && lines[0] !== LINE_FEED
    hasLoneReturn ||= findLoneReturn(lines)
    last = lines.at(-1)
  }
  if (hasLoneReturn) {
    throw new DataError(
      `${file.name} cannot be read: it has a carriage return without a line feed. Lines must end in \\n or \\r\\n`,
    )
  }
  return { file, rows, isClean }
}

/** Whether a carriage return without a line feed exists, except as the last byte. */
function findLoneReturn(lines: Buffer): boolean {
  let at = lines.indexOf(CARRIAGE_RETURN)
  while (at >= 0 && at < lines.length - 1) {
    if (lines[at + 1] !== LINE_FEED) return true
    at = lines.indexOf(CARRIAGE_RETURN, at + 1)
  }
  return false
}

/** Lines with more than spaces and tabs. */
function countObjects(lines: Buffer): number {
  let objects = 0
  let start = 0
  while (start < lines.length) {
    const found = lines.indexOf(LINE_FEED, start)
    const end = found < 0 ? lines.length : found
    while (start < end && BLANKS.has(lines[start])) start += 1
    if (start < end) objects += 1
    start = end + 1
  }
  return objects
}

/** Escapes, with half of a surrogate pair as a group, quotes, and characters that JSON forbids in a text. */
const MARKS =
  /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u([dD][89a-fA-F][0-9a-fA-F]{2})|\\.|[^ !#-\xFF]/g

/** Selects the few files that may have such a text. */
const IS_ODD = /\\u[dD]|[^ -\xFF\r\n]/

/**
 * Makes JSON readable for DuckDB: JSON may hold half of a surrogate pair, UTF-8 may not, and JSON may hold no control
 * character that is not escaped. Replaces the one by the mark of text-file.ts and its four digits, the other by its escape;
 * returns the same buffer if there is none.
 */
function mendTexts(lines: Buffer): Buffer {
  const json = lines.toString('latin1')
  if (!IS_ODD.test(json)) return lines
  let isText = false
  const mended = json.replaceAll(MARKS, (mark, half?: string) => {
    if (half !== undefined) return `\\ufffd\\u2060${half}`
    if (mark === '"') isText = !isText
    else if (mark === '\n') isText = false
    else if (isText && mark < ' ' && mark !== '\r')
      return `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`
    return mark
  })
  return mended === json ? lines : Buffer.from(mended, 'latin1')
}

/**
 * Reads lines as text first, so that a line that is not JSON has a number and bytes like any other. A required key must be
 * present, if only with null: a misspelt key is a violation.
 */
function selectNdjson(_file: TextFile, source: TextSource, columns: Columns): string {
  const names = allColumns(columns)
  const decisive = names.filter((name) => isDecisive(columns, name))
  const missing = columns.required.map((name) => {
    const isThere = namesFor(columns, name).map((other) => `list_contains(names, ${literal(other)})`)
    return `WHEN NOT (${isThere.join(' OR ')}) THEN ${literal(`the key ${name} is missing`)}`
  })
  const nested = decisive
    .filter((name) => columns.lists?.includes(name) !== true)
    .map(
      (name) =>
        `WHEN json_is_nested(object, keys[list_position(names, ${literal(name)})], value_${name}) ` +
        `THEN ${literal(`${name} is an object or a list, not one value`)}`,
    )
  const options =
    "columns = {line: 'VARCHAR'}, header = false, delim = chr(1), quote = '', escape = '', " +
    "strict_mode = false, new_line = '\\r\\n'"
  return `
    WITH lines AS (${source(options)}),
    parsed AS (
      SELECT file, row, line AS object, json_texts(line) AS texts
      FROM lines
      WHERE trim(line, ' ' || chr(9)) <> ''
    ),
    named AS (
      SELECT file, row, object, map_keys(texts) AS keys, plain_names(map_keys(texts)) AS names,
        map_values(texts) AS values
      FROM parsed
    ),
    valued AS (
      SELECT *, named_twice(names, [${decisive.map(literal).join(', ')}]) AS twice,
        ${names.map((name) => `${jsonValue(columns, name)} AS value_${name}`).join(', ')}
      FROM named
    ),
    validated AS (
      SELECT *, CASE
        WHEN keys IS NULL THEN 'not a JSON object'
        WHEN twice IS NOT NULL
          THEN 'the key ' || twice || ' stands twice: ' ||
            array_to_string(list_filter(keys, lambda k: plain_name(k) = twice), ' and ')
        ${[...missing, ...nested].join(' ')}
      END AS fault
      FROM valued
    )
    SELECT file, row, 1, fault, CASE WHEN fault IS NOT NULL THEN object END,
      ${names.map((name) => `value_${name}`).join(', ')}
    FROM validated`
}

function jsonValue(columns: Columns, name: string): string {
  const value = `values[list_position(names, ${literal(name)})]`
  if (!isInstead(columns, name)) return value
  return `CASE WHEN list_contains(names, ${literal(name)}) THEN coalesce(${value}, '') END`
}
