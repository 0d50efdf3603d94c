/** Sorts a usage file into the folders of its days, value by value as it is: judging comes with the next run. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, mkdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { pluralize } from '../contract/terminal.ts'
import { clearLeft, nameOfOwn, putInPlace } from '../snapshot/durable-file.ts'
import { DataError } from '../errors.ts'
import { literal } from '../duckdb/sql-values.ts'
import { countSchema, readRow, readRows } from '../duckdb/statements.ts'
import { USAGE_COLUMNS, allColumns } from './columns.ts'
import type { Columns } from './columns.ts'
import { rawFile } from './drop-folder.ts'
import { createStagingTable, stageFiles } from './staging.ts'

/** What is carried over: what the pipeline reads, and what operators like to have beside it. */
const IMPORTED_COLUMNS: Columns = {
  required: USAGE_COLUMNS.required,
  optional: USAGE_COLUMNS.optional,
  descriptive: [...USAGE_COLUMNS.descriptive, 'provider', 'account_id'],
}

/** Digits of a file's SHA-256 in the names of its parts: the same file twice is there once. */
const HASH_DIGITS = 16

const unplacedRow = z.object({
  rows: countSchema,
  first_row: z.string().nullable(),
  reason: z.string().nullable(),
})
const dayRow = z.object({ day: z.string(), rows: countSchema })

/** The rows of an imported file that lie on one day. */
export type ImportedPart = {
  readonly day: string
  readonly rows: number
  /** Path below raw/. */
  readonly name: string
  /** They were imported before. */
  readonly known: boolean
}

/**
 * Writes the rows of the file at `path` as one Parquet file per UTC day below `rawFolder`, unless they are there
 * already; an import that was interrupted is brought to its end by another. `dryRun` writes nothing.
 * @param connection to any DuckDB with the macros of load/values.sql.
 * @throws DataError when the file cannot be read, or a row has no day to go to; nothing is written then.
 */
export async function importFile(
  connection: DuckDBConnection,
  path: string,
  { rawFolder, dryRun }: { readonly rawFolder: string; readonly dryRun: boolean },
): Promise<ImportedPart[]> {
  const file = rawFile(path, basename(path))
  await createStagingTable(connection, IMPORTED_COLUMNS)
  await stageFiles(connection, [file], IMPORTED_COLUMNS)
  await refuseUnplaced(connection, file.name)
  const fileName = `import-${await hashOf(path)}.parquet`
  const days = await readRows(connection, 'import/days.sql', dayRow)
  const parts = days.map(({ day, rows }) => {
    const name = join('usage', `date=${day}`, fileName)
    return { day, rows, name, known: existsSync(join(rawFolder, name)) }
  })
  for (const part of parts) {
    if (!part.known && !dryRun) await writePart(connection, rawFolder, part)
  }
  return parts
}

async function refuseUnplaced(connection: DuckDBConnection, name: string): Promise<void> {
  const { rows, first_row, reason } = await readRow(connection, 'import/unplaced.sql', unplacedRow)
  if (rows === 0) return
  throw new DataError(
    `${name}: ${pluralize(rows, 'row')} without a day to go to, the first is row ${first_row}: ${reason}. ` +
      'Nothing of the file is imported; correct these rows or take them out',
  )
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex').slice(0, HASH_DIGITS)
}

/**
 * Under a name that is passed over until the file is whole, and that another import of the same file does not share.
 * USE_TMP_FILE would give it a name that is not passed over.
 */
async function writePart(
  connection: DuckDBConnection,
  rawFolder: string,
  { day, name }: ImportedPart,
): Promise<void> {
  const target = join(rawFolder, name)
  const prefix = `.${basename(target)}-`
  const aside = join(dirname(target), nameOfOwn(prefix))
  mkdirSync(dirname(target), { recursive: true })
  clearLeft(dirname(target), prefix)
  try {
    await connection.run(
      `COPY (
         SELECT ${allColumns(IMPORTED_COLUMNS).join(', ')}
         FROM staged
         WHERE CAST(utc_from_text(ts) AS DATE) = ${literal(day)}
       ) TO ${literal(aside)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)`,
    )
    putInPlace(aside, target)
  } finally {
    rmSync(aside, { force: true })
  }
}
