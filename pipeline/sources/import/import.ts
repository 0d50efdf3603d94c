/** Sorts usage files into the folders of their days, value by value as it is: the next run judges the values. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, globSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { pluralize } from '../../contract/terminal.ts'
import { putInPlace } from '../../snapshot/durable-file.ts'
import { clearLeft, withOwnPath } from '../../snapshot/own-files.ts'
import { DataError } from '../../errors.ts'
import { literal } from '../../duckdb/sql-values.ts'
import { countSchema, readRow, readRows } from '../../duckdb/statements.ts'
import { isPassedOver } from '../drop-folder.ts'
import type { Input } from './input.ts'
import { stageInputs } from './stage-inputs.ts'
import { USAGE_FIELDS } from './usage-fields.ts'
import type { UsageField } from './usage-fields.ts'
import type { UsageMap } from './usage-map.ts'

/** Digits of a file's SHA-256 in the names of its parts: the same file twice is there once. */
const HASH_DIGITS = 16

const unplacedRow = z.object({
  rows: countSchema,
  file: z.string().nullable(),
  first_row: z.string().nullable(),
  reason: z.string().nullable(),
})
const dayRow = z.object({
  day: z.string(),
  rows: countSchema,
  requests: z.string(),
  prompt_tokens: z.string(),
  completion_tokens: z.string(),
  /** Those of rows that name no app. */
  tokens_without_app: z.string(),
  rows_without_id: countSchema,
})

/** The rows of an import that lie on one day. Sums as text, since they may pass 2^53. */
export type ImportedPart = z.infer<typeof dayRow> & {
  /** Path below raw/. */
  readonly name: string
  /** They were imported before. */
  readonly known: boolean
  /** Another file of the day has usage, so that rows without request_id may count twice. */
  readonly may_double: boolean
}

export type ImportOptions = {
  readonly rawFolder: string
  readonly dryRun: boolean
  /** How the files are read; without a map they have the columns of raw usage. */
  readonly map?: UsageMap | undefined
  /** Whose usage it is: what this source brought before for the same days is replaced. */
  readonly source?: string | undefined
}

/**
 * Writes the rows of the files as one Parquet file per UTC day below `rawFolder`, unless they are there already; an import
 * that was interrupted is brought to its end by another. The rows stay in the table `staged`.
 * @param connection to any DuckDB with the macros of load/values.sql.
 * @throws DataError when a file cannot be read, or a row has no day to go to; nothing is written then.
 */
export async function importFiles(
  connection: DuckDBConnection,
  inputs: readonly Input[],
  options: ImportOptions,
): Promise<{ readonly parts: readonly ImportedPart[]; readonly left_out: number }> {
  const left_out = await stageInputs(connection, inputs, options.map)
  await refuseUnplaced(connection)
  const fileName = await nameOfParts(inputs, options)
  const days = await readRows(connection, 'import.sql#days', dayRow)
  const parts: ImportedPart[] = []
  for (const day of days) parts.push(await importDay(connection, fileName, day, options))
  if (!options.dryRun && options.source === undefined) removeOtherDays(options.rawFolder, fileName, parts)
  return { parts, left_out }
}

/** All of a source is one file a day. Without a source, the content of a file decides. */
async function nameOfParts(inputs: readonly Input[], { source }: ImportOptions): Promise<string> {
  if (source !== undefined) return `source-${source}.parquet`
  const hash = createHash('sha256')
  for (const { file } of inputs) {
    await pipeline(createReadStream(file.path), hash, { end: false })
  }
  return `import-${hash.digest('hex').slice(0, HASH_DIGITS)}.parquet`
}

async function refuseUnplaced(connection: DuckDBConnection): Promise<void> {
  const { rows, file, first_row, reason } = await readRow(connection, 'import.sql#unplaced', unplacedRow)
  if (rows === 0) return
  throw new DataError(
    `${file}: ${pluralize(rows, 'row')} without a day to go to, the first is row ${first_row}: ${reason}. ` +
      'Nothing of the file is imported; correct these rows or take them out',
  )
}

async function importDay(
  connection: DuckDBConnection,
  fileName: string,
  day: z.infer<typeof dayRow>,
  { rawFolder, dryRun, map, source }: ImportOptions,
): Promise<ImportedPart> {
  const name = join('usage', `date=${day.day}`, fileName)
  const target = join(rawFolder, name)
  const exists = existsSync(target)
  const may_double = source === undefined && !exists && hasOtherFiles(dirname(target), fileName)
  // The same bytes without a map are the same rows.
  const isSame = source === undefined && map === undefined
  if (exists && isSame) return { ...day, name, known: true, may_double }
  const columns = columnsOf(map, await presentColumns(connection))
  const known = dryRun ? false : await writePart(connection, { target, day: day.day, columns })
  return { ...day, name, known, may_double }
}

function hasOtherFiles(folder: string, fileName: string): boolean {
  if (!existsSync(folder)) return false
  return readdirSync(folder).some((name) => name !== fileName && !isPassedOver(name))
}

const presentRow = z.object({ has_id: z.boolean(), has_app: z.boolean() })

async function presentColumns(connection: DuckDBConnection): Promise<z.infer<typeof presentRow>> {
  return await readRow(connection, 'import.sql#present', presentRow)
}

/** Rows name their app in one of two columns; one that nobody fills would make them rows without an app. */
function columnsOf(map: UsageMap | undefined, present: z.infer<typeof presentRow>): UsageField[] {
  const hasApp = map === undefined ? present.has_app : map.columns.app !== undefined
  const hasId = map === undefined ? present.has_id || !hasApp : map.columns.app_id !== undefined
  return USAGE_FIELDS.filter((field) => (field === 'app' ? hasApp : field === 'app_id' ? hasId : true))
}

type Part = { readonly target: string; readonly day: string; readonly columns: readonly UsageField[] }

/**
 * Writes under a name that is passed over until the file is whole, and that another import of the same file does not
 * share. USE_TMP_FILE would give it a name that is not passed over.
 * @returns whether the same file was there already.
 */
async function writePart(connection: DuckDBConnection, { target, day, columns }: Part): Promise<boolean> {
  const [folder, prefix] = [dirname(target), `.${basename(target)}-`]
  mkdirSync(folder, { recursive: true })
  clearLeft(folder, prefix)
  return await withOwnPath(folder, prefix, async (aside) => {
    await connection.run(
      `COPY (
         SELECT ${columns.join(', ')}
         FROM staged
         WHERE CAST(utc_from_text(ts) AS DATE) = ${literal(day)}
       ) TO ${literal(aside)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)`,
    )
    if (existsSync(target) && (await readFile(target)).equals(await readFile(aside))) return true
    putInPlace(aside, target)
    return false
  })
}

/** The same file may have other days when it is read by another map. */
function removeOtherDays(rawFolder: string, fileName: string, parts: readonly ImportedPart[]): void {
  const names = parts.map(({ name }) => name)
  for (const name of globSync(join('usage', 'date=*', fileName), { cwd: rawFolder })) {
    if (!names.includes(name)) rmSync(join(rawFolder, name))
  }
}
