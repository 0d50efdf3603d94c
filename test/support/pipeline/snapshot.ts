/** Small published snapshots with the pipeline's public tables and macros, and their opener. */
import { mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { Snapshots } from '../../../api/datasets/snapshots/current.ts'
import type { Snapshot } from '../../../api/datasets/snapshots/facts.ts'
import { createLog } from '../../../api/process/log.ts'
import { addDays, asOfFromId, snapshotId, wholeSeconds } from '../../../pipeline/contract/calendar.ts'
import { COMPARABILITY_NOTE, DATASET_VERSION, LICENCE } from '../../../pipeline/contract/dataset.ts'
import { CURRENT_POINTER, SNAPSHOT_FILE, SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import { CATEGORIES, subcategoriesOf, type Subcategory } from '../../../pipeline/contract/taxonomy.ts'
import type { SnapshotRecord } from '../../../pipeline/contract/snapshot-record.ts'
import { createViews, sqlWithTotals, type TotalType } from '../../../pipeline/snapshot/create.ts'
import { writeRecord } from '../../../pipeline/snapshot/records.ts'
import { createMacros } from '../../../pipeline/ranking/macros.ts'
import { withDatabase } from './nightly.ts'

/** One day of one app or model: one request with these prompt tokens, unless more is set. */
type Figures = {
  readonly day: string
  readonly requests?: number
  readonly tokens: number | bigint
  readonly completion?: number | bigint
}

export type SnapshotContent = {
  readonly asOf: Date
  readonly dataThrough: string
  readonly firstDay?: string
  readonly apps: readonly {
    readonly id: number
    readonly name: string
    readonly tags?: readonly Subcategory[]
  }[]
  readonly daily: readonly (Figures & { readonly app: number })[]
  readonly models?: readonly (Figures & { readonly model: string })[]
  readonly missing?: readonly string[]
}

/** The smallest snapshot, for tests of what surrounds the figures: one app, and tokens on 2026-11-19. */
export function oneApp(hour = 2, tokens = 5): SnapshotContent {
  return {
    asOf: new Date(Date.UTC(2026, 10, 20, hour)),
    dataThrough: '2026-11-19',
    apps: [{ id: 1, name: 'App' }],
    daily: [{ day: '2026-11-19', app: 1, tokens }],
  }
}

/** Publishes a snapshot under `dataDir` as a run does: built aside, recorded, and `current` last; resolves to its folder. */
export async function publishSnapshot(dataDir: string, content: SnapshotContent): Promise<string> {
  const id = snapshotId(content.asOf)
  const folder = join(dataDir, SNAPSHOTS_FOLDER, id)
  const aside = `${folder}.aside`
  await writeSnapshot(aside, content)
  recordSnapshot(dataDir, id, { data_through: content.dataThrough })
  renameSync(aside, folder)
  pointAt(dataDir, id)
  return folder
}

export type OpenSnapshot = Snapshot & { readonly close: () => Promise<void> }

/** The snapshot in this folder as the API opens it, over the connections of clients. */
export async function openSnapshot(path: string): Promise<OpenSnapshot> {
  const snapshots = new Snapshots(dirname(dirname(path)), '4GB', createLog('silent'))
  const snapshot = await snapshots.take(basename(path), 'clients')
  return { ...snapshot, close: () => snapshots.close() }
}

/** Writes the permanent record of a snapshot, whose facts are made up but for `fields`. */
export function recordSnapshot(dataDir: string, id: string, fields: Partial<SnapshotRecord> = {}): void {
  writeRecord(dataDir, {
    id,
    as_of: wholeSeconds(asOfFromId(id) ?? new Date()),
    first_day: '2026-11-01',
    data_through: '2026-11-19',
    version: DATASET_VERSION,
    days_restated: 0,
    publisher: 'Test',
    attribution: 'Source: Test',
    rows: {},
    files: [],
    ...fields,
  })
}

/** Switches `current` atomically to the snapshot with this id. */
export function pointAt(dataDir: string, id: string): void {
  const aside = join(dataDir, `.${CURRENT_POINTER}-${id}`)
  symlinkSync(join(SNAPSHOTS_FOLDER, id), aside)
  renameSync(aside, join(dataDir, CURRENT_POINTER))
}

/** The type of totals that a run would choose. */
export function totalsOf(daily: readonly Figures[]): TotalType {
  const tokens = daily.reduce((sum, row) => sum + BigInt(row.tokens) + BigInt(row.completion ?? 0), 0n)
  return tokens < 9n * 10n ** 18n ? 'BIGINT' : 'DECIMAL(38, 0)'
}

/** Writes the file of a snapshot into a new folder. */
async function writeSnapshot(folder: string, content: SnapshotContent): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const totals = totalsOf(content.daily)
  await withDatabase(async (connection) => {
    await connection.run(`ATTACH '${join(folder, SNAPSHOT_FILE)}' AS snapshot (STORAGE_VERSION 'v1.0.0')`)
    await connection.run('USE snapshot')
    await connection.run(sqlWithTotals('snapshot.sql#tables', totals))
    await createMacros(connection, content.dataThrough, totals)
    await createViews(connection, totals)
    await connection.run('BEGIN')
    for (const [table, rows] of Object.entries(rowsOf(content))) await insert(connection, table, rows)
    await connection.run('COMMIT; CHECKPOINT snapshot; USE memory; DETACH snapshot')
  })
}

type Cell = string | number | bigint | null

/** The row of a day of an app or a model. */
function cellsOf(subject: Cell, { day, requests = 1, tokens, completion = 0 }: Figures): Cell[] {
  return [day, subject, requests, tokens, completion]
}

/** The rows of each table; the cells are in the order of its columns. */
function rowsOf(content: SnapshotContent): Record<string, readonly (readonly Cell[])[]> {
  const { dataThrough, firstDay = addDays(dataThrough, -29) } = content
  const asOf = wholeSeconds(content.asOf)
  const days: string[] = []
  for (let day = firstDay; day <= dataThrough; day = addDays(day, 1)) days.push(day)
  const about = [DATASET_VERSION, LICENCE.name, LICENCE.url, 'Test', 'Source: Test']
  return {
    categories: CATEGORIES.flatMap((category) => subcategoriesOf(category).map((tag) => [category, tag])),
    apps: content.apps.map(({ id, name, tags = [] }) => [id, name, `[${tags.join(', ')}]`]),
    app_daily: content.daily.map(({ app, ...row }) => cellsOf(app, row)),
    model_daily: (content.models ?? []).map(({ model, ...row }) => cellsOf(model, row)),
    coverage: days.map((day) => [day, content.missing?.includes(day) ? 'missing' : 'complete', 0, 0]),
    meta: [[asOf, asOf, dataThrough, firstDay, ...about, null, COMPARABILITY_NOTE, 'none']],
  }
}

/** Inserts rows as texts, which DuckDB casts. */
async function insert(
  connection: DuckDBConnection,
  table: string,
  rows: readonly (readonly Cell[])[],
): Promise<void> {
  const [first = []] = rows
  const texts = rows.map((row) => row.map((cell) => (cell === null ? null : String(cell))))
  const columns = first.map((_, index) => `r[${index + 1}]`)
  if (columns.length === 0) return
  const unnested = `SELECT unnest(from_json($1, '["VARCHAR[]"]')) AS r`
  await connection.run(`INSERT INTO ${table} SELECT ${columns.join(', ')} FROM (${unnested})`, [
    JSON.stringify(texts),
  ])
}
