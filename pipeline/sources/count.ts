/**
 * Counts the usage of days with DuckDB (CONTRACT 7), for one CSV file in these steps:
 *
 * 1. `drop-folder.ts` lists it; `formats/csv.ts` says how DuckDB reads it, all of it as text.
 * 2. `incoming.ts` makes one view over all files, with the values that `columns.ts` and values.sql give the texts.
 * 3. The view is grouped into the table `groups`. A file with a row that is not valid is read once more by lines, which gives
 *    row and reason (`staging.ts`).
 * 4. load.sql names the apps (`names.ts`), finds rejected and repeated rows, and adds the groups up, unless each is an app and
 *    a model of its own already.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { z } from 'zod'
import { DataError, isShortage } from '../errors.ts'
import { scratchPath } from '../duckdb/database.ts'
import { execute, queryRows, readRow, readRows } from '../duckdb/statements.ts'
import { PULLED_COLUMNS, USAGE_COLUMNS } from './columns.ts'
import type { Columns } from './columns.ts'
import { PULLED_FILE, refuseCopies } from './drop-folder.ts'
import type { RawFile, UsageDay } from './drop-folder.ts'
import { hasGrown } from './formats/bytes.ts'
import { scanCsv } from './formats/csv.ts'
import { scanJsonLines } from './formats/json.ts'
import { scanParquet, withoutDescriptive } from './formats/parquet.ts'
import { defineIncoming, tryScan } from './incoming.ts'
import type { DayFile, Scan } from './incoming.ts'
import { appTextRow, nameApps } from './names.ts'
import { createStagingTable, stageFiles } from './staging.ts'

const fileRow = z.object({ file: z.int() })
const plainRow = z.object({ plain: z.boolean() })
const oddRow = z.object({ rejected: z.boolean(), doubtful: z.boolean() })
const apartRow = z.object({ apart: z.boolean() })
const someRow = z.object({ some: z.boolean() })
const sharedRow = z.object({ day: z.string(), request_id: z.string(), rows: z.string() })
const partsRow = z.object({ day: z.string(), part: z.string(), rows: z.string() })

/** The files of the days being counted, and how DuckDB reads those that are not staged. */
type Batch = { readonly files: readonly DayFile[]; readonly scans: Map<RawFile, Scan> }

/**
 * Counts days into temporary tables of the connection: `counted` (per day, app and hash of the model; app_id NULL holds the
 * rejected rows), `provider_counts`, `day_totals`, and `rejected` (the quarantine).
 * @returns what an operator should know about rows that count all the same.
 * @throws DataError with what cannot be read.
 */
export async function countDays(connection: DuckDBConnection, days: readonly UsageDay[]): Promise<string[]> {
  for (const { files } of days) await refuseCopies(files)
  const files = days.flatMap(({ day, files: some }) => some.map((file) => ({ day, file })))
  const folder = await scratchPath(connection)
  try {
    const rawFiles = files.map(({ file }) => file)
    const scans = await scanFiles(connection, rawFiles, folder)
    const columns = await countGroups(connection, { files, scans })
    await nameGroups(connection, columns.includes('app'))
    await execute(connection, 'load.sql#rejected')
    await findRepeats(connection, areText(files))
    await addUp(connection, isByApp(columns))
    return await describeLargeParts(connection)
  } finally {
    await connection.run('CREATE OR REPLACE TEMP TABLE staged (file VARCHAR)')
    rmSync(folder, { recursive: true, force: true })
  }
}

function columnsOf({ path }: RawFile): Columns {
  return basename(path) === PULLED_FILE ? PULLED_COLUMNS : USAGE_COLUMNS
}

/** How DuckDB reads each file; those that have to be read by lines or decoded first, as Arrow, are left out. */
async function scanFiles(connection: DuckDBConnection, files: readonly RawFile[], folder: string) {
  const parquet = files.filter(({ format }) => format === 'parquet')
  const scans = new Map(await scanParquet(connection, parquet, columnsOf))
  for (const file of files) {
    const scanText = file.format === 'csv' ? scanCsv : file.format === 'ndjson' ? scanJsonLines : undefined
    const scan = await scanText?.(file, join(folder, randomUUID()))
    if (scan !== undefined) scans.set(file, scan)
  }
  return scans
}

