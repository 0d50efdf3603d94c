/** Stage 3: builds the snapshot beside the published ones: the public tables, the macros and their rankings. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import {
  CATEGORIES,
  COMPARABILITY_NOTE,
  DATASET_VERSION,
  FLOOR_DATE,
  LICENCE,
  SNAPSHOT_FILE,
  addDays,
  subcategoriesOf,
  wholeSeconds,
} from './contract.ts'
import { DataError } from './errors.ts'
import { fillFast } from './fast.ts'
import { fillRankings } from './rankings.ts'
import { currentSnapshot, listSnapshots, pointAt } from './snapshots.ts'
import type { Run, StageResult } from './stage.ts'
import { countSchema, execute, literal, queryRows, readRow, sqlFile } from './warehouse.ts'

/** Raised when the shape or the rules of a snapshot change, so that unchanged input is published anew. */
const SNAPSHOT_RULES = 4

/** App-days that are merged, sorted and written in one go: few enough for memory, many enough to be worth a statement. */
const ROWS_AT_ONCE = 2_500_000

const extentRow = z.object({
  first_day: z.string().nullable(),
  data_through: z.string().nullable(),
  wide: z.boolean(),
  days_at_once: countSchema,
})
const fingerprintRow = z.object({ input_fingerprint: z.string() })
const totalsRow = z.object({
  apps: countSchema,
  app_days: countSchema,
  ranking_rows: countSchema,
  days_restated: countSchema,
  days_missing: countSchema,
  requests_published: z.string(),
  tokens_published: z.string(),
})

/** Days between which the snapshot has data, whether BIGINT is too narrow for a day of an app, and the step of the copy. */
type Extent = {
  readonly firstDay: string
  readonly dataThrough: string
  readonly wide: boolean
  readonly daysAtOnce: number
}

/**
 * Builds the snapshot, unless the newest one was made from the same input.
 * @throws DataError when there is no usage at all.
 */
export async function rank(run: Run): Promise<StageResult> {
  const extent = await readExtent(run)
  const sources = readSources(run)
  const fingerprint = await fingerprintOf(run, sources)
  const newest = listSnapshots(run.config.dataDir).at(-1)
  if (newest !== undefined && (await readFingerprint(run, newest)) === fingerprint) {
    return keep(run, extent, newest)
  }
  await createSnapshot(run)
  await fillTables(run, extent, newest)
  await fillRankings(run, extent.dataThrough)
  await fillFast(run.connection, extent)
  await describe(run, extent, { sources, fingerprint })
  const totals = await readRow(run.connection, 'rank/totals.sql', totalsRow, { first_day: extent.firstDay })
  return {
    summary: `${totals.apps} apps, ${totals.app_days} app-days, ${totals.ranking_rows} ranking rows, data through ${extent.dataThrough}`,
    facts: { first_day: extent.firstDay, data_through: extent.dataThrough, ...totals },
  }
}

async function readExtent(run: Run): Promise<Extent> {
  const { first_day, data_through, wide, days_at_once } = await readRow(
    run.connection,
    'rank/extent.sql',
    extentRow,
    { rows_at_once: ROWS_AT_ONCE },
  )
  if (first_day === null || data_through === null) {
    throw new DataError(
      `There is no usage between ${FLOOR_DATE} and ${run.lastDay}: put files into ${run.rawFolder}/usage/date=YYYY-MM-DD/`,
    )
  }
  return { firstDay: first_day, dataThrough: data_through, wide, daysAtOnce: days_at_once }
}

/** Credit lines of the data's sources, raw/ATTRIBUTION; whoever republishes their figures has to carry them. */
function readSources(run: Run): string | null {
  const path = join(run.rawFolder, 'ATTRIBUTION')
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : null
}

async function fingerprintOf(run: Run, sources: string | null): Promise<string> {
  const rules = JSON.stringify([SNAPSHOT_RULES, run.config.publisher, sources])
  const row = await readRow(run.connection, 'rank/fingerprint.sql', fingerprintRow, { rules })
  return row.input_fingerprint
}

async function readFingerprint(run: Run, id: string): Promise<string | undefined> {
  await attach(run, join(run.snapshotsFolder, id), 'newest (READ_ONLY)')
  const [meta] = await queryRows(run.connection, 'SELECT input_fingerprint FROM newest.meta', fingerprintRow)
  await run.connection.run('DETACH newest')
  return meta?.input_fingerprint
}

/** Nothing new; a run that was killed just before it switched the pointer is brought to its end. */
function keep(run: Run, extent: Extent, newest: string): StageResult {
  const interrupted = currentSnapshot(run.config.dataDir) !== newest
  if (interrupted) pointAt(run.config.dataDir, newest)
  return {
    summary: interrupted
      ? `the snapshot of an interrupted run, ${newest}, is now current`
      : `the input has not changed since ${newest}; nothing new is published`,
    facts: { first_day: extent.firstDay, data_through: extent.dataThrough, days_restated: 0 },
    finished: { outcome: interrupted ? 'published' : 'unchanged', snapshot: newest },
  }
}

async function attach(run: Run, folder: string, alias: string): Promise<void> {
  await run.connection.run(`ATTACH ${literal(join(folder, SNAPSHOT_FILE))} AS ${alias}`)
}

/** An empty snapshot in the storage version that every DuckDB since 0.10 opens. */
async function createSnapshot(run: Run): Promise<void> {
  mkdirSync(run.buildFolder, { recursive: true })
  await attach(run, run.buildFolder, "snapshot (STORAGE_VERSION 'v1.0.0')")
  await run.connection.run(`USE snapshot; ${sqlFile('snapshot.sql')}`)
}

async function fillTables(run: Run, extent: Extent, previous: string | undefined): Promise<void> {
  const { connection } = run
  const dataThrough = { data_through: extent.dataThrough }
  for (const category of CATEGORIES) {
    for (const subcategory of subcategoriesOf(category)) {
      await connection.run('INSERT INTO snapshot.categories VALUES ($1, $2)', [category, subcategory])
    }
  }
  if (extent.wide) await execute(connection, 'rank/widen.sql')
  await execute(connection, 'rank/apps.sql')
  await fillDays(connection, extent)
  if (previous !== undefined) {
    await attach(run, join(run.snapshotsFolder, previous), 'previous (READ_ONLY)')
    await execute(connection, 'rank/restatements.sql')
    await connection.run('DETACH previous')
  }
  await execute(connection, 'rank/coverage.sql', dataThrough)
}

/** A few days at a time, in order: readers skip what lies outside their window. */
async function fillDays(connection: Run['connection'], extent: Extent): Promise<void> {
  const { firstDay, dataThrough, daysAtOnce } = extent
  for (let first = firstDay; first <= dataThrough; first = addDays(first, daysAtOnce)) {
    const last = addDays(first, daysAtOnce - 1)
    await execute(connection, 'rank/app-daily.sql', {
      first_day: first,
      last_day: last < dataThrough ? last : dataThrough,
    })
  }
}

async function describe(
  run: Run,
  extent: Extent,
  input: { readonly sources: string | null; readonly fingerprint: string },
): Promise<void> {
  const { publisher } = run.config
  await execute(run.connection, 'rank/meta.sql', {
    data_through: extent.dataThrough,
    first_day: extent.firstDay,
    version: DATASET_VERSION,
    licence: LICENCE.name,
    licence_url: LICENCE.url,
    publisher,
    attribution: `Source: ${publisher}, as of ${wholeSeconds(run.asOf)} (${LICENCE.name})`,
    sources: input.sources,
    comparability: COMPARABILITY_NOTE,
    input_fingerprint: input.fingerprint,
  })
}
