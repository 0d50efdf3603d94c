/**
 * Brings the rows of raw files into one temporary table as text, with file and row number, broken lines
 * included, so that every later step sees the same bytes and the judgement of values stands in SQL alone.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { pluralize } from '../contract/terminal.ts'
import { DataError, firstLineOf, isShortage } from '../errors.ts'
import { identifier, literal } from '../duckdb/sql-values.ts'
import { countSchema, execute, readRow } from '../duckdb/statements.ts'
import { withAppender } from '../duckdb/appender.ts'
import { allColumns, requireColumns } from './columns.ts'
import type { Columns } from './columns.ts'
import { requireReadable } from './drop-folder.ts'
import type { Compression, RawFile } from './drop-folder.ts'
import { describeParquet, parquetRows } from './parquet-file.ts'
import { pathLiteral } from './path-literal.ts'
import { countLines, readCsvHeader, verifyNdjson } from './text-file.ts'

/** Columns of the staging table before those of the input. */
const PLACE_COLUMNS = ['file VARCHAR', 'row BIGINT', 'lines BIGINT', 'fault VARCHAR', 'payload VARCHAR']

const brokenRow = z.object({ broken: z.boolean(), unclosed: z.string().nullable() })
const linesRow = z.object({ lines: countSchema })

/** Makes the empty temporary table `staged` for the given columns. */
export async function createStagingTable(connection: DuckDBConnection, columns: Columns): Promise<void> {
  const inputs = allColumns(columns).map((column) => `${column} VARCHAR`)
  await connection.run(`CREATE OR REPLACE TEMP TABLE staged (${[...PLACE_COLUMNS, ...inputs].join(', ')})`)
}

/**
 * Appends the rows of a file to `staged`.
 * @throws DataError that names the file, when it cannot be read or lacks a required column.
 */
export async function stageFile(
  connection: DuckDBConnection,
  file: RawFile,
  columns: Columns,
): Promise<void> {
  requireReadable(file)
  switch (file.format) {
    case 'csv':
      return stageCsv(connection, file, columns)
    case 'ndjson':
      return stageNdjson(connection, file, columns)
    case 'arrow':
      return stageArrow(connection, file, columns)
    case 'parquet':
      return stageParquet(connection, file, columns)
  }
}

/** DuckDB's names; told on purpose, since it would guess from a name that may hold any character. */
const COMPRESSION: Record<Compression, string> = { none: 'none', gz: 'gzip', zst: 'zstd' }

/** What a text file must be like beyond what a broken line can tell. */
const CSV_REMEDY = 'Expected comma-separated text (RFC 4180) in UTF-8 with one kind of line end'
const NDJSON_REMEDY = 'Expected one JSON object per line in UTF-8'

/** Runs a statement that reads a file, and names the file when it cannot be read. */
async function runOver(
  connection: DuckDBConnection,
  file: RawFile,
  remedy: string,
  statement: string,
): Promise<void> {
  try {
    await connection.run(statement)
  } catch (error) {
    if (isShortage(error)) throw error
    throw new DataError(`${file.name} cannot be read: ${firstLineOf(error)} ${remedy}`, { cause: error })
  }
}

/**
 * Not in parallel: a thread that begins inside of a text with line breaks may take them for the ends of rows. It costs no
 * time, since the numbering of the rows lets only one thread read. Of a quote that is not closed, though, DuckDB may tell
 * nothing then.
 */
async function stageCsv(connection: DuckDBConnection, file: RawFile, columns: Columns): Promise<void> {
  const { names: header, regular } = await readCsvHeader(file)
  requireColumns(file, header, columns.required)
  const declared = header.map((name) => `${literal(name)}: 'VARCHAR'`).join(', ')
  const selected = allColumns(columns).map((name) => (header.includes(name) ? identifier(name) : 'NULL'))
  await runOver(
    connection,
    file,
    CSV_REMEDY,
    `INSERT INTO staged
     SELECT ${literal(file.name)}, row_number() OVER () + 1, 1, NULL, NULL, ${selected.join(', ')}
     FROM read_csv(${pathLiteral(file)}, columns = {${declared}}, header = true, auto_detect = false,
       delim = ',', quote = '"', escape = '"', comment = '', store_rejects = true, parallel = ${!regular},
       hive_partitioning = false, compression = '${COMPRESSION[file.compression]}')`,
  )
  await stageBrokenLines(connection, file, 1)
}

/**
 * Lines are taken as text first: a line that is not JSON then has its number and its bytes, like any other. A
 * required key must be there, if only with null: a misspelt key is a fault. Told that lines end in \r\n, DuckDB takes
 * \n for an end as well; told \n, or nothing, it may number \r\n as two.
 */
