/** Sorts usage files into the folders of their days, values unchanged: the next run validates them. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, globSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { pluralize } from '../../program/terminal.ts'
import { putInPlace } from '../../snapshot/durable-file.ts'
import { clearLeft, ownPath } from '../../snapshot/own-files.ts'
import { DataError } from '../../errors.ts'
import { literal } from '../../duckdb/sql-values.ts'
import { countSchema, execute, readRow, readRows } from '../../duckdb/statements.ts'
import { decodeRegistry, stageRegistry } from '../../registry/registry.ts'
import { isSkipped } from '../drop-folder.ts'
import { nameApps } from '../names.ts'
import type { Input } from './input.ts'
import { stageInputs } from './stage-inputs.ts'
import { USAGE_FIELDS } from './usage-map.ts'
import type { UsageField, UsageMap, UsageRow } from './usage-map.ts'

/** Digits of a file's SHA-256 in the names of its parts, so that the same file is stored once. */
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
  /** Tokens of rows without an app. */
  tokens_without_app: z.string(),
  /** Rows whose cached or reasoning tokens are more than the count that contains them. */
  rows_large_parts: countSchema,
  rows_without_id: countSchema,
})

/** One day of an import. Sums are text, since they may exceed 2^53. */
export type ImportedPart = z.infer<typeof dayRow> & {
  /** Path below raw/. */
  readonly name: string
  /** Whether they were imported before. */
  readonly known: boolean
  /** Whether another file of the day has usage, so that rows without request_id may count twice. */
  readonly may_double: boolean
  /** Whether it replaces what the source brought for the day before. */
  readonly replaces: boolean
}

export type ImportOptions = {
  readonly rawFolder: string
  readonly dryRun: boolean
  /** How to read the files; without a map they have the columns of raw usage. */
  readonly map?: UsageMap | undefined
  /** Name of the source: its earlier usage of the same days is replaced. */
  readonly source?: string | undefined
}

/**
 * Writes the rows of the files as one Parquet file per UTC day below `rawFolder`, unless it exists; repeating an interrupted
 * import completes it. The rows stay in the table `staged`.
 * @param connection to any DuckDB with the macros of values.sql.
 * @throws DataError if a file cannot be read or a row has no valid day; then nothing is written.
 */
export async function importFiles(
  connection: DuckDBConnection,
  inputs: readonly Input[],
  options: ImportOptions,
): Promise<{ readonly parts: readonly ImportedPart[]; readonly skipped: number }> {
  const skipped = await stageInputs(connection, inputs, options.map)
  await refuseUnplaced(connection)
  const fileName = await nameOfParts(inputs, options)
  const days = await readRows(connection, 'import.sql#days', dayRow)
  const parts: ImportedPart[] = []
  for (const day of days) parts.push(await importDay(connection, fileName, day, options))
  if (!options.dryRun && options.source === undefined) removeOtherDays(options.rawFolder, fileName, parts)
  return { parts, skipped }
}

/** Name of a day's file: with a source one file per day, otherwise by the content of the imported file. */
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
    `${file}: ${pluralize(rows, 'row')} without a valid day, the first is row ${first_row}: ${reason}. ` +
      'Nothing of the file is imported; correct or remove these rows',
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
  // Without a map, the same bytes give the same rows.
  const isSame = source === undefined && map === undefined
  if (exists && isSame) return { ...day, name, known: true, may_double, replaces: false }
  const columns = columnsOf(map, await presentColumns(connection))
  const known = dryRun ? false : await writePart(connection, { target, day: day.day, columns })
  return { ...day, name, known, may_double, replaces: exists && !known && source !== undefined }
}

function hasOtherFiles(folder: string, fileName: string): boolean {
  if (!existsSync(folder)) return false
  return readdirSync(folder).some((name) => name !== fileName && !isSkipped(name))
}

const presentRow = z.object({ has_id: z.boolean(), has_app: z.boolean() })

async function presentColumns(connection: DuckDBConnection): Promise<z.infer<typeof presentRow>> {
  return await readRow(connection, 'import.sql#present', presentRow)
}

/** Rows name their app in one of two columns; an empty column app would mark all rows as without an app. */
function columnsOf(map: UsageMap | undefined, present: z.infer<typeof presentRow>): UsageField[] {
  const hasApp = map === undefined ? present.has_app : map.columns.app !== undefined
  const hasId = map === undefined ? present.has_id || !hasApp : map.columns.app_id !== undefined
  return USAGE_FIELDS.filter((field) => (field === 'app' ? hasApp : field === 'app_id' ? hasId : true))
}

type Part = { readonly target: string; readonly day: string; readonly columns: readonly UsageField[] }

/**
 * Writes under a temporary name that readers skip and no other import shares. DuckDB's USE_TMP_FILE would use a name that
 * readers do not skip.
 * @returns whether the same file existed.
 */
async function writePart(connection: DuckDBConnection, { target, day, columns }: Part): Promise<boolean> {
  const [folder, prefix] = [dirname(target), `.${basename(target)}-`]
  mkdirSync(folder, { recursive: true })
  clearLeft(folder, prefix)
  using aside = ownPath(folder, prefix)
  await connection.run(
    `COPY (
       SELECT ${columns.join(', ')}
       FROM staged
       WHERE CAST(utc_from_text(ts) AS DATE) = ${literal(day)}
     ) TO ${literal(aside.path)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)`,
  )
  if (existsSync(target) && (await readFile(target)).equals(await readFile(aside.path))) return true
  putInPlace(aside.path, target)
  return false
}

/** Another map may give the same file other days. */
function removeOtherDays(rawFolder: string, fileName: string, parts: readonly ImportedPart[]): void {
  const names = parts.map(({ name }) => name)
  for (const name of globSync(join('usage', 'date=*', fileName), { cwd: rawFolder })) {
    if (!names.includes(name)) rmSync(join(rawFolder, name))
  }
}

const firstRow = z.record(z.enum(USAGE_FIELDS), z.string().nullable())
const appRow = z.object({ app: z.string() })
const textRow = z.object({ text: z.string() })

export type Summary = {
  /** The apps that the registry lacks, by the first text that names each. */
  readonly new_apps: readonly string[]
  /** The first rows, decoded, in a dry run. */
  readonly first_rows: readonly UsageRow[]
}

/** Computes the summary from the table `staged`, and then replaces that table by the registry. */
export async function readSummary(
  connection: DuckDBConnection,
  { dryRun, rawFolder }: ImportOptions,
): Promise<Summary> {
  const apps = await readRows(connection, 'import.sql#apps', appRow)
  const rows = dryRun ? await readRows(connection, 'import.sql#first-rows', firstRow) : []
  const texts = apps.map(({ app }) => app)
  const new_apps = texts.length === 0 ? [] : await newAmong(connection, texts, rawFolder)
  return { new_apps, first_rows: rows.map(withoutNulls) }
}

/** Apps that the registry lacks; all if the registry cannot be read, which the next run reports. */
async function newAmong(
  connection: DuckDBConnection,
  texts: readonly string[],
  rawFolder: string,
): Promise<string[]> {
  try {
    await execute(connection, 'warehouse.sql')
    await stageRegistry(connection, rawFolder)
    await decodeRegistry(connection)
  } catch (error) {
    if (error instanceof DataError) return [...texts]
    throw error
  }
  await nameApps(connection, texts)
  return (await readRows(connection, 'import.sql#new-apps', textRow)).map(({ text }) => text)
}

function withoutNulls(row: UsageRow): UsageRow {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))
}
