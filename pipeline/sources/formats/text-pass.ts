/**
 * Stages text files of one format in few passes: each file is read once as bytes, then by DuckDB, which must find as many
 * rows as the bytes contain.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { rmSync } from 'node:fs'
import { z } from 'zod'
import { DataError, firstLineOf, isShortage } from '../../errors.ts'
import { scratchPath } from '../../duckdb/scratch.ts'
import { listValue, literal } from '../../duckdb/sql-values.ts'
import { countSchema, execute, queryRows, setVariables } from '../../duckdb/statements.ts'
import type { Columns } from '../columns.ts'
import type { Compression, RawFile } from '../drop-folder.ts'
import { pathLiteral } from './path-literal.ts'
import { writeMended } from './text-file.ts'

/** Result of the first pass over a file. */
export type TextFile = {
  readonly file: RawFile
  /** Records that DuckDB must find: without the header and an unclosed one. */
  readonly rows: number
  /** Whether DuckDB can read every byte. */
  readonly isClean: boolean
  readonly header?: readonly string[]
  readonly firstBroken?: number | undefined
  readonly unclosed?: UnclosedRecord | undefined
}

/** A last record with an unclosed quote, which DuckDB skips. */
export type UnclosedRecord = {
  readonly row: number
  readonly lines: number
  readonly payload: string
}

/** Makes the query for the rows of a pass, `file` and `row` (from 1) with their fields, from further read_csv options. */
export type TextSource = (options: string) => string

export type TextFormat = {
  readonly headerLines: number
  /** Requirement on a file, for messages. */
  readonly remedy: string
  readonly inspect: (file: RawFile, columns: Columns) => Promise<TextFile>
  /** Changes whole lines so that DuckDB can read them. */
  readonly mend: (lines: Buffer) => Buffer
  /** The query for the columns of `staged` over files with the same header. */
  readonly select: (file: TextFile, source: TextSource, columns: Columns) => string
}

/** Files up to this size together share a pass. */
const PASS_BYTES = 16_000_000

/** DuckDB's names; stated explicitly, since DuckDB would guess from the file name. */
const COMPRESSION: Record<Compression, string> = { none: 'none', gz: 'gzip', zst: 'zstd' }

const countRow = z.object({ count: countSchema })

/**
 * Appends the rows of the files to `staged`.
 * @throws DataError with the file that cannot be read or lacks a required column.
 */
export async function stageText(
  connection: DuckDBConnection,
  format: TextFormat,
  files: readonly RawFile[],
  columns: Columns,
): Promise<void> {
  const open = new Map<string, { pass: TextFile[]; bytes: number }>()
  const passes: TextFile[][] = []
  for (const file of files) {
    const text = await format.inspect(file, columns)
    const layout = JSON.stringify([file.compression, text.header])
    const joined = text.isClean ? open.get(layout) : undefined
    if (joined === undefined || joined.bytes + file.bytes > PASS_BYTES) {
      const pass = [text]
      passes.push(pass)
      if (text.isClean) open.set(layout, { pass, bytes: file.bytes })
    } else {
      joined.pass.push(text)
      joined.bytes += file.bytes
    }
  }
  for (const pass of passes) await stagePass({ connection, format, columns }, pass)
}

type Reader = {
  readonly connection: DuckDBConnection
  readonly format: TextFormat
  readonly columns: Columns
}

/** Repeats a failed pass file by file, so that the faulty file is named and the others are staged. */
async function stagePass(reader: Reader, pass: readonly TextFile[]): Promise<void> {
  const [first, second] = pass
  if (first === undefined) return
  if (second === undefined) return await stageAlone(reader, first)
  try {
    await readPass(reader, pass)
  } catch (error) {
    if (isShortage(error)) throw error
    for (const text of pass) await stageAlone(reader, text)
  }
}

/** DuckDB knows fewer variants of .gz and .zst than Node, and no bytes outside UTF-8. */
async function stageAlone(reader: Reader, text: TextFile): Promise<void> {
  if (!text.isClean) return await stageMended(reader, text)
  try {
    await readPass(reader, [text])
  } catch (error) {
    if (isShortage(error) || text.file.compression === 'none') throw error
    await stageMended(reader, text)
  }
}

