/**
 * Stages the rows of raw files in one temporary table as text, with file and row number, broken lines included. Every later
 * step reads the same bytes, and the rules for values stand in one place.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { DataError } from '../errors.ts'
import { literal } from '../duckdb/sql-values.ts'
import { withAppender } from '../duckdb/appender.ts'
import { allColumns, isDecisive, isInstead } from './columns.ts'
import type { Columns } from './columns.ts'
import { requireReadable } from './drop-folder.ts'
import type { RawFile } from './drop-folder.ts'
import { CSV } from './formats/csv-file.ts'
import { NDJSON } from './formats/ndjson-file.ts'
import { groupBySchema, parquetRows, runOverParquet } from './formats/parquet-file.ts'
import { withExactTimes } from './formats/parquet-times.ts'
import { stageText } from './formats/text-pass.ts'
import { textExpression } from './readings.ts'
import type { TypedColumns } from './readings.ts'

/** Columns of the staging table before the input's. */
const PLACE_COLUMNS = ['file VARCHAR', 'row BIGINT', 'lines BIGINT', 'fault VARCHAR', 'payload VARCHAR']

/** Creates the empty temporary table `staged`. */
export async function createStagingTable(connection: DuckDBConnection, columns: Columns): Promise<void> {
  const inputs = allColumns(columns).map((column) => `${column} VARCHAR`)
  await connection.run(`CREATE OR REPLACE TEMP TABLE staged (${[...PLACE_COLUMNS, ...inputs].join(', ')})`)
}

/**
 * Appends the rows of the files to `staged`; small files share a pass.
 * @throws DataError with the file that cannot be read or lacks a required column.
 */
export async function stageFiles(
  connection: DuckDBConnection,
  files: readonly RawFile[],
  columns: Columns,
): Promise<void> {
  for (const file of files) requireReadable(file)
  const filesOf = (format: RawFile['format']) => files.filter((file) => file.format === format)
  await stageText(connection, CSV, filesOf('csv'), columns)
  await stageText(connection, NDJSON, filesOf('ndjson'), columns)
  for (const file of filesOf('arrow')) await stageArrow(connection, file, columns)
  await withExactTimes(connection, filesOf('parquet'), (exact) => stageParquet(connection, exact, columns))
}

async function stageArrow(connection: DuckDBConnection, file: RawFile, columns: Columns): Promise<void> {
  // Loads the Arrow library only for Arrow files, which most runs and commands do not read.
  const { readArrow } = await import('./formats/arrow-file.ts')
  let row = 0n
  await withAppender(connection, 'staged', async (appender) => {
    for await (const batch of readArrow(file, columns)) {
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

async function stageParquet(
  connection: DuckDBConnection,
  files: readonly RawFile[],
  columns: Columns,
): Promise<void> {
  for (const { types, files: group } of await groupBySchema(connection, files, columns)) {
    for (const file of group) {
      const values = allColumns(columns).map((column) => textOf(file, column, types, columns))
      await runOverParquet(file, () =>
        connection.run(
          `INSERT INTO staged
           SELECT ${literal(file.name)}, row_number() OVER (), 1, NULL, NULL, ${values.join(', ')}
           FROM ${parquetRows(file)}`,
        ),
      )
    }
  }
}

function textOf(file: RawFile, column: string, types: TypedColumns, columns: Columns): string {
  const typed = types.get(column)
  if (typed === undefined) return 'NULL'
  const text = textExpression(typed, columns.lists?.includes(column) === true)
  if (text === undefined && isDecisive(columns, column)) {
    throw new DataError(`${file.name}: the column ${column} is of type ${typed.type}, which cannot hold it`)
  }
  return isInstead(columns, column) ? `coalesce(${text}, '')` : (text ?? 'NULL')
}
