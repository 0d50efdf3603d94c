/** CSV files: finds the columns in the header, checks that quotes close, and makes DuckDB's query for the rows. */
import { isUtf8 } from 'node:buffer'
import { DataError } from '../../errors.ts'
import { allColumns, isInstead, matchColumns } from '../columns.ts'
import type { Columns } from '../columns.ts'
import type { RawFile } from '../drop-folder.ts'
import { countFilledLines, countRecords } from './csv-records.ts'
import { mendUtf8, readLines } from './text-file.ts'
import type { TextFile, TextFormat, TextSource, UnclosedRecord } from './text-pass.ts'

/** Far more than any header; a file without a line break in this many bytes is not CSV. */
const HEADER_BYTES = 65_536

/** An unclosed quote may swallow much of a file; its lines are kept as one rejected row. */
const SWALLOWED_BYTES = 10_000

/** Up to the first line break outside quotes. */
const HEADER_RECORD = /^(?:"(?:[^"]|"")*"|[^"\r\n])*/

const CSV_FIELD = /("(?:[^"]|"")*"|[^,]*)(,|$)/g

/** Comma-separated text with a header (RFC 4180). */
export const CSV: TextFormat = {
  headerLines: 1,
  remedy: 'Expected comma-separated text (RFC 4180) in UTF-8 with one kind of line end',
  inspect: inspectCsv,
  mend: mendUtf8,
  select: selectCsv,
}

async function inspectCsv(file: RawFile, columns: Columns): Promise<TextFile> {
  const counter = countRecords()
  let start: Buffer = Buffer.alloc(0)
  let isClean = true
  for await (const lines of readLines(file)) {
    counter.look(lines)
    isClean &&= isUtf8(lines)
    if (start.length === 0) start = lines.subarray(0, HEADER_BYTES)
  }
  const header = readHeader(file, start.toString('utf8'))
  matchColumns(file, header, columns)
  const from = counter.unclosedFrom()
  return {
    file,
    isClean,
    header,
    rows: counter.records() - (from === undefined ? 1 : 2),
    firstBroken: counter.firstBroken(),
    unclosed: from === undefined ? undefined : await readUnclosed(file, from, counter.records()),
  }
}

/** @throws DataError if the unclosed quote swallows too many lines for one rejected row. */
async function readUnclosed(file: RawFile, from: number, row: number): Promise<UnclosedRecord> {
  const parts: Buffer[] = []
  let position = 0
  let lines = 0
  for await (const bytes of readLines(file)) {
    const part = bytes.subarray(Math.max(0, from - position))
    position += bytes.length
    lines += countFilledLines(part)
    if (Buffer.concat(parts).length <= SWALLOWED_BYTES) parts.push(part)
  }
  const payload = Buffer.concat(parts)
  if (payload.length > SWALLOWED_BYTES) {
    throw new DataError(
      `${file.name} cannot be read: row ${row} opens a quote that is not closed, and ` +
        `${lines - 1} lines after it cannot be separated. Correct or remove the row`,
    )
  }
  return { row, lines, payload: mendUtf8(payload).toString('utf8').trimEnd() }
}

/** Replaces the column names: a file's own may be anything, including duplicates. */
function selectCsv({ file, header = [] }: TextFile, source: TextSource, columns: Columns): string {
  const positions = matchColumns(file, header, columns)
  const values = allColumns(columns).map((column) => {
    const position = positions.get(column)
    if (position === undefined) return 'NULL'
    const field = fieldName(position)
    return isInstead(columns, column) ? `coalesce(${field}, '')` : field
  })
  const declared = header.map((_, position) => `${fieldName(position)}: 'VARCHAR'`).join(', ')
  const options = `columns = {${declared}}, header = true, delim = ',', quote = '"', escape = '"'`
  return `SELECT file, row + 1, 1, NULL, NULL, ${values.join(', ')} FROM (${source(options)})`
}

function fieldName(position: number): string {
  return `field_${position + 1}`
}

function readHeader({ name }: RawFile, start: string): string[] {
  const [line = ''] = HEADER_RECORD.exec(start) ?? []
  if (line.trim() === '') {
    const fault = start === '' ? 'is empty' : 'begins with a blank line'
    throw new DataError(`${name} ${fault}: expected a first line with the column names`)
  }
  return splitCsvLine(line)
}

/** After a last field without a comma the pattern matches once more, with an empty text. */
function splitCsvLine(line: string): string[] {
  return [...line.matchAll(CSV_FIELD)]
    .slice(0, line.endsWith(',') ? undefined : -1)
    .map(([, field = '']) => (field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field))
}