/**
 * Counts into the table `groups`; repeats it while a file has to be read otherwise.
 * @returns the columns that some file has.
 */
async function countGroups(connection: DuckDBConnection, batch: Batch): Promise<readonly string[]> {
  const { files, scans } = batch
  for (;;) {
    const staged = files.map(({ file }) => file).filter((file) => !scans.has(file))
    await createStagingTable(connection, USAGE_COLUMNS)
    await stageFiles(connection, staged, USAGE_COLUMNS)
    const columns = await defineIncoming(connection, files, scans)
    if (await groupRows(connection, columns, batch)) return columns
  }
}

/**
 * Groups the rows. A text file that DuckDB cannot read, or that has a row which is not valid, is to be read by lines, and so is
 * one that has grown since it was listed: DuckDB reads it to its end, maybe the half of a line.
 * @returns false if there is such a file.
 */
async function groupRows(
  connection: DuckDBConnection,
  columns: readonly string[],
  { files, scans }: Batch,
): Promise<boolean> {
  try {
    if (await groupPlainRows(connection, columns, files)) return true
    await connection.run(groupQueries(columns, files, 'all'))
  } catch (error) {
    if (isShortage(error) || error instanceof DataError) throw error
    if (await replaceUnreadable(connection, scans)) return false
    throw error
  }
  const { rejected, doubtful } = await readRow(connection, 'load.sql#odd-groups', oddRow)
  const rejecting = rejected ? await readRows(connection, 'load.sql#rejected-files', fileRow) : []
  const suspects = [
    ...rejecting.flatMap(({ file }) => files[file]?.file ?? []),
    ...(doubtful ? await findLacking(connection, scans) : []),
    ...[...scans.keys()].filter(hasGrown),
  ]
  const replaced = suspects.filter(({ format }) => format !== 'parquet')
  for (const file of replaced) scans.delete(file)
  return replaced.length === 0
}

/** Groups the rows of Parquet files by few keys; false if these do not suffice. */
async function groupPlainRows(
  connection: DuckDBConnection,
  columns: readonly string[],
  files: readonly DayFile[],
): Promise<boolean> {
  if (!isByApp(columns) || files.some(({ file }) => file.format !== 'parquet')) return false
  await connection.run(groupQueries(columns, files, 'few'))
  return (await readRow(connection, 'load.sql#plain-groups', plainRow)).plain
}

/**
 * Replaces what cannot be read as it was tried.
 * @returns false if there is no such file.
 * @throws DataError with a Parquet file that cannot be read at all.
 */
async function replaceUnreadable(connection: DuckDBConnection, scans: Map<RawFile, Scan>): Promise<boolean> {
  let isReplaced = false
  for (const [file, scan] of scans) {
    try {
      if (file.format !== 'parquet' && hasGrown(file))
        throw new Error('DuckDB may have met the half of a line')
      await tryScan(connection, scan)
    } catch (error) {
      if (isShortage(error)) throw error
      isReplaced = true
      if (file.format === 'parquet')
        scans.set(file, await withoutDescriptive(connection, file, scan, columnsOf(file)))
      else scans.delete(file)
    }
  }
  return isReplaced
}

/** The NDJSON files with a line that lacks a key. */
async function findLacking(
  connection: DuckDBConnection,
  scans: ReadonlyMap<RawFile, Scan>,
): Promise<RawFile[]> {
  const lacking: RawFile[] = []
  for (const [file, { lacksKeys }] of scans) {
    if (lacksKeys !== undefined && (await hasRows(connection, lacksKeys))) lacking.push(file)
  }
  return lacking
}

/** Whether rows are grouped by day, app and model alone. */
function isByApp(columns: readonly string[]): boolean {
  return !columns.includes('app') && !columns.includes('provider')
}

/** Whether reading the files a second time, for the request ids alone, takes as long as the first time. */
function areText(files: readonly DayFile[]): boolean {
  return files.every(({ file }) => file.format !== 'parquet')
}

