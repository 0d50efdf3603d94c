/**
 * A cluster is a producer of usage files: before a run counts, each day that changed there is pulled into the drop
 * folder as one Parquet file, and everything after that is the path of any file (CONTRACT 10).
 *
 * The cluster groups the plain rows of a day by app, model, provider and account. Rows with a repeated request_id, and
 * rows that may be invalid, come as they are: what counts is decided by the rules for files alone.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { FLOOR_DATE, daySchema } from '../../contract/calendar.ts'
import { DataError } from '../../errors.ts'
import { literal } from '../../duckdb/sql-values.ts'
import { pluralize } from '../../program/terminal.ts'
import type { ClusterAddress } from './address.ts'
import { connectCluster, quoted } from './client.ts'
import type { Cluster } from './client.ts'
import { isPlain, onDay, pullQuery, requireColumns } from './queries.ts'
import { inspectTable } from './table.ts'
import type { ClusterTable, Partition } from './table.ts'

/** The file of a day, and what is known of the cluster, in the drop folder. Hidden names are no usage. */
const DAY_FILE = 'cluster.parquet'
const STATE_FILE = '.cluster.json'

/** Rows of a day that may be invalid; more than these fail the run. */
const ODD_ROWS_LIMIT = 100_000

/** How often a day is tried whose rows change meanwhile. */
const ATTEMPTS = 3

const stateSchema = z.object({
  table: z.string(),
  partitions: z.record(z.string(), z.object({ fingerprint: z.string(), days: z.array(daySchema) })),
})
type State = z.infer<typeof stateSchema>

const dayRow = z.object({ partition: z.string(), day: z.string(), row_count: z.coerce.number() })
const countRow = z.object({ row_count: z.coerce.number(), odd: z.coerce.number() })

/** The days of a partition with the number of their rows there. */
type DayRows = ReadonlyMap<string, number>

/** What a pull has to do: the changed partitions with their days, and the days that are gone from the cluster. */
type Changes = {
  readonly partitions: ReadonlyMap<string, { readonly fingerprint: string; readonly days: DayRows }>
  readonly gone: readonly string[]
}

export type Pull = {
  readonly address: ClusterAddress
  readonly rawFolder: string
  /** The last day to pull, `YYYY-MM-DD`. */
  readonly lastDay: string
  readonly note: (message: string) => void
}

/**
 * Pulls every changed day up to the last one.
 * @returns the days pulled.
 * @throws DataError when the cluster cannot be read as a whole; what was pulled before stays.
 */
export async function pullCluster(connection: DuckDBConnection, pull: Pull): Promise<readonly string[]> {
  const cluster = await connectCluster(pull.address)
  const table = await inspectTable(cluster, pull.address)
  requireColumns(table)
  const state = readState(pull, table)
  const { partitions, gone } = await findChanges(cluster, table, pull, state)
  const pulled = new Set<string>()
  for (const [id, { fingerprint, days }] of partitions) {
    for (const [day, rows] of days) {
      if (!pulled.has(day)) {
        await pullDay(connection, cluster, table, { folder: dayFolder(pull.rawFolder, day), day, rows })
      }
      pulled.add(day)
    }
    state.partitions[id] = { fingerprint, days: [...days.keys()] }
    writeState(pull, state)
  }
  if (gone.length > 0) forget(pull, state, gone)
  return [...pulled].toSorted()
}

/** The days that a pull would bring. */
export async function changedDays(pull: Pull): Promise<readonly string[]> {
  const cluster = await connectCluster(pull.address)
  const table = await inspectTable(cluster, pull.address)
  const { partitions } = await findChanges(cluster, table, pull, readState(pull, table))
  return [...new Set([...partitions.values()].flatMap(({ days }) => [...days.keys()]))].toSorted()
}

async function findChanges(
  cluster: Cluster,
  table: ClusterTable,
  { rawFolder, lastDay }: Pull,
  state: State,
): Promise<Changes> {
  for (let attempt = 1; ; attempt += 1) {
    const found = await table.partitions()
    const changed = [...found].filter(([id, { fingerprint, rows }]) => {
      const known = state.partitions[id]
      return rows > 0 && (known?.fingerprint !== fingerprint || !areThere(rawFolder, known.days))
    })
    const days = await readDays(cluster, table, new Map(changed))
    if (days === undefined) {
      if (attempt < ATTEMPTS) continue
      throw unsettled(table, 'The partitions')
    }
    const dueOf = (id: string) =>
      [...(days.get(id) ?? [])].filter(([day]) => day >= FLOOR_DATE && day <= lastDay)
    return {
      partitions: new Map(
        changed.map(([id, { fingerprint }]) => [id, { fingerprint, days: new Map(dueOf(id)) }]),
      ),
      gone: Object.keys(state.partitions).filter((id) => !found.has(id)),
    }
  }
}

