/**
 * A cluster is a producer of usage files: before a run counts, each day that changed there is pulled into the drop folder as
 * one Parquet file, and everything after that is the path of any file (CONTRACT 10).
 *
 * The cluster adds up the rows of a day that no rule can reject. Rows with a repeated request_id, and rows that may be
 * invalid, come as they are: the rules for files alone decide what counts.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { FLOOR_DATE } from '../contract/calendar.ts'
import { literal } from '../duckdb/sql-values.ts'
import { DataError } from '../errors.ts'
import { pluralize } from '../program/terminal.ts'
import { putInPlace, writeInOneStep } from '../snapshot/durable-file.ts'
import type { Progress } from '../terminal/progress.ts'
import { connectClickHouse, type ClusterAddress } from './clickhouse.ts'
import { onDay, partitionsQuery, pullQueries, quoted, valuesOf } from './cluster-queries.ts'
import { USAGE_COLUMNS, matchColumns } from './columns.ts'
import { PULLED_FILE } from './drop-folder.ts'
import { pathList } from './incoming.ts'

/** The fingerprint of each partition at its last pull, in the folder of usage. Hidden names are no usage. */
const STATE_FILE = '.cluster.json'
const stateSchema = z.record(z.string(), z.string())

/** More rows of a day that may be invalid fail the run. */
const ODD_ROWS_LIMIT = 100_000

/** How often a day is tried whose rows change meanwhile. */
const ATTEMPTS = 3

export type Pull = {
  readonly address: ClusterAddress
  readonly rawFolder: string
  /** The last day to pull, `YYYY-MM-DD`. */
  readonly lastDay: string
  readonly progress: Progress
}

/**
 * Pulls every changed day up to the last one. A day that the cluster dropped stays, which is noted once.
 * @param connection merges the files of a day; without one, the days are only listed.
 * @returns the days pulled, or to pull.
 * @throws DataError when the cluster cannot be read as a whole; what was pulled before stays.
 */
export async function pullCluster(
  { address, rawFolder, lastDay, progress }: Pull,
  connection?: DuckDBConnection,
): Promise<readonly string[]> {
  const table = await openTable(address)
  const source = `${address.url} ${table.name}`
  const usageFolder = join(rawFolder, 'usage')
  const statePath = join(usageFolder, STATE_FILE)
  const known = stateSchema
    .catch({})
    .parse(existsSync(statePath) && JSON.parse(readFileSync(statePath, 'utf8')))
  const write = () => {
    mkdirSync(usageFolder, { recursive: true })
    writeInOneStep(statePath, JSON.stringify(known))
  }
  const pulled = new Set<string>()
  for (const partition of table.partitions) {
    const fingerprint = `${source} ${partition.fingerprint}`
    if (known[partition.id] === fingerprint) continue
    const days = await daysOf(table, partition)
    for (const day of days.filter((each) => each.day >= FLOOR_DATE && each.day <= lastDay)) {
      if (connection !== undefined && !pulled.has(day.day)) await pullDay(connection, table, usageFolder, day)
      pulled.add(day.day)
    }
    // A day that is not over is pulled later, even if no row comes meanwhile.
    if (connection === undefined || days.some(({ day }) => day > lastDay)) continue
    known[partition.id] = fingerprint
    write()
  }
  const present = table.partitions.map(({ id }) => id)
  const gone = Object.keys(known).filter((id) => known[id]?.startsWith(`${source} `) && !present.includes(id))
  if (connection !== undefined && gone.length > 0) {
    for (const id of gone) delete known[id]
    write()
    progress.note(
      `The cluster no longer has the partitions ${gone.join(', ')}; what was pulled stays in ${PULLED_FILE}`,
    )
  }
  return [...pulled].toSorted()
}

/** `has_deleted`: `row_count` includes rows that were deleted but not merged away. */
const partitionRow = z.object({
  id: z.string(),
  fingerprint: z.string(),
  row_count: z.coerce.number(),
  has_deleted: z.coerce.boolean(),
})

/**
 * Opens the table: a MergeTree, or a Distributed table over one.
 * @throws DataError with the requirement that it does not meet.
 */