const ID_HASHES = 'list(hash(i.request_id)) FILTER (i.request_id IS NOT NULL)'
const NO_TEXT = 'CAST(NULL AS VARCHAR)'
const NO_TIME = 'CAST(NULL AS TIMESTAMP)'

/** A column of `groups`: its value over `incoming`, the columns that needs, and the constant where no file has these. */
type GroupColumn = readonly [expression: string, needs?: readonly string[], otherwise?: string]

const GROUP_COLUMNS: Readonly<Record<string, GroupColumn>> = {
  app_id: ['i.app_id'],
  app: ['i.app', ['app'], NO_TEXT],
  model: ['i.model', ['model'], NO_TEXT],
  provider: ['i.provider', ['provider'], NO_TEXT],
  account_id: ['i.account_id', ['app', 'account_id'], NO_TEXT],
  app_title: ['i.app_title', ['app', 'app_title'], NO_TEXT],
  app_categories: ['i.app_categories', ['app', 'app_categories'], NO_TEXT],
  read: ['count(*)'],
  rows: ['CAST(sum(i.row_count) AS BIGINT)', ['row_count'], 'read'],
  requests: ['sum(i.requests)', ['requests'], 'rows'],
  prompt_tokens: ['sum(i.prompt_tokens)'],
  completion_tokens: ['sum(i.completion_tokens)'],
  reasoning_tokens: [partOf('reasoning_tokens', 'completion_tokens'), ['reasoning_tokens'], '0'],
  cached_tokens: [partOf('cached_tokens', 'prompt_tokens'), ['cached_tokens'], '0'],
  rows_large_reasoning: [
    'count(*) FILTER (i.reasoning_tokens > i.completion_tokens)',
    ['reasoning_tokens'],
    '0',
  ],
  rows_large_cached: ['count(*) FILTER (i.cached_tokens > i.prompt_tokens)', ['cached_tokens'], '0'],
  rows_failed: ['count_if(i.requests = 0)', ['requests'], '0'],
  seen_at: ['min(i.ts)', ['app'], NO_TIME],
  served_at: ['min(CASE WHEN i.requests > 0 THEN i.ts END)', ['app'], NO_TIME],
}

const VALIDATED =
  'i.day, i.fault, i.ts, i.app_id, i.app IS NOT NULL, i.prompt_tokens, i.completion_tokens, i.requests, i.row_count'

/** Whether valid rows have tokens; NULL for rows that are not valid. */
const HAS_TOKENS = `CASE WHEN violation_but_text(${VALIDATED}) IS NULL THEN i.prompt_tokens IS NOT NULL END`

/**
 * What `few` keys have instead, NULL where they cannot count a row. The hash of a model is computed once for each text of a
 * Parquet dictionary and groups faster than the text; sums of BIGINT are added up faster.
 */
const OF_FEW: Readonly<Record<string, string>> = {
  app_id: `CASE WHEN is_plain(${VALIDATED}) THEN i.app_id END`,
  model: 'hash(model_from_text(i.model))',
  requests: 'TRY_CAST(sum(i.requests) AS BIGINT)',
  prompt_tokens: 'TRY_CAST(sum(i.prompt_tokens) AS BIGINT)',
  completion_tokens: 'TRY_CAST(sum(i.completion_tokens) AS BIGINT)',
}

function partOf(column: string, whole: string): string {
  return `coalesce(sum(CASE WHEN i.${column} BETWEEN 0 AND i.${whole} THEN i.${column} END), 0)`
}

/**
 * The table `grouped`, the rows by day, app, model and what else tells them apart, and the view `groups` over it, which has
 * the same columns for every batch. A column that is the same for all rows takes no time and no place: it is in the view
 * alone. The table `model_texts` has the texts that name models.
 * @param keys `few` suffice where every row is plain and files have no other key than app and model.
 */
