/**
 * Sorts usage files into the folders of their days, on the readers of the drop folder. Values stay as they are: the next run
 * validates them.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { existsSync, globSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { literal } from '../../duckdb/sql-values.ts'
import { countSchema, execute, readRows } from '../../duckdb/statements.ts'
import { DataError, messageOf } from '../../errors.ts'
import { pluralize } from '../../program/terminal.ts'
import { putInPlace } from '../../snapshot/durable-file.ts'
import { removeLeftovers, ownPath } from '../../snapshot/own-files.ts'
import { measureFile } from '../../snapshot/verify.ts'
import { USAGE_COLUMNS } from '../columns.ts'
import { isSkipped, type RawFile } from '../drop-folder.ts'
import { isRecord, type Document } from '../formats/json.ts'
import { createStagingTable, stageFiles } from '../staging.ts'
import { mapRow } from './map-row.ts'
import { USAGE_FIELDS, type UsageMap } from './usage-map.ts'

const unplacedRow = z.object({ rows: countSchema, file: z.string(), row: countSchema, reason: z.string() })
const dayRow = z.object({
  day: z.string(),
  rows: countSchema,
  requests: z.string(),
  prompt_tokens: z.string(),
  completion_tokens: z.string(),
  /** Tokens of rows without an app. */
  tokens_without_app: z.string(),
  has_app: z.boolean(),
  has_prompt_tokens: z.boolean(),
  has_completion_tokens: z.boolean(),
  /** Rows whose cached or reasoning tokens are more than the count that contains them. */
  rows_large_parts: countSchema,
  rows_without_id: countSchema,
})
type Day = z.infer<typeof dayRow>
/** Columns without a value are left out. */
const firstRow = z
  .record(z.string(), z.string().nullable())
  .transform((row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)))

/** One day of an import. Sums are text, since they may exceed 2^53. */
export type ImportedPart = Day & {
  /** Path below raw/. */
  readonly name: string
  /** Whether it was imported before. */
  readonly known: boolean
  /** Whether another file of the day has usage, so that rows without request_id may count twice. */
  readonly may_double: boolean
  /** Whether it replaces what the source brought for the day before. */
  readonly replaces: boolean
}

export type Imported = {
  readonly parts: readonly ImportedPart[]
  /** Rows that are not generations. */
  readonly skipped: number
  /** The first rows, decoded, in a dry run. */
  readonly first_rows: readonly z.infer<typeof firstRow>[]
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
 * import completes it.
 * @param connection to any DuckDB with the macros of values.sql.
 * @throws DataError if a file cannot be read or a row has no valid day; then nothing is written.
 */
export async function importFiles(
  connection: DuckDBConnection,
  files: readonly RawFile[],
  options: ImportOptions,
): Promise<Imported> {
  const { dryRun, map, source, rawFolder } = options
  await createStagingTable(connection, USAGE_COLUMNS)
  let skipped = 0
  const convert =
    map &&
    ((document: Document) => {
      const rows = mapDocument(document, map)
      const usage = rows.filter((row) => row !== undefined)
      skipped += rows.length - usage.length
      return usage
    })
  // A copy among the files of a source would count every row twice.
  const copies = Map.groupBy(files, ({ path }) => measureFile(dirname(path), basename(path)).sha256)
  const distinct = [...copies.values()].flatMap(([first]) => first ?? [])
  await stageFiles(connection, distinct, USAGE_COLUMNS, convert)
  await execute(connection, 'import.sql#place')
  await refuseUnplaced(connection)
  // With a source one file per day, otherwise named by the content, so that the same file is stored once.
  const [content = ''] = copies.keys()
  const fileName = `${source === undefined ? `import-${content.slice(0, 16)}` : `source-${source}`}.parquet`
  const parts: ImportedPart[] = []
  for (const day of await readRows(connection, 'import.sql#days', dayRow)) {
    parts.push(await importDay(connection, fileName, day, options))
  }
  if (!dryRun && source === undefined) removeOtherDays(rawFolder, fileName, parts)
  const first_rows = dryRun ? await readRows(connection, 'import.sql#first-rows', firstRow) : []
  return { parts, skipped, first_rows }
}

/** The rows of usage in a document, undefined for each that is no generation; a fault where the map cannot read it. */
function mapDocument(document: Document, map: UsageMap): readonly (Document | undefined)[] {
  const { row, value, fault } = document
  if (fault !== undefined) return [document]
  try {
    return [...(map.rows?.(value) ?? [value])].map((item) => {
      const usage = mapRow(item, map)
      if (usage === undefined) return undefined
      if (typeof usage.ts === 'string') return { row, value: usage }
      // The likely reason is a file of another producer.
      const paths = [map.columns.ts].flat().filter((path) => typeof path === 'string')
      const keys = isRecord(item) ? Object.keys(item).join(', ') : 'none'
      throw new DataError(
        `no time under ${paths.join(' or ')}; the keys there are ${keys}. Give the right map with --from or --map`,
      )
    })
  } catch (error) {
    return [{ ...document, fault: messageOf(error) }]
  }
}

/** @throws DataError with the first row that is none, or has no valid day. */
async function refuseUnplaced(connection: DuckDBConnection): Promise<void> {
  const [first] = await readRows(connection, 'import.sql#unplaced', unplacedRow)
  if (first === undefined) return
  throw new DataError(
    `${first.file}: ${pluralize(first.rows, 'row')} cannot be imported, the first is row ${first.row}: ` +
      `${first.reason}. Nothing of the file is imported; correct or remove these rows`,
  )
}

async function importDay(
  connection: DuckDBConnection,
  fileName: string,
  day: Day,
  { rawFolder, dryRun, map, source }: ImportOptions,
): Promise<ImportedPart> {
  const name = join('usage', `date=${day.day}`, fileName)
  const target = join(rawFolder, name)
  const exists = existsSync(target)
  const hasOthers =
    existsSync(dirname(target)) && readdirSync(dirname(target)).some((other) => !isSkipped(other))
  // An empty column app would mark all rows as without an app.
  const columns = USAGE_FIELDS.filter((field) => field !== 'app' || day.has_app)
  const rows = `SELECT ${columns.join(', ')} FROM staged WHERE day = DATE ${literal(day.day)}`
  // Without a map, the same bytes give the same rows.
  const isSame = exists && source === undefined && map === undefined
  const known = dryRun ? isSame : await writePart(connection, target, rows)
  return {
    ...day,
    name,
    known,
    may_double: source === undefined && !exists && hasOthers,
    replaces: exists && !known && source !== undefined,
  }
}

/**
 * Writes under a temporary name that readers skip and no other import shares. DuckDB's USE_TMP_FILE would use a name that
 * readers do not skip.
 * @returns whether the same file existed.
 */
async function writePart(connection: DuckDBConnection, target: string, rows: string): Promise<boolean> {
  const [folder, prefix] = [dirname(target), `.${basename(target)}-`]
  mkdirSync(folder, { recursive: true })
  removeLeftovers(folder, prefix)
  using aside = ownPath(folder, prefix)
  await connection.run(
    `COPY (${rows}) TO ${literal(aside.path)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)`,
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