/** The days in each partition; undefined if they do not hold the rows that the partitions have. */
async function readDays(
  cluster: Cluster,
  { from }: ClusterTable,
  partitions: ReadonlyMap<string, Partition>,
): Promise<ReadonlyMap<string, DayRows> | undefined> {
  if (partitions.size === 0) return new Map()
  const rows = await cluster.rows(
    `SELECT _partition_id AS partition, toString(toDate(ts, 'UTC')) AS day, toString(count()) AS row_count
    FROM ${from} WHERE _partition_id IN (${[...partitions.keys()].map(quoted).join(', ')})
    GROUP BY partition, day ORDER BY partition, day`,
    dayRow,
  )
  const days = Map.groupBy(rows, ({ partition }) => partition)
  for (const [id, { rows: expected, hasDeleted }] of partitions) {
    const counted = (days.get(id) ?? []).reduce((sum, { row_count }) => sum + row_count, 0)
    if (hasDeleted ? counted > expected : counted !== expected) return undefined
  }
  return new Map(
    [...days].map(([id, found]) => [id, new Map(found.map(({ day, row_count }) => [day, row_count]))]),
  )
}

/**
 * Pulls one day; rows that come meanwhile are in the file or not, never half.
 * @param rows the least number of rows: a replica with fewer lags behind.
 */
async function pullDay(
  connection: DuckDBConnection,
  cluster: Cluster,
  table: ClusterTable,
  { folder, day, rows }: { readonly folder: string; readonly day: string; readonly rows: number },
): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const unfinished = join(folder, `.${DAY_FILE}`)
  try {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const before = await countDay(cluster, table, day)
      await cluster.save(pullQuery(table, day), unfinished)
      const after = await countDay(cluster, table, day)
      const isWhole = before >= rows && before === after && after === (await rowsIn(connection, unfinished))
      if (isWhole) {
        renameSync(unfinished, join(folder, DAY_FILE))
        return
      }
    }
    throw unsettled(table, `The rows of ${day}`)
  } finally {
    rmSync(unfinished, { force: true })
  }
}

/** @throws DataError if too many rows of the day may be invalid. */
async function countDay(cluster: Cluster, table: ClusterTable, day: string): Promise<number> {
  const where = `FROM ${table.from} WHERE ${onDay(day)}`
  const [found] = await cluster.rows(
    `SELECT toString(count()) AS row_count, toString(countIf(NOT ${isPlain(table)})) AS odd ${where}`,
    countRow,
  )
  if (found !== undefined && found.odd > ODD_ROWS_LIMIT) {
    throw new DataError(
      `${pluralize(found.odd, 'row')} of ${day} on the ClickHouse cluster lack an app or have a wrong count, more than ` +
        `${ODD_ROWS_LIMIT}. Nothing is published; correct them, they are listed by: ` +
        `SELECT * ${where} AND NOT ${isPlain(table)}`,
    )
  }
  return found?.row_count ?? 0
}

async function rowsIn(connection: DuckDBConnection, path: string): Promise<number> {
  const reader = await connection.runAndReadAll(
    `SELECT coalesce(sum(row_count), 0) FROM read_parquet(${literal(path)})`,
  )
  return Number(reader.getRows()[0]?.[0])
}

function unsettled({ name }: ClusterTable, what: string): DataError {
  return new DataError(
    `${what} of ${name} on the ClickHouse cluster changed while they were read, or a replica lags behind. ` +
      'Nothing is published; run again when no rows of past days arrive and every replica has all of them',
  )
}

function dayFolder(rawFolder: string, day: string): string {
  return join(rawFolder, 'usage', `date=${day}`)
}

function areThere(rawFolder: string, days: readonly string[]): boolean {
  return days.every((day) => existsSync(join(dayFolder(rawFolder, day), DAY_FILE)))
}

/** The cluster may drop what was pulled: the files stay. */
function forget(pull: Pull, state: State, gone: readonly string[]): void {
  const days = gone.flatMap((id) => state.partitions[id]?.days ?? [])
  for (const id of gone) delete state.partitions[id]
  writeState(pull, state)
  const kept = days.filter(
    (day) => !Object.values(state.partitions).some((other) => other.days.includes(day)),
  )
  if (kept.length === 0) return
  pull.note(
    `The cluster no longer has ${kept.length === 1 ? kept[0] : `${kept.length} days, ${kept[0]} to ${kept.at(-1)}`}; ` +
      `what was pulled stays in ${DAY_FILE}`,
  )
}

/** What earlier pulls saw; nothing if they were of another table. */
function readState({ rawFolder, address }: Pull, table: ClusterTable): State {
  const name = `${new URL(address.url).host} ${table.name}`
  const path = join(rawFolder, 'usage', STATE_FILE)
  const read = existsSync(path) ? stateSchema.safeParse(JSON.parse(readFileSync(path, 'utf8'))) : undefined
  return read?.success === true && read.data.table === name ? read.data : { table: name, partitions: {} }
}

function writeState({ rawFolder }: Pull, state: State): void {
  const path = join(rawFolder, 'usage', STATE_FILE)
  mkdirSync(join(rawFolder, 'usage'), { recursive: true })
  writeFileSync(`${path}.part`, JSON.stringify(state))
  renameSync(`${path}.part`, path)
}
