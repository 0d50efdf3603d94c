/**
 * Counts usage from the files of the drop folder with DuckDB (CONTRACT 7). Parquet and text files are read in place, through
 * the view `incoming` with the input columns and day, file, row, fault and payload; a text file with a row that is not valid
 * is read once more by lines, which gives row and reason (staging.ts).
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { DataError, isShortage } from '../errors.ts'
import { scratchPath } from '../duckdb/scratch.ts'
import { execute, queryRows, readRows } from '../duckdb/statements.ts'
import { USAGE_COLUMNS, isValidated } from './columns.ts'
import { fingerprintOf, listUsageDays, refuseCopies } from './drop-folder.ts'
import type { RawFile } from './drop-folder.ts'
import { groupBySchema, parquetRows, readingParquet } from './formats/parquet-file.ts'
import { hasGrown, inspectText, lacksKeys } from './formats/text-file.ts'
import type { TextFile } from './formats/text-file.ts'
import { layoutOf, pathsOf } from './formats/text-rows.ts'
import { branchesOf, defineIncoming } from './incoming.ts'
import type { Batch } from './incoming.ts'
import { nameApps } from './named-apps.ts'
import { createStagingTable, stageFiles } from './staging.ts'
import type { TypedColumns } from './typed-columns.ts'

const fileRow = z.object({ file: z.int() })
const textRow = z.object({ app: z.string() })
const emptyRow = z.object({ some: z.boolean() })
const sharedRow = z.object({ day: z.string(), request_id: z.string(), rows: z.string() })
const partsRow = z.object({ name: z.string(), rows: z.string() })

/** A UTC day of raw usage. */
export type SourceDay = {
  /** `YYYY-MM-DD` */
  readonly day: string
  /** Equal as long as the day's files have not changed. */
  readonly fingerprint: string
  readonly files: readonly RawFile[]
}

/** The days with usage, oldest first. */
export function listDays(rawFolder: string): SourceDay[] {
  return listUsageDays(rawFolder).map(({ day, files }) => ({ day, files, fingerprint: fingerprintOf(files) }))
}

/**
 * Counts days into temporary tables of the connection: `counted` (per day, app and model; app_id NULL holds the rejected
 * rows, model NULL is unknown), `duplicates` (per day, app and model, to be subtracted), `provider_counts`, and `rejected`
 * (the quarantine).
 * @returns what an operator should know about rows that count all the same.
 * @throws DataError with what cannot be read.
 */
export async function countDays(connection: DuckDBConnection, days: readonly SourceDay[]): Promise<string[]> {
  for (const { files } of days) await refuseCopies(files)
  const folder = await scratchPath(connection)
  try {
    const batch = await inspect(connection, days, folder)
    const columns = await countGroups(connection, batch, folder)
    await nameGroups(connection, columns.includes('app'))
    await findRepeats(connection, columns.includes('request_id'))
    await execute(connection, 'load/count.sql#counted')
    return await describeLargeParts(connection)
  } finally {
    await connection.run('CREATE OR REPLACE TEMP TABLE staged (file VARCHAR)')
    rmSync(folder, { recursive: true, force: true })
  }
}

async function inspect(
  connection: DuckDBConnection,
  days: readonly SourceDay[],
  folder: string,
): Promise<Batch> {
  const files = days.flatMap((each) => each.files.map((file) => ({ day: each.day, file })))
  const ofFormat = (...formats: readonly string[]) =>
    files.map(({ file }) => file).filter(({ format }) => formats.includes(format))
  const texts = new Map<RawFile, TextFile>()
  for (const file of ofFormat('csv', 'ndjson')) {
    texts.set(file, await inspectText(file, join(folder, String(texts.size))))
  }
  const parquet = await groupBySchema(connection, ofFormat('parquet'), USAGE_COLUMNS)
  return { days: days.map(({ day }) => day), files, parquet, texts, staged: new Set(ofFormat('arrow')) }
}

/**
 * Counts into the table `groups`; repeats it while a text file has to be read by lines.
 * @returns the columns that some file has.
 */