async function openTable(address: ClusterAddress) {
  const server = await connectClickHouse(address)
  const name = `${address.database}.${address.table}`
  const path = `${quoted(address.database, '`')}.${quoted(address.table, '`')}`
  const columns = await server.rows(`DESCRIBE TABLE ${path}`, z.object({ name: z.string() }))
  const names = columns.map((column) => column.name)
  const values = valuesOf(matchColumns(`The table ${name}`, names, USAGE_COLUMNS))
  const own = [quoted(address.database), quoted(address.table)] as const
  const [found] = await server.rows(
    `SELECT engine_full AS engine FROM system.tables WHERE database = ${own[0]} AND name = ${own[1]}`,
    z.object({ engine: z.string() }),
  )
  // Distributed('cluster', 'database', 'table', …)
  const place = found?.engine.startsWith('Distributed(') && found.engine.match(/'(?:[^'\\]|\\.)*'/g)
  const [cluster, database = own[0], parts = own[1]] = place || []
  const partitions = await server.rows(partitionsQuery(database, parts, cluster), partitionRow)
  const table = { server, name, values, from: `${path} AS t`, partitions }
  if (partitions.length === 0 && (await countDays(table, 'true')).length > 0) {
    throw new DataError(
      `${name} has rows, but no parts that the user may see: it must be a MergeTree, or a Distributed over one, and the ` +
        'user needs the rights that data/clickhouse.sql lists',
    )
  }
  return table
}

type Table = Readonly<Awaited<ReturnType<typeof openTable>>>

const dayRow = z.object({ day: z.string(), row_count: z.coerce.number(), odd: z.coerce.number() })
type Day = z.infer<typeof dayRow>

/** The days of rows, each with the number of rows and of those that may be invalid. */
function countDays({ server, values, from }: Omit<Table, 'partitions'>, where: string): Promise<Day[]> {
  return server.rows(
    `WITH ${values} SELECT toString(toDate(t.ts, 'UTC')) AS day, count() AS row_count, countIf(NOT is_plain) AS odd
     FROM ${from} WHERE ${where} GROUP BY day ORDER BY day`,
    dayRow,
  )
}

/**
 * The days of a partition. Rows may have arrived since the partitions were read.
 * @throws DataError if rows are missing, which a replica that lags behind does not have.
 */
async function daysOf(table: Table, { id, row_count, has_deleted }: z.infer<typeof partitionRow>) {
  const days = await countDays(table, `_partition_id = ${quoted(id)}`)
  const counted = days.reduce((sum, day) => sum + day.row_count, 0)
  if (counted < row_count && !has_deleted) throw unsettled(table, `The rows of the partition ${id}`)
  return days
}

/**
 * Pulls one day; rows that come meanwhile are in the file or not, never half. With fewer rows, a replica lags behind.
 * @throws DataError if too many rows of the day may be invalid, or the rows keep changing.
 */
async function pullDay(connection: DuckDBConnection, table: Table, usageFolder: string, listed: Day) {
  const { day, odd } = listed
  if (odd > ODD_ROWS_LIMIT) {
    throw new DataError(
      `${pluralize(odd, 'row')} of ${day} on the ClickHouse cluster lack an app or have a wrong count, more than ` +
        `${ODD_ROWS_LIMIT}. Nothing is published; correct them, they are listed by: WITH ${table.values} ` +
        `SELECT * FROM ${table.from} WHERE ${onDay(day)} AND NOT is_plain`,
    )
  }
  const folder = join(usageFolder, `date=${day}`)
  const aside = join(folder, `.${PULLED_FILE}`)
  const whole = join(aside, 'whole')
  const queries = pullQueries(table.values, table.from, day).map((sql, index) => ({
    sql,
    path: join(aside, String(index)),
  }))
  const halves = `read_parquet(${pathList(queries.map(({ path }) => path))})`
  mkdirSync(aside, { recursive: true })
  try {
    let expected = listed.row_count
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      // One after the other: together they would take twice the memory, and on few cores twice the time.
      for (const { sql, path } of queries) await table.server.save(sql, path)
      const count = await connection.runAndReadAll(`SELECT sum(row_count)::BIGINT FROM ${halves}`)
      const [after] = await countDays(table, onDay(day))
      if (Number(count.getRows()[0]?.[0]) === expected && after?.row_count === expected) {
        await connection.run(`COPY (FROM ${halves}) TO ${literal(whole)} (FORMAT parquet, COMPRESSION zstd)`)
        return putInPlace(whole, join(folder, PULLED_FILE))
      }
      expected = Math.max(expected, after?.row_count ?? 0)
    }
    throw unsettled(table, `The rows of ${day}`)
  } finally {
    rmSync(aside, { recursive: true })
  }
}

function unsettled({ name }: Table, what: string): DataError {
  return new DataError(
    `${what} of ${name} on the ClickHouse cluster changed while they were read, or a replica lags behind. ` +
      'Nothing is published; run again when no rows of past days arrive and every replica has all of them',
  )
}