async function stageNdjson(connection: DuckDBConnection, file: RawFile, columns: Columns): Promise<void> {
  await verifyNdjson(file)
  const missing = columns.required.map(
    (name) => `WHEN NOT json_exists(object, ${jsonPath(name)}) THEN ${literal(`the key ${name} is missing`)}`,
  )
  const values = allColumns(columns).map((name) => `json_extract_string(object, ${jsonPath(name)})`)
  await runOver(
    connection,
    file,
    NDJSON_REMEDY,
    `INSERT INTO staged
     WITH lines AS (
       SELECT row_number() OVER () AS row, line
       FROM read_csv(${pathLiteral(file)}, columns = {line: 'VARCHAR'}, header = false, auto_detect = false,
         delim = chr(1), quote = '', escape = '', comment = '', strict_mode = false, store_rejects = true,
         new_line = '\\r\\n',
         hive_partitioning = false, compression = '${COMPRESSION[file.compression]}')
     ),
     objects AS (
       SELECT row, line, CASE WHEN json_valid(line) AND json_type(line) = 'OBJECT' THEN line END AS object
       FROM lines
       WHERE trim(line) <> ''
     ),
     judged AS (
       SELECT *, CASE WHEN object IS NULL THEN 'not a JSON object' ${missing.join(' ')} END AS fault
       FROM objects
     )
     SELECT ${literal(file.name)}, row, 1, fault, CASE WHEN fault IS NOT NULL THEN line END, ${values.join(', ')}
     FROM judged`,
  )
  await stageBrokenLines(connection, file, 0)
}

function jsonPath(key: string): string {
  return literal(`$.${key}`)
}

/** Lines that the reader could not even split; DuckDB keeps them in temporary tables of its own. */
async function stageBrokenLines(
  connection: DuckDBConnection,
  file: RawFile,
  headerLines: number,
): Promise<void> {
  const header = { header_lines: headerLines }
  const { broken, unclosed } = await readRow(connection, 'load/broken-count.sql', brokenRow, header)
  if (broken) {
    await execute(connection, 'load/broken-lines.sql', { file: file.name, ...header })
    await execute(connection, 'load/renumber-lines.sql', { file: file.name, ...header })
  }
  await connection.run('DROP TABLE reject_errors; DROP TABLE reject_scans')
  if (unclosed !== null) await refuseSwallowed(connection, file, unclosed, headerLines)
}

/**
 * An unclosed quote swallows megabytes of a larger file, and DuckDB tells no more than the first 10,000 bytes.
 * @throws DataError when lines of the file are missing among those that were staged.
 */
async function refuseSwallowed(
  connection: DuckDBConnection,
  file: RawFile,
  unclosed: string,
  headerLines: number,
): Promise<void> {
  const { lines } = await readRow(connection, 'load/staged-lines.sql', linesRow, { file: file.name })
  const swallowed = (await countLines(file)) - headerLines - lines
  if (swallowed > 0) {
    throw new DataError(
      `${file.name} cannot be read: row ${unclosed} opens a quote that is not closed, and ` +
        `${pluralize(swallowed, 'line')} after it cannot be told apart. Correct the row, or take it out`,
    )
  }
}

async function stageArrow(connection: DuckDBConnection, file: RawFile, columns: Columns): Promise<void> {
  // Whoever reads no such file, as most runs and commands, does not wait for the library to load.
  const { readArrow } = await import('./arrow-file.ts')
  let row = 0n
  await withAppender(connection, 'staged', async (appender) => {
    for await (const batch of readArrow(file, allColumns(columns), columns.required)) {
      for (const values of batch) {
        row += 1n
        appender.appendVarchar(file.name)
        appender.appendBigInt(row)
        appender.appendBigInt(1n)
        appender.appendNull()
        appender.appendNull()
        for (const value of values) {
          if (value === null) appender.appendNull()
          else appender.appendVarchar(value)
        }
        appender.endRow()
      }
      appender.flushSync()
    }
  })
}

async function stageParquet(connection: DuckDBConnection, file: RawFile, columns: Columns): Promise<void> {
  const types = await describeParquet(connection, file)
  requireColumns(file, [...types.keys()], columns.required)
  const selected = allColumns(columns).map((name) => {
    const type = types.get(name)
    if (type === undefined) return 'NULL'
    return textExpression(name, type)
  })
  await runOver(
    connection,
    file,
    'Deliver the file again, whole',
    `INSERT INTO staged
     SELECT ${literal(file.name)}, row_number() OVER (), 1, NULL, NULL, ${selected.join(', ')}
     FROM ${parquetRows(file)}`,
  )
}

/** A value of a Parquet column as text. A whole floating number keeps its digits: 1e16 would be text of another kind. */
function textExpression(column: string, type: string): string {
  if (type.endsWith('[]')) return `CAST(to_json(${column}) AS VARCHAR)`
  const text = `CAST(${column} AS VARCHAR)`
  if (type !== 'DOUBLE' && type !== 'FLOAT') return text
  const whole = `CASE WHEN ${column} = floor(${column}) THEN TRY_CAST(${column} AS HUGEINT) END`
  return `coalesce(CAST(${whole} AS VARCHAR), ${text})`
}