async function countGroups(
  connection: DuckDBConnection,
  batch: Batch,
  folder: string,
): Promise<readonly string[]> {
  for (;;) {
    const branches = branchesOf(batch)
    await createStagingTable(connection, USAGE_COLUMNS)
    await stageFiles(connection, [...batch.staged], USAGE_COLUMNS)
    await defineIncoming(connection, batch, branches)
    const columns = [...new Set(branches.flatMap(({ columns: some }) => some))]
    let isCounted = true
    try {
      await connection.run(groupsQuery(columns, batch.files.length > 1))
    } catch (error) {
      isCounted = false
      if (isShortage(error) || error instanceof DataError) throw error
      if (!(await readAlone(connection, batch))) throw error
    }
    if (isCounted && !(await readAgain(connection, batch, folder))) return columns
  }
}

/**
 * Puts every text file that DuckDB cannot read among those that are read by lines; false if there is none.
 * @throws DataError with a Parquet file that cannot be read.
 */
async function readAlone(connection: DuckDBConnection, batch: Batch): Promise<boolean> {
  const before = batch.staged.size
  for (const [file, text] of batch.texts) {
    const layout = batch.staged.has(file) ? undefined : layoutOf(text)
    if (layout === undefined) continue
    try {
      await connection.run(hashOf(layout.types, layout.rows(pathsOf([text]))))
    } catch (error) {
      if (isShortage(error)) throw error
      batch.staged.add(file)
    }
  }
  const isSplit = await splitUnreadable(connection, batch)
  return isSplit || batch.staged.size > before
}

/**
 * Takes the descriptive columns from each Parquet file where they cannot be read: they decide nothing.
 * @throws DataError with a file whose other columns cannot be read either.
 */
async function splitUnreadable(connection: DuckDBConnection, { parquet }: Batch): Promise<boolean> {
  const before = parquet.length
  for (const group of parquet.slice()) {
    for (const file of group.files.slice()) {
      try {
        await connection.run(hashOf(group.types, parquetRows([file])))
      } catch {
        const types = new Map([...group.types].filter(([column]) => isValidated(USAGE_COLUMNS, column)))
        await readingParquet(file, () => connection.run(hashOf(types, parquetRows([file]))))
        group.files.splice(group.files.indexOf(file), 1)
        parquet.push({ ...group, types, files: [file] })
      }
    }
  }
  return parquet.length > before
}

/** Reads the usage columns completely. */
function hashOf(types: TypedColumns, rows: string): string {
  const columns = [...types.values()].map(({ name }) => `bit_xor(hash(${name}))`)
  return `SELECT ${columns.join(', ')} FROM ${rows}`
}

/** Finds the text files to read otherwise than they were; false if there is none. */
async function readAgain(connection: DuckDBConnection, batch: Batch, folder: string): Promise<boolean> {
  const numbers = async (name: string) => {
    const rows = await readRows(connection, name, fileRow)
    return rows.flatMap(({ file }) => batch.files[file]?.file ?? [])
  }
  const isInPlace = (file: RawFile) => batch.texts.has(file) && !batch.staged.has(file)
  const grown = [...batch.texts].filter(
    ([file, { path }]) => isInPlace(file) && path === file.path && hasGrown(file),
  )
  for (const [index, [file]] of grown.entries()) {
    batch.texts.set(file, await inspectText(file, join(folder, `grown-${index}`)))
  }
  const suspects = (await numbers('load/count.sql#suspects')).filter(isInPlace)
  for (const file of (await numbers('load/count.sql#unknown-files')).filter(isInPlace)) {
    const text = batch.texts.get(file)
    if (file.format === 'ndjson' && text !== undefined && (await lacksKeys(text))) suspects.push(file)
  }
  for (const file of suspects) if (!grown.some(([other]) => other === file)) batch.staged.add(file)
  return suspects.length + grown.length > 0
}

