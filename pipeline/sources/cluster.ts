/**
 * A cluster is a producer of usage files: before a run counts, each day that changed there is pulled into the drop folder as
 * one Parquet file, and everything after that is the path of any file (CONTRACT 10).
 *
 * The cluster adds up the rows of a day that no rule can reject. Rows with a repeated request_id, and rows that may be
 * invalid, come as they are: the rules for files alone decide what counts.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { FLOOR_DATE } from '../contract/calendar.ts'
import { literal } from '../duckdb/sql-values.ts'
import { DataError } from '../errors.ts'
import { pluralize } from '../program/terminal.ts'
import { writeInOneStep } from '../snapshot/durable-file.ts'
import { connectClickHouse } from './clickhouse.ts'
import type { ClusterAddress } from './clickhouse.ts'
import { onDay, partitionsQuery, pullQuery, quoted, valuesOf } from './cluster-queries.ts'
import { USAGE_COLUMNS, matchColumns } from './columns.ts'
import { PULLED_FILE } from './drop-folder.ts'

/** The state of each partition at its last pull, in the folder of usage. Hidden names are no usage. */
const STATE_FILE = '.cluster.json'
const stateSchema = z.object({ table: z.string(), partitions: z.array(z.tuple([z.string(), z.string()])) })

/** More rows of a day that may be invalid fail the run. */
const ODD_ROWS_LIMIT = 100_000

/** How often a day is tried whose rows change meanwhile. */
const ATTEMPTS = 3

export type Pull = {
  readonly address: ClusterAddress
  readonly rawFolder: string
  /** The last day to pull, `YYYY-MM-DD`. */
  readonly lastDay: string
  readonly note: (message: string) => void
}

/**
 * Pulls every changed day up to the last one.
 * @param connection counts the rows of the files; without one, the days are only listed.
 * @returns the days pulled, or to pull.
 * @throws DataError when the cluster cannot be read as a whole; what was pulled before stays.
 */
export async function pullCluster(
  { address, rawFolder, lastDay, note }: Pull,
  connection?: DuckDBConnection,
): Promise<readonly string[]> {
  const usageFolder = join(rawFolder, 'usage')
  const table = await inspectTable(address)
  const source = `${address.url} ${table.name}`
  const known = readState(join(usageFolder, STATE_FILE), source)
  const write = () => {
    mkdirSync(usageFolder, { recursive: true })
    writeInOneStep(join(usageFolder, STATE_FILE), JSON.stringify({ table: source, partitions: [...known] }))
  }
  const pulled = new Set<string>()
  for (const partition of table.partitions) {
    if (known.get(partition.id) === partition.fingerprint) continue
    const days = await daysOf(table, partition)
    for (const day of days.filter((each) => each.day >= FLOOR_DATE && each.day <= lastDay)) {
      if (connection !== undefined && !pulled.has(day.day)) await pullDay(connection, table, usageFolder, day)
      pulled.add(day.day)
    }
    // A day that is not over is pulled later, even if no row comes meanwhile.
    if (connection === undefined || days.some(({ day }) => day > lastDay)) continue
    known.set(partition.id, partition.fingerprint)
    write()
  }
  const gone = [...known.keys()].filter((id) => !table.partitions.some((other) => other.id === id))
  if (connection !== undefined && gone.length > 0) {
    for (const id of gone) known.delete(id)
    write()
    note(
      `The cluster no longer has the partitions ${gone.join(', ')}; what was pulled stays in ${PULLED_FILE}`,
    )
  }
  return [...pulled].toSorted()
}

/** The fingerprints that earlier pulls of the table saw, by partition. */
function readState(path: string, table: string): Map<string, string> {
  const content: unknown = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined
  const { data } = stateSchema.safeParse(content)
  return new Map(data?.table === table ? data.partitions : [])
}

type Table = Awaited<ReturnType<typeof inspectTable>>

const tableRow = z.object({
  engine: z.string(),
  engine_full: z.string(),
  partition_key: z.string(),
  columns: z.array(z.string()),
})

/**
 * Inspects the table: a MergeTree, or a Distributed table over one.
 * @throws DataError with the requirement that it does not meet.
 */
