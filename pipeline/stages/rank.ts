/** The stage rank: builds the new snapshot: public tables, macros and rankings. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '@duckdb/node-api'
import { z } from 'zod'
import { readMeta } from '../bundle/description.ts'
import { addDays, wholeSeconds } from '../contract/calendar.ts'
import { COMPARABILITY_NOTE, DATASET_VERSION, LICENCE } from '../contract/dataset.ts'
import { TAXONOMY } from '../contract/taxonomy.ts'
import { dateValue, listValue } from '../duckdb/sql-values.ts'
import { countSchema, execute, readRow, setVariables, sqlFile } from '../duckdb/statements.ts'
import { pluralize } from '../program/terminal.ts'
import { fillFast } from '../ranking/candidates.ts'
import { WINDOWS, createMacros, fillRankings } from '../ranking/macros.ts'
import { withPublished } from '../snapshot/attach.ts'
import { createSnapshot, createViews, type Base, type Extent } from '../snapshot/create.ts'
import { currentSnapshot, listSnapshots, pointAt } from '../snapshot/list.ts'
import { isWhole } from '../snapshot/verify.ts'
import type { Run, StageResult } from './stage.ts'

/** The SQL that decides a snapshot. */
const SNAPSHOT_SQL = ['snapshot.sql', 'macros.sql', 'models.sql', 'rank.sql', 'fast.sql', 'bundle.sql']

/** App-days that one statement merges, sorts and writes: few enough for memory, enough to justify a statement. */
const ROWS_AT_ONCE = 2_500_000

const extentRow = z.object({
  first_day: z.string(),
  data_through: z.string(),
  fits_bigint: z.boolean(),
  days_at_once: countSchema,
})
const firstChangedRow = z.object({ first_changed: z.string().nullable() })
const fingerprintRow = z.object({ input_fingerprint: z.string() })
const newestRow = z.object({
  input_fingerprint: z.string(),
  days_restated: countSchema,
  fits_bigint: z.boolean(),
})

/** Builds the snapshot, unless the newest one has the same input. */
export async function rank(run: Run): Promise<StageResult> {
  const { connection, config } = run
  const newest = listSnapshots(config.dataDir).at(-1)
  const readNewest = () => readRow(connection, 'rank.sql#newest', newestRow)
  const known = newest === undefined ? undefined : await withPublished(run, newest, 'newest', readNewest)
  const { daysAtOnce, ...extent } = await readExtent(run, known?.fits_bigint)
  const sources = readSources(run)
  await setVariables(connection, { rules: hashRules(run, sources) })
  const { input_fingerprint: fingerprint } = await readRow(connection, 'rank.sql#fingerprint', fingerprintRow)
  if (newest !== undefined && known?.input_fingerprint === fingerprint)
    return keepNewest(run, extent, { id: newest, days_restated: known.days_restated })
  await createSnapshot(run, extent, { daysAtOnce, base: await findBase(run, extent, newest) })
  await execute(connection, 'rank.sql#day-totals')
  await createMacros(connection, extent.days.to, extent.totals)
  await fillTables(run, extent, newest)
  await fillRankings(run, extent.days.to)
  await fillFast(connection, extent)
  await fillMeta(run, extent, { sources, fingerprint })
  await createViews(connection, extent.totals)
  const { first_day, data_through, days_restated, rows, ...meta } = await readMeta(connection)
  const { total_requests, total_tokens, input_fingerprint } = meta
  const { apps = 0, app_daily = 0, rankings = 0 } = rows
  return {
    summary:
      `${pluralize(apps, 'app')}, ${pluralize(app_daily, 'app-day')}, ${pluralize(rankings, 'ranking row')}, ` +
      `data through ${data_through}`,
    facts: { first_day, data_through, input_fingerprint, days_restated, total_requests, total_tokens, rows },
  }
}

/** @param fits whether BIGINT holds the totals of the newest snapshot, which restatements repeat. */
async function readExtent(
  { connection }: Run,
  fits = true,
): Promise<Extent & { readonly daysAtOnce: number }> {
  const found = await readRow(connection, 'rank.sql#extent', extentRow, { rows_at_once: ROWS_AT_ONCE })
  const { first_day: from, data_through: to, days_at_once: daysAtOnce } = found
  return { days: { from, to }, totals: fits && found.fits_bigint ? 'BIGINT' : 'DECIMAL(38, 0)', daysAtOnce }
}

