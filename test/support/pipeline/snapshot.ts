/** Small published snapshots with the pipeline's public tables and macros. */
import { mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { addDays, asOfFromId, snapshotId, wholeSeconds } from '../../../pipeline/contract/calendar.ts'
import { COMPARABILITY_NOTE, DATASET_VERSION, LICENCE } from '../../../pipeline/contract/dataset.ts'
import { CURRENT_POINTER, SNAPSHOT_FILE, SNAPSHOTS_FOLDER } from '../../../pipeline/contract/files.ts'
import { CATEGORIES, subcategoriesOf, type Subcategory } from '../../../pipeline/contract/taxonomy.ts'
import type { SnapshotRecord } from '../../../pipeline/contract/snapshot-record.ts'
import { sqlWithTotals } from '../../../pipeline/snapshot/create.ts'
import type { TotalType } from '../../../pipeline/snapshot/create.ts'
import { writeRecord } from '../../../pipeline/snapshot/records.ts'
import { createMacros } from '../../../pipeline/ranking/macros.ts'

/** One day of one app; prompt tokens only, unless `completion` is set. */
interface DayOfApp {
  readonly day: string
  readonly app: number
  readonly requests?: number
  readonly tokens: number | bigint
  readonly completion?: number | bigint
}

/** One day of one model: one request with these prompt tokens, unless `requests` is set. */
interface DayOfModel {
  readonly day: string
  readonly model: string
  readonly requests?: number
  readonly tokens: number | bigint
}

export interface SnapshotContent {
  readonly asOf: Date
  readonly dataThrough: string
  readonly firstDay?: string
  readonly apps: readonly {
    readonly id: number
    readonly name: string
    readonly tags?: readonly Subcategory[]
  }[]
  readonly daily: readonly DayOfApp[]
  readonly models?: readonly DayOfModel[]
  readonly missing?: readonly string[]
  /** Type of totals; default: as a run would choose for `daily`. */
  readonly totals?: TotalType
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

/** Writes a snapshot under `dataDir` and points `current` at it; resolves to its folder. */
export async function publishSnapshot(dataDir: string, content: SnapshotContent): Promise<string> {
  const folder = await writeSnapshot(dataDir, content)
  pointAt(dataDir, snapshotId(content.asOf))
  return folder
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

/** Writes a snapshot under `dataDir` without publishing it; resolves to its folder. */
async function writeSnapshot(dataDir: string, content: SnapshotContent): Promise<string> {
  const folder = join(dataDir, SNAPSHOTS_FOLDER, snapshotId(content.asOf))
  mkdirSync(folder, { recursive: true })
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  try {
    await connection.run(`ATTACH '${join(folder, SNAPSHOT_FILE)}' AS snapshot (STORAGE_VERSION 'v1.0.0')`)
    await connection.run('USE snapshot')
    const tokens = content.daily.reduce(
      (sum, row) => sum + BigInt(row.tokens) + BigInt(row.completion ?? 0),
      0n,
    )
    const totals = content.totals ?? (tokens < 9n * 10n ** 18n ? 'BIGINT' : 'DECIMAL(38, 0)')
    await connection.run(sqlWithTotals('snapshot.sql#tables', totals))
    await createMacros(connection, content.dataThrough, totals)
    await connection.run(sqlWithTotals('snapshot.sql#views', totals))
    await connection.run('BEGIN')
    await fill(connection, content)
    await connection.run('COMMIT; CHECKPOINT snapshot; USE memory; DETACH snapshot')
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
  return folder
}

async function fill(connection: DuckDBConnection, content: SnapshotContent): Promise<void> {
  await insert(
    connection,
    'INSERT INTO categories VALUES ($1, $2)',
    CATEGORIES.flatMap((category) => subcategoriesOf(category).map((subcategory) => [category, subcategory])),
  )
  await insert(
    connection,
    "INSERT INTO apps VALUES ($1, $2, list_filter(string_split($3, '|'), tag -> tag <> ''))",
    content.apps.map(({ id, name, tags = [] }) => [id, name, tags.join('|')]),
  )
  await insert(
    connection,
    'INSERT INTO app_daily VALUES ($1, $2, $3, $4, $5)',
    content.daily.map((row) => [row.day, row.app, row.requests ?? 1, row.tokens, row.completion ?? 0]),
  )
  await insert(
    connection,
    'INSERT INTO model_daily VALUES ($1, $2, $3, $4, 0)',
    (content.models ?? []).map((row) => [row.day, row.model, row.requests ?? 1, row.tokens]),
  )
  const firstDay = content.firstDay ?? addDays(content.dataThrough, -29)
  const missing = new Set(content.missing)
  await insert(
    connection,
    'INSERT INTO coverage VALUES ($1, $2, 0, 0)',
    daysBetween(firstDay, content.dataThrough).map((day) => [day, missing.has(day) ? 'missing' : 'complete']),
  )
  await insert(connection, 'INSERT INTO meta VALUES ($1, $1, $2, $3, $4, $5, $6, $7, $8, NULL, $9, $10)', [
    [
      wholeSeconds(content.asOf),
      content.dataThrough,
      firstDay,
      DATASET_VERSION,
      LICENCE.name,
      LICENCE.url,
      'Test',
      'Source: Test',
      COMPARABILITY_NOTE,
      'none',
    ],
  ])
}

async function insert(
  connection: DuckDBConnection,
  sql: string,
  rows: readonly (readonly (string | number | bigint)[])[],
): Promise<void> {
  const statement = await connection.prepare(sql)
  for (const row of rows) {
    row.forEach((value, index) => {
      if (typeof value === 'string') statement.bindVarchar(index + 1, value)
      else statement.bindBigInt(index + 1, BigInt(value))
    })
    await statement.run()
  }
}

function daysBetween(first: string, last: string): string[] {
  const days: string[] = []
  for (let day = first; day <= last; day = addDays(day, 1)) days.push(day)
  return days
}