async function inspectTable(address: ClusterAddress) {
  const server = await connectClickHouse(address)
  const name = `${address.database}.${address.table}`
  const find = (from: string, database: string, table: string) =>
    server.rows(
      `SELECT DISTINCT engine, engine_full, partition_key, (
         SELECT groupArray(name) FROM system.columns WHERE database = ${database} AND table = ${table}
       ) AS columns
       FROM ${from} WHERE database = ${database} AND name = ${table}`,
      tableRow,
    )
  const own = [quoted(address.database), quoted(address.table)] as const
  const [found] = await find('system.tables', ...own)
  if (found === undefined)
    throw unfit(`There is no table ${name} on the ClickHouse cluster that the user may see`)
  // The engine is Distributed('cluster', 'database', 'table', …).
  const [cluster, database = own[0], table = own[1]] =
    found.engine === 'Distributed' ? (found.engine_full.match(/'(?:[^'\\]|\\.)*'/g) ?? []) : []
  const parts =
    cluster === undefined ? [found] : await find(`cluster(${cluster}, system.tables)`, database, table)
  for (const { engine, partition_key } of parts) {
    if (engine.endsWith('MergeTree') && /\bts\b/.test(partition_key)) continue
    throw unfit(
      `${name} is a ${engine} partitioned by ${partition_key || 'nothing'}: it must be a MergeTree partitioned by ts, or a ` +
        'Distributed over one, so that unchanged days need not be pulled again',
    )
  }
  return {
    server,
    name,
    from: `${quoted(address.database, '`')}.${quoted(address.table, '`')} AS t`,
    values: valuesOf(matchColumns(`The table ${name}`, found.columns, USAGE_COLUMNS)),
    partitions: await server.rows(partitionsQuery(database, table, cluster), partitionRow),
  }
}

function unfit(requirement: string): DataError {
  return new DataError(`${requirement}; see data/clickhouse.sql`)
}

/** `has_deleted`: `row_count` includes rows that were deleted but not merged away. */
const partitionRow = z.object({
  id: z.string(),
  fingerprint: z.string(),
  row_count: z.coerce.number(),
  has_deleted: z.coerce.boolean(),
})

const dayRow = z.object({ day: z.string(), row_count: z.coerce.number(), odd: z.coerce.number() })
type Day = z.infer<typeof dayRow>

function countDays({ server, values, from }: Table, where: string): Promise<Day[]> {
  return server.rows(
    `WITH ${values}
    SELECT toString(toDate(t.ts, 'UTC')) AS day, toString(count()) AS row_count, toString(countIf(NOT is_plain)) AS odd
    FROM ${from} WHERE ${where} GROUP BY day ORDER BY day`,
    dayRow,
  )
}

/**
 * The days of a partition. Rows may have arrived since the partitions were read.
 * @throws DataError if rows of the partition are missing, which a replica that lags behind does not have.
 */
async function daysOf(table: Table, { id, row_count, has_deleted }: Table['partitions'][number]) {
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
  const unfinished = join(folder, `.${PULLED_FILE}`)
  const inFile = `SELECT coalesce(sum(row_count), 0) FROM read_parquet(${literal(unfinished)})`
  mkdirSync(folder, { recursive: true })
  try {
    let expected = listed.row_count
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      await table.server.save(pullQuery(table, day), unfinished)
      const pulled = Number((await connection.runAndReadAll(inFile)).getRows()[0]?.[0])
      const [after] = await countDays(table, onDay(day))
      if (pulled === expected && after?.row_count === expected) {
        renameSync(unfinished, join(folder, PULLED_FILE))
        return
      }
      expected = Math.max(expected, after?.row_count ?? 0)
    }
    throw unsettled(table, `The rows of ${day}`)
  } finally {
    rmSync(unfinished, { force: true })
  }
}

function unsettled({ name }: Table, what: string): DataError {
  return new DataError(
    `${what} of ${name} on the ClickHouse cluster changed while they were read, or a replica lags behind. ` +
      'Nothing is published; run again when no rows of past days arrive and every replica has all of them',
  )
}
