/**
 * A cluster is a producer of usage files: before a run counts, each day that changed there is pulled into the drop folder
 * as one Parquet file, and everything after that is the path of any file (CONTRACT 10).
 *
 * The cluster groups the rows of a day that no rule can reject by app, model, provider and account. Rows with a repeated
 * request_id, and rows that may be invalid, come as they are: what counts is decided by the rules for files alone. What the
 * partitions were at the last pull stands in `usage/.cluster.json`.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { FLOOR_DATE, daySchema } from '../contract/calendar.ts'
import { DataError } from '../errors.ts'
import { literal } from '../duckdb/sql-values.ts'
import { pluralize } from '../program/terminal.ts'
import { writeInOneStep } from '../snapshot/durable-file.ts'
import { connectClickHouse, quoted } from './clickhouse.ts'
import type { ClickHouse } from './clickhouse.ts'
import type { ClusterAddress } from './cluster-address.ts'
import { inspectTable, isPlain, onDay, pullQuery } from './cluster-table.ts'
import type { Partition, Table } from './cluster-table.ts'

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

export type Pull = {
  readonly address: ClusterAddress
  readonly rawFolder: string
  /** The last day to pull, `YYYY-MM-DD`. */
  readonly lastDay: string
  readonly note: (message: string) => void
}

/** A changed partition, with the number of rows of each of its days that are due. */
type Changed = Partition & { readonly days: ReadonlyMap<string, number> }

/**
 * Pulls every changed day up to the last one.
 * @returns the days pulled.
 * @throws DataError when the cluster cannot be read as a whole; what was pulled before stays.
 */
export async function pullCluster(connection: DuckDBConnection, pull: Pull): Promise<readonly string[]> {
  const { server, table, state, changed, gone } = await findChanges(pull)
  const pulled = new Set<string>()
  for (const { id, fingerprint, days } of changed) {
    for (const [day, rows] of days) {
      if (pulled.has(day)) continue
      await pullDay(connection, { server, table, folder: dayFolder(pull.rawFolder, day), day, rows })
      pulled.add(day)
    }
    state.partitions[id] = { fingerprint, days: [...days.keys()] }
    writeState(pull, state)
  }
  if (gone.length > 0) keepGone(pull, state, gone)
  return [...pulled].toSorted()
}

/** The days that a pull would bring. */
export async function changedDays(pull: Pull): Promise<readonly string[]> {
  const { changed } = await findChanges(pull)
  return [...new Set(changed.flatMap(({ days }) => [...days.keys()]))].toSorted()
}

async function findChanges(pull: Pull) {
  const { address, rawFolder, lastDay } = pull
  const server = await connectClickHouse(address)
  const table = await inspectTable(server, address)
  const state = readState(pull, table)
  const found = await table.partitions()
  const partitions = found.filter(({ id, fingerprint, row_count }) => {
    const known = state.partitions[id]
    return row_count > 0 && (known?.fingerprint !== fingerprint || !areThere(rawFolder, known.days))
  })
  const days = await readDays(server, table, partitions)
  const changed = partitions.map((partition): Changed => {
    const due = (days.get(partition.id) ?? []).filter(({ day }) => day >= FLOOR_DATE && day <= lastDay)
    return { ...partition, days: new Map(due.map(({ day, row_count }) => [day, row_count])) }
  })
  const gone = Object.keys(state.partitions).filter((id) => !found.some((partition) => partition.id === id))
  return { server, table, state, changed, gone }
}

/**
 * The days in each partition with their rows. Rows may have arrived since the partitions were read.
 * @throws DataError if rows of a partition are missing, which a replica that lags behind does not have.
 */
async function readDays(server: ClickHouse, table: Table, partitions: readonly Partition[]) {
  if (partitions.length === 0) return new Map<string, z.infer<typeof dayRow>[]>()
  const rows = await server.rows(
    `SELECT _partition_id AS partition, toString(toDate(ts, 'UTC')) AS day, toString(count()) AS row_count
    FROM ${table.from} WHERE _partition_id IN (${partitions.map(({ id }) => quoted(id)).join(', ')})
    GROUP BY partition, day ORDER BY partition, day`,
    dayRow,
  )
  const days = Map.groupBy(rows, ({ partition }) => partition)
  for (const { id, row_count, has_deleted } of partitions) {
    const counted = (days.get(id) ?? []).reduce((sum, day) => sum + day.row_count, 0)
    if (counted < row_count && !has_deleted) throw unsettled(table, `The rows of the partition ${id}`)
  }
  return days
}

type DayPull = {
  readonly server: ClickHouse
  readonly table: Table
  readonly folder: string
  readonly day: string
  /** The least number of rows: a replica with fewer lags behind. */
  readonly rows: number
}

/** Pulls one day; rows that come meanwhile are in the file or not, never half. */
async function pullDay(connection: DuckDBConnection, pull: DayPull): Promise<void> {
  const { server, table, folder, day, rows } = pull
  mkdirSync(folder, { recursive: true })
  const unfinished = join(folder, `.${DAY_FILE}`)
  const inFile = `SELECT coalesce(sum(row_count), 0) FROM read_parquet(${literal(unfinished)})`
  try {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const before = await countDay(pull)
      await server.save(pullQuery(table, day), unfinished)
      const after = await countDay(pull)
      const pulled = Number((await connection.runAndReadAll(inFile)).getRows()[0]?.[0])
      if (before >= rows && before === after && after === pulled) {
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
async function countDay({ server, table, day }: DayPull): Promise<number> {
  const where = `FROM ${table.from} WHERE ${onDay(day)}`
  const [{ row_count, odd } = { row_count: 0, odd: 0 }] = await server.rows(
    `SELECT toString(count()) AS row_count, toString(countIf(NOT ${isPlain(table)})) AS odd ${where}`,
    countRow,
  )
  if (odd <= ODD_ROWS_LIMIT) return row_count
  throw new DataError(
    `${pluralize(odd, 'row')} of ${day} on the ClickHouse cluster lack an app or have a wrong count, more than ` +
      `${ODD_ROWS_LIMIT}. Nothing is published; correct them, they are listed by: ` +
      `SELECT * ${where} AND NOT ${isPlain(table)}`,
  )
}

function unsettled({ name }: Table, what: string): DataError {
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

/** The cluster may drop what was pulled: the files stay, and the operator is told. */
function keepGone(pull: Pull, state: State, gone: readonly string[]): void {
  const days = gone.flatMap((id) => state.partitions[id]?.days ?? [])
  for (const id of gone) delete state.partitions[id]
  writeState(pull, state)
  const lost = days.filter(
    (day) => !Object.values(state.partitions).some((other) => other.days.includes(day)),
  )
  if (lost.length === 0) return
  pull.note(
    `The cluster no longer has ${lost.length === 1 ? lost[0] : `${lost.length} days, ${lost[0]} to ${lost.at(-1)}`}; ` +
      `what was pulled stays in ${DAY_FILE}`,
  )
}

/** What earlier pulls saw; nothing if they were of another table. */
function readState({ rawFolder, address }: Pull, table: Table): State {
  const name = `${new URL(address.url).host} ${table.name}`
  const path = join(rawFolder, 'usage', STATE_FILE)
  const read = existsSync(path) ? stateSchema.safeParse(JSON.parse(readFileSync(path, 'utf8'))) : undefined
  return read?.data?.table === name ? read.data : { table: name, partitions: {} }
}

function writeState({ rawFolder }: Pull, state: State): void {
  mkdirSync(join(rawFolder, 'usage'), { recursive: true })
  writeInOneStep(join(rawFolder, 'usage', STATE_FILE), JSON.stringify(state))
}