async function stageMended(reader: Reader, text: TextFile): Promise<void> {
  const path = await scratchPath(reader.connection)
  try {
    const file = await writeMended(text.file, path, reader.format.mend)
    await readPass(reader, [{ ...text, file }])
  } finally {
    rmSync(path, { force: true })
  }
}

async function readPass(reader: Reader, pass: readonly TextFile[]): Promise<void> {
  const { connection, format, columns } = reader
  const [first] = pass
  if (first === undefined) return
  const files = pass.map(({ file }) => file)
  await setVariables(connection, {
    staged_files: listValue(files.map(({ name }) => name)),
    staged_paths: listValue(files.map(({ path }) => path)),
    header_lines: format.headerLines,
  })
  try {
    const query = format.select(first, (options) => sourceOf(files, options), columns)
    const { rowsChanged } = await connection.run(`INSERT INTO staged ${query}`)
    const broken = await stageBrokenLines(connection)
    const expected = pass.reduce((sum, { rows }) => sum + rows, 0)
    if (rowsChanged + broken !== expected) throw miscounted(first, expected, rowsChanged + broken)
  } catch (error) {
    await connection.run("DELETE FROM staged WHERE list_contains(getvariable('staged_files'), file)")
    if (isShortage(error) || error instanceof DataError) throw error
    throw new DataError(`${first.file.name} cannot be read: ${firstLineOf(error)} ${format.remedy}`, {
      cause: error,
    })
  } finally {
    await connection.run('DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans')
  }
  for (const text of pass) await stageUnclosed(connection, text)
}

function miscounted({ file, firstBroken }: TextFile, expected: number, found: number): DataError {
  const place = firstBroken === undefined ? '' : ` Row ${firstBroken} has a quote where none may stand.`
  return new DataError(
    `${file.name} cannot be read: its quotes give ${expected} rows, but only ${found} can be separated.${place} ` +
      'Expected quotes only around a whole field, and doubled inside of it (RFC 4180)',
  )
}

/**
 * Not in parallel: a thread that starts inside a quoted text may read its line breaks as row ends. This costs no time, since
 * numbering the rows allows a single thread only.
 */
function sourceOf(files: readonly RawFile[], options: string): string {
  const [{ name, compression } = { name: '', compression: 'none' as const }, ...others] = files
  const rows = `read_csv([${files.map(pathLiteral).join(', ')}], ${options}, auto_detect = false, comment = '',
    store_rejects = true, parallel = false, hive_partitioning = false, compression = '${COMPRESSION[compression]}'`
  if (others.length === 0)
    return `SELECT *, ${literal(name)} AS file, row_number() OVER () AS row FROM ${rows})`
  return `
    SELECT r.* EXCLUDE (filename) REPLACE (r.row - min(r.row) OVER (PARTITION BY r.filename) + 1 AS row), f.file
    FROM (SELECT *, row_number() OVER () AS row FROM ${rows}, filename = true)) AS r
    JOIN (
      SELECT unnest(getvariable('staged_paths')) AS filename, unnest(getvariable('staged_files')) AS file
    ) AS f ON f.filename = r.filename`
}

/** Stores lines that the reader could not split as rejected rows; DuckDB lists them in temporary tables. */
async function stageBrokenLines(connection: DuckDBConnection): Promise<number> {
  const [broken] = await queryRows(
    connection,
    `SELECT count(DISTINCT (file_id, line)) AS count FROM reject_errors WHERE line > getvariable('header_lines')`,
    countRow,
  )
  if (broken === undefined || broken.count === 0) return 0
  await execute(connection, 'load/broken-lines.sql')
  return broken.count
}

async function stageUnclosed(connection: DuckDBConnection, { file, unclosed }: TextFile): Promise<void> {
  if (unclosed === undefined) return
  await connection.run(
    "INSERT INTO staged (file, row, lines, fault, payload) VALUES ($1, $2, $3, 'broken line: unquoted value', $4)",
    [file.name, unclosed.row, unclosed.lines, unclosed.payload],
  )
}