/** The rows by file, validity, app, model and provider. A column that no file has takes no time. */
function groupsQuery(columns: readonly string[], severalFiles: boolean): string {
  const has = (column: string) => columns.includes(column)
  const textKey = (column: string) => (has(column) ? `i.${column}` : 'CAST(NULL AS VARCHAR)')
  const rows = has('row_count') ? 'CAST(sum(i.row_count) AS BIGINT)' : 'count(*)'
  const part = (column: string, whole: string) =>
    has(column) ? `sum(CASE WHEN i.${column} BETWEEN 0 AND i.${whole} THEN i.${column} END)` : '0'
  const isLarge = [
    ...(has('reasoning_tokens') ? ['i.reasoning_tokens > i.completion_tokens'] : []),
    ...(has('cached_tokens') ? ['i.cached_tokens > i.prompt_tokens'] : []),
  ].join(' OR ')
  const ofApp = (expression: string) => (has('app') ? expression : 'CAST(NULL AS TIMESTAMP)')
  return `
    CREATE OR REPLACE TEMP TABLE groups AS
    SELECT
      ${severalFiles ? 'i.file' : '0'} AS file,
      violation(
        i.day, i.fault, i.ts, i.app_id, i.app, i.prompt_tokens, i.completion_tokens, i.requests, i.row_count
      ) IS NULL AS valid,
      i.app_id,
      ${textKey('app')} AS app,
      ${textKey('model')} AS model,
      ${textKey('provider')} AS provider,
      i.prompt_tokens IS NULL AS unknown,
      count(*) AS read,
      ${rows} AS rows,
      ${has('requests') ? 'CAST(sum(i.requests) AS BIGINT)' : rows} AS requests,
      sum(i.prompt_tokens) AS prompt_tokens,
      sum(i.completion_tokens) AS completion_tokens,
      ${part('reasoning_tokens', 'completion_tokens')} AS reasoning_tokens,
      ${part('cached_tokens', 'prompt_tokens')} AS cached_tokens,
      ${isLarge === '' ? '0' : `count_if(${isLarge})`} AS rows_large_parts,
      ${has('requests') ? 'count_if(i.requests = 0)' : '0'} AS rows_failed,
      ${ofApp('min(i.ts)')} AS seen_at,
      ${ofApp('min(CASE WHEN i.requests > 0 THEN i.ts END)')} AS served_at
    FROM incoming AS i
    GROUP BY ALL`
}

/** Gives the texts that name apps their ids, and stores who named them first. */
async function nameGroups(connection: DuckDBConnection, isNamed: boolean): Promise<void> {
  const texts = isNamed ? await readRows(connection, 'load/count.sql#texts', textRow) : []
  await nameApps(
    connection,
    texts.map(({ app }) => app),
  )
  await execute(connection, 'load/count.sql#new-texts')
  if (await hasRows(connection, 'new_texts')) {
    await execute(connection, 'load/count.sql#claims')
    await execute(connection, 'load/count.sql#store-claims')
  }
  const isRejected = await hasRows(connection, 'groups', 'WHERE NOT valid')
  await execute(connection, isRejected ? 'load/count.sql#rejected' : 'load/count.sql#nothing-rejected')
}

async function hasRows(connection: DuckDBConnection, table: string, where = ''): Promise<boolean> {
  const [found] = await queryRows(connection, `SELECT count(*) > 0 AS some FROM ${table} ${where}`, emptyRow)
  return found?.some === true
}

/** @throws DataError with an id that more than half of a day's rows share. */
async function findRepeats(connection: DuckDBConnection, hasIds: boolean): Promise<void> {
  if (hasIds) await execute(connection, 'load/count.sql#collisions')
  if (!hasIds || !(await hasRows(connection, 'hash_collisions'))) {
    return await execute(connection, 'load/count.sql#no-repeats')
  }
  await execute(connection, 'load/count.sql#repeated-ids')
  const [shared] = await readRows(connection, 'load/count.sql#shared-ids', sharedRow)
  if (shared !== undefined) {
    throw new DataError(
      `Day ${shared.day}: ${shared.rows} rows, more than half of the day, have the request_id "${shared.request_id}"; ` +
        'they would count as one request. Correct or remove the column request_id',
    )
  }
  await execute(connection, 'load/count.sql#repeats')
}

async function describeLargeParts(connection: DuckDBConnection): Promise<string[]> {
  const files = await readRows(connection, 'load/count.sql#large-parts', partsRow)
  return files.map(
    ({ name, rows }) =>
      `${name}: cached_tokens or reasoning_tokens are more than the count that contains them in ${rows} rows, and are left out there`,
  )
}