function groupQueries(columns: readonly string[], files: readonly DayFile[], keys: 'few' | 'all'): string {
  const isFew = keys === 'few'
  const days = new Set(files.map(({ day }) => `DATE '${day}'`))
  const hasHashes = columns.includes('request_id') && areText(files)
  const fields = [
    { name: 'day', expression: 'i.day', constant: days.size === 1 ? [...days].join('') : undefined },
    { name: 'has_tokens', expression: HAS_TOKENS, constant: isFew ? 'true' : undefined },
    ...Object.entries(GROUP_COLUMNS).map(([name, [usual, needs = [], otherwise]]) => {
      const isThere = needs.every((column) => columns.includes(column))
      const expression = (isFew ? OF_FEW[name] : undefined) ?? usual
      return { name, expression, constant: isThere ? undefined : otherwise }
    }),
    { name: 'id_hashes', expression: ID_HASHES, constant: hasHashes ? undefined : 'CAST(NULL AS UBIGINT[])' },
  ]
  const grouped = fields.filter(({ constant }) => constant === undefined)
  const rows = `
    SELECT ${grouped.map(({ name, expression }) => `${expression} AS ${name}`).join(', ')}
    FROM incoming AS i
    GROUP BY ALL`
  const readable = 'CASE WHEN is_unreadable(g.app) IS NOT TRUE THEN g.has_tokens END AS has_tokens'
  const isHashed = isFew && columns.includes('model')
  return `
    CREATE OR REPLACE TEMP TABLE grouped AS
    ${columns.includes('app') ? `SELECT g.* REPLACE (${readable}) FROM (${rows}) AS g` : rows};
    CREATE OR REPLACE TEMP VIEW groups AS
    SELECT ${fields.map(({ name, constant }) => (constant === undefined ? name : `${constant} AS ${name}`)).join(', ')},
      ${isHashed ? 'model' : 'hash(model_from_text(model))'} AS model_key
    FROM grouped;
    CREATE OR REPLACE TEMP TABLE model_texts AS
    SELECT t.text, model_from_text(t.text) AS model
    FROM (SELECT DISTINCT s.model AS text FROM ${isHashed ? 'incoming' : 'groups'} AS s) AS t`
}

/** Gives the texts that name apps their ids, and stores who named them first. */
async function nameGroups(connection: DuckDBConnection, isNamed: boolean): Promise<void> {
  const texts = isNamed ? await readRows(connection, 'load.sql#texts', appTextRow) : []
  await nameApps(
    connection,
    texts.map(({ app }) => app),
  )
  if (texts.length > 0) await execute(connection, 'load.sql#named-apps')
}

async function hasRows(connection: DuckDBConnection, from: string): Promise<boolean> {
  const [found] = await queryRows(connection, `SELECT count(*) > 0 AS some ${from}`, someRow)
  return found?.some === true
}

/** @throws DataError with an id that more than half of a day's rows share. */
async function findRepeats(connection: DuckDBConnection, areHashed: boolean): Promise<void> {
  await execute(connection, areHashed ? 'load.sql#collisions-of-groups' : 'load.sql#collisions')
  await execute(connection, 'load.sql#repeated-ids')
  const [shared] = await readRows(connection, 'load.sql#shared-ids', sharedRow)
  if (shared !== undefined) {
    throw new DataError(
      `Day ${shared.day}: ${shared.rows} rows, more than half of the day, have the request_id "${shared.request_id}"; ` +
        'they would count as one request. Correct or remove the column request_id',
    )
  }
  await execute(connection, 'load.sql#repeats')
}

/** Adds the groups up, unless each of them is an app and a model of its own. */
async function addUp(connection: DuckDBConnection, areByApp: boolean): Promise<void> {
  await execute(connection, 'load.sql#valid-rows')
  const isApart = areByApp && (await readRow(connection, 'load.sql#groups-apart', apartRow)).apart
  await execute(connection, isApart ? 'load.sql#groups-as-counted' : 'load.sql#counted')
  await execute(connection, 'load.sql#totals')
}

async function describeLargeParts(connection: DuckDBConnection): Promise<string[]> {
  const parts = await readRows(connection, 'load.sql#large-parts', partsRow)
  return parts.map(
    ({ day, part, rows }) =>
      `Day ${day}: ${part} are more than the count that contains them in ${rows} rows, and are left out there`,
  )
}
