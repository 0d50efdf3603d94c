/** Reads files as JSON documents: one per line, row, or element of a list. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { parse } from 'csv-parse'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { DataError, isShortage, messageOf } from '../../errors.ts'
import { plainName } from '../columns.ts'
import { pathLiteral } from '../formats/path-literal.ts'
import { openBytes } from './input.ts'
import type { Input } from './input.ts'
import { parseExactly } from './read-path.ts'
import type { UsageMap } from './usage-map.ts'

export type Document = {
  /** Line of a text file; otherwise number of the row or element, from 1. */
  readonly row: number
  readonly value: unknown
}

/**
 * The documents of a file, in order.
 * @throws DataError with the file and the unreadable line.
 */
export async function* readDocuments(
  connection: DuckDBConnection,
  input: Input,
  map: UsageMap,
): AsyncGenerator<Document> {
  const { name, format } = input.file
  try {
    if (format === 'csv') yield* csvRows(input)
    else if (format === 'ndjson') yield* input.isWholeJson ? wholeJson(input) : jsonLines(input)
    else if (format === 'parquet') yield* parquetRows(connection, input)
    else yield* arrowRows(input, map)
  } catch (error) {
    if (error instanceof DataError || isShortage(error)) throw error
    throw new DataError(`${name} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

/** One JSON document per line. Node's readline would also split at U+2028, which JSON may contain. */
async function* jsonLines({ file }: Input): AsyncGenerator<Document> {
  let row = 0
  let rest = ''
  const bytes = openBytes(file).setEncoding('utf8')
  for await (const chunk of bytes) {
    const lines = `${rest}${String(chunk)}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      row += 1
      yield* documentOf(file.name, row, line)
    }
  }
  yield* documentOf(file.name, row + 1, rest)
}

function* documentOf(name: string, row: number, line: string): Generator<Document> {
  const content = (row === 1 ? line.replace(/^\uFEFF/, '') : line).trim()
  if (content === '') return
  try {
    yield { row, value: parseExactly(content) }
  } catch (error) {
    throw new DataError(
      `${name}: line ${row} is not JSON: ${messageOf(error)}. Nothing of the file is imported`,
      {
        cause: error,
      },
    )
  }
}

/** A list of documents, or one document. */
async function* wholeJson({ file }: Input): AsyncGenerator<Document> {
  const content: unknown = parseExactly((await text(openBytes(file))).replace(/^\uFEFF/, ''))
  for (const [index, value] of [content].flat().entries()) yield { row: index + 1, value }
}

async function* csvRows({ file }: Input): AsyncGenerator<Document> {
  const parser = parse({
    bom: true,
    info: true,
    skip_empty_lines: true,
    columns: (header: string[]) => requireDistinct(file.name, header),
  })
  const bytes = openBytes(file)
  bytes.on('error', (error) => parser.destroy(error))
  for await (const record of bytes.pipe(parser)) {
    const { record: value, info } = csvRecord.parse(record)
    yield { row: info.lines, value }
  }
}

const csvRecord = z.object({ record: z.record(z.string(), z.string()), info: z.object({ lines: z.int() }) })

function requireDistinct(name: string, header: readonly string[]): string[] {
  const names = header.map((column) => column.trim())
  const twice = names.find((column, index) =>
    names.slice(0, index).some((earlier) => earlier.toLowerCase() === column.toLowerCase()),
  )
  if (twice === undefined) return names
  throw new DataError(`${name} names the column "${twice}" twice. Remove one of them`)
}

async function* parquetRows(connection: DuckDBConnection, { file }: Input): AsyncGenerator<Document> {
  const result = await connection.stream(
    `SELECT CAST(to_json(file_rows) AS VARCHAR) FROM read_parquet(${pathLiteral(file)}, hive_partitioning = false) AS file_rows`,
  )
  let row = 0
  for await (const rows of result.yieldRows()) {
    for (const [line] of rows) {
      row += 1
      yield { row, value: parseExactly(String(line)) }
    }
  }
}

/** The columns of an Arrow file at which a map's paths begin. */
async function* arrowRows({ file }: Input, { columns }: UsageMap): AsyncGenerator<Document> {
  // Loads the library only for Arrow files.
  const { readArrow } = await import('../formats/arrow-file.ts')
  const paths = Object.values(columns)
    .flat()
    .filter((path) => typeof path === 'string')
  const names = [...new Set(paths.flatMap((path) => [path, path.split('.', 1).join('')]).map(plainName))]
  let row = 0
  for await (const rows of readArrow(file, { required: [], optional: names })) {
    for (const values of rows) {
      row += 1
      yield { row, value: Object.fromEntries(names.map((name, index) => [name, values[index]])) }
    }
  }
}