/** Credit lines of the data's sources, raw/ATTRIBUTION; republishers must state them. */
function readSources({ rawFolder }: Run): string | null {
  const path = join(rawFolder, 'ATTRIBUTION')
  return (existsSync(path) && readFileSync(path, 'utf8').trim()) || null
}

/** Hash of what decides the published bytes besides the input. */
function hashRules({ config }: Run, sources: string | null): string {
  const terms = [DATASET_VERSION, LICENCE, COMPARABILITY_NOTE, config.publisher, config.publicUrl, sources]
  const rules = JSON.stringify([SNAPSHOT_SQL.map(sqlFile), TAXONOMY, WINDOWS, terms, version()])
  return createHash('sha256').update(rules).digest('hex')
}

/** The newest snapshot, if it is whole and has days that do not change. */
async function findBase(run: Run, { days }: Extent, newest: string | undefined): Promise<Base | undefined> {
  const { connection, config } = run
  const parameters = { newest: newest ?? '' }
  const row = await readRow(connection, 'rank.sql#first-changed', firstChangedRow, parameters)
  const firstChanged = row.first_changed ?? addDays(days.to, 1)
  const isBase = newest !== undefined && firstChanged > days.from && isWhole(config.dataDir, newest)
  const from = isBase || firstChanged < days.from ? firstChanged : days.from
  await setVariables(connection, { first_changed: dateValue(from) })
  return isBase ? { id: newest, firstChanged } : undefined
}

/** Nothing is new. If a run was killed before it switched the pointer, this run switches it. */
function keepNewest(
  { config: { dataDir } }: Run,
  { days }: Extent,
  { id: newest, days_restated }: { readonly id: string; readonly days_restated: number },
): StageResult {
  const interrupted = currentSnapshot(dataDir) !== newest
  if (interrupted) pointAt(dataDir, newest)
  return {
    summary: interrupted
      ? `the newest snapshot, ${newest}, is current again (its run was interrupted, or the pointer removed)`
      : `the input has not changed since ${newest}; nothing new is published`,
    facts: { first_day: days.from, data_through: days.to, days_restated: interrupted ? days_restated : 0 },
    finished: { outcome: interrupted ? 'published' : 'unchanged', snapshot: newest },
  }
}

async function fillTables(run: Run, { days }: Extent, newest: string | undefined): Promise<void> {
  const { connection } = run
  for (const [category, subcategories] of Object.entries(TAXONOMY)) {
    const values = [category, listValue(subcategories)]
    await connection.run('INSERT INTO snapshot.categories SELECT $1, unnest(CAST($2 AS VARCHAR[]))', values)
  }
  await execute(connection, 'rank.sql#apps')
  if (newest !== undefined) {
    await withPublished(run, newest, 'previous', async () => {
      await setVariables(connection, { previous: newest })
      await execute(connection, 'rank.sql#restatements')
    })
  }
  await execute(connection, 'rank.sql#coverage', { data_through: days.to })
  await execute(connection, 'models.sql#fill', { data_through: days.to })
}

async function fillMeta(
  { connection, config: { publisher }, asOf }: Run,
  { days }: Extent,
  { sources, fingerprint }: { readonly sources: string | null; readonly fingerprint: string },
): Promise<void> {
  const as_of_text = wholeSeconds(asOf)
  const columns = {
    as_of_text,
    data_through: days.to,
    first_day: days.from,
    version: DATASET_VERSION,
    licence: LICENCE.name,
    licence_url: LICENCE.url,
    publisher,
    attribution: `Source: ${publisher}, as of ${as_of_text} (${LICENCE.name})`,
    sources,
    comparability: COMPARABILITY_NOTE,
    input_fingerprint: fingerprint,
  }
  const values = Object.keys(columns).map((name) => `$${name} AS ${name}`)
  const row = `SELECT getvariable('as_of') AS as_of, ${values.join(', ')}`
  await connection.run(`INSERT INTO snapshot.meta BY NAME ${row}`, columns)
}
