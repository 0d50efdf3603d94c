/**
 * A cluster is a producer of usage files: before a run counts, each day that changed there is pulled into the drop folder as
 * one Parquet file, and everything after that is the path of any file (CONTRACT 10).
 *
 * The cluster adds up the rows of a day that no rule can reject. Rows with a repeated request_id, and rows that may be
 * invalid, come as they are: the rules for files alone decide what counts. `usage/.cluster.json` has the state of each
 * partition at its last pull.
 */
import type { DuckDBConnection } from '@duckdb/node-api'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { FLOOR_DATE, addDays } from '../contract/calendar.ts'
import { literal } from '../duckdb/sql-values.ts'
import { DataError } from '../errors.ts'
import { pluralize } from '../program/terminal.ts'
import { writeInOneStep } from '../snapshot/durable-file.ts'
import { connectClickHouse } from './clickhouse.ts'
import type { ClusterAddress } from './clickhouse.ts'
import { USAGE_COLUMNS, matchColumns } from './columns.ts'
import { PULLED_FILE } from './drop-folder.ts'

/** The state of the partitions. Hidden names are no usage. */
const STATE_FILE = '.cluster.json'

/** More rows of a day that may be invalid fail the run. */
const ODD_ROWS_LIMIT = 100_000

/** How often a day is tried whose rows change meanwhile. */
const ATTEMPTS = 3

const EXAMPLE = 'see data/clickhouse.sql'

/** Fingerprints by partition, by host and table. */
const stateSchema = z.record(z.string(), z.record(z.string(), z.string()))

const tableRow = z.object({ engine: z.string(), engine_full: z.string(), partition_key: z.string() })
const columnRow = z.object({ name: z.string() })
/** `has_deleted`: `row_count` includes rows that were deleted but not merged away. */
const partitionRow = z.object({
  id: z.string(),
  fingerprint: z.string(),
  row_count: z.coerce.number(),
  has_deleted: z.coerce.boolean(),
})
const dayRow = z.object({ day: z.string(), row_count: z.coerce.number(), odd: z.coerce.number() })

export type Pull = {
  readonly address: ClusterAddress
  readonly rawFolder: string
  /** The last day to pull, `YYYY-MM-DD`. */
  readonly lastDay: string
  readonly note: (message: string) => void
}

type Table = Awaited<ReturnType<typeof inspectTable>>

/**
 * Pulls every changed day up to the last one.
 * @param connection counts the rows of the files; without one, the days are only listed.
 * @returns the days pulled, or to pull.
 * @throws DataError when the cluster cannot be read as a whole; what was pulled before stays.
 */
export async function pullCluster(pull: Pull, connection?: DuckDBConnection): Promise<readonly string[]> {
  const usageFolder = join(pull.rawFolder, 'usage')
  const table = await inspectTable(pull.address)
  const state = readState(usageFolder, table)
  const pulled = new Set<string>()
  for (const partition of table.partitions) {
    if (partition.row_count === 0 || state.known[partition.id] === partition.fingerprint) continue
    const days = await daysOf(table, partition)
    const due = days.filter(({ day }) => day >= FLOOR_DATE && day <= pull.lastDay)
    for (const { day, row_count } of due) {
      if (connection !== undefined && !pulled.has(day)) {
        await pullDay(connection, table, { folder: join(usageFolder, `date=${day}`), day, row_count })
      }
      pulled.add(day)
    }
    // A day that is not over is pulled later, even if no row comes meanwhile.
    if (connection === undefined || days.some(({ day }) => day > pull.lastDay)) continue
    state.known[partition.id] = partition.fingerprint
    state.write()
  }
  const gone = Object.keys(state.known).filter((id) => !table.partitions.some((other) => other.id === id))
  if (connection !== undefined && gone.length > 0) {
    for (const id of gone) delete state.known[id]
    state.write()
    const names = gone.join(', ')
    pull.note(`The cluster no longer has the partitions ${names}; what was pulled stays in ${PULLED_FILE}`)
  }
  return [...pulled].toSorted()
}

/** What earlier pulls of the table saw. */
function readState(usageFolder: string, { address, name }: Table) {
  const path = join(usageFolder, STATE_FILE)
  const key = `${address.url} ${name}`
  const all = existsSync(path) ? stateSchema.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data : {}
  const known = all?.[key] ?? {}
  const write = () => {
    mkdirSync(usageFolder, { recursive: true })
    writeInOneStep(path, JSON.stringify({ [key]: known }))
  }
  return { known, write }
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

type Day = { readonly folder: string; readonly day: string; readonly row_count: number }

/** Pulls one day; rows that come meanwhile are in the file or not, never half. With fewer rows, a replica lags behind. */
async function pullDay(connection: DuckDBConnection, table: Table, { folder, day, row_count }: Day) {
  mkdirSync(folder, { recursive: true })
  const unfinished = join(folder, `.${PULLED_FILE}`)
  const inFile = `SELECT coalesce(sum(row_count), 0) FROM read_parquet(${literal(unfinished)})`
  try {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const before = await countDay(table, day)
      await table.server.save(pullQuery(table, day), unfinished)
      const after = await countDay(table, day)
      const pulled = Number((await connection.runAndReadAll(inFile)).getRows()[0]?.[0])
      if (before >= row_count && before === after && after === pulled) {
        renameSync(unfinished, join(folder, PULLED_FILE))
        return
      }
    }
    throw unsettled(table, `The rows of ${day}`)
  } finally {
    rmSync(unfinished, { force: true })
  }
}

/** @throws DataError if too many rows of the day may be invalid. */
async function countDay(table: Table, day: string): Promise<number> {
  const [{ row_count, odd } = { row_count: 0, odd: 0 }] = await countDays(table, onDay(day))
  if (odd <= ODD_ROWS_LIMIT) return row_count
  throw new DataError(
    `${pluralize(odd, 'row')} of ${day} on the ClickHouse cluster lack an app or have a wrong count, more than ` +
      `${ODD_ROWS_LIMIT}. Nothing is published; correct them, they are listed by: WITH ${isPlain(table)} ` +
      `SELECT * FROM ${table.from} AS t WHERE ${onDay(day)} AND NOT is_plain`,
  )
}

function countDays(table: Table, where: string) {
  return table.server.rows(
    `WITH ${isPlain(table)}
    SELECT toString(toDate(t.ts, 'UTC')) AS day, toString(count()) AS row_count, toString(countIf(NOT is_plain)) AS odd
    FROM ${table.from} AS t WHERE ${where} GROUP BY day ORDER BY day`,
    dayRow,
  )
}

function unsettled({ name }: Table, what: string): DataError {
  return new DataError(
    `${what} of ${name} on the ClickHouse cluster changed while they were read, or a replica lags behind. ` +
      'Nothing is published; run again when no rows of past days arrive and every replica has all of them',
  )
}

/** Where a table is, as literals of ClickHouse. */
type Place = { readonly database: string; readonly table: string; readonly cluster?: string | undefined }

/**
 * Inspects the table: a MergeTree, or a Distributed table over one.
 * @throws DataError with the requirement that it does not meet.
 */
async function inspectTable(address: ClusterAddress) {
  const server = await connectClickHouse(address)
  const name = `${address.database}.${address.table}`
  const find = (from: string, { database, table }: Place) =>
    server.rows(
      `SELECT DISTINCT engine, engine_full, partition_key FROM ${from} WHERE database = ${database} AND name = ${table}`,
      tableRow,
    )
  const own = { database: quoted(address.database), table: quoted(address.table) }
  const [found] = await find('system.tables', own)
  if (found === undefined) {
    throw new DataError(
      `There is no table ${name} on the ClickHouse cluster that the user may see; ${EXAMPLE}`,
    )
  }
  // The engine is Distributed('cluster', 'database', 'table', …).
  const [cluster, database = own.database, table = own.table] =
    found.engine === 'Distributed' ? (found.engine_full.match(/'(?:[^'\\]|\\.)*'/g) ?? []) : []
  const local = { cluster, database, table }
  const tables = cluster === undefined ? [found] : await find(`cluster(${cluster}, system.tables)`, local)
  for (const { engine, partition_key } of tables) {
    if (engine.endsWith('MergeTree') && /\bts\b/.test(partition_key)) continue
    throw new DataError(
      `${name} is a ${engine} partitioned by ${partition_key || 'nothing'}: it must be a MergeTree partitioned by ts, or a ` +
        `Distributed over one, so that unchanged days need not be pulled again; ${EXAMPLE}`,
    )
  }
  const columns = await server.rows(
    `SELECT name FROM system.columns WHERE database = ${own.database} AND table = ${own.table}`,
    columnRow,
  )
  const names = columns.map((column) => column.name)
  return {
    server,
    address,
    name,
    from: `${quoted(address.database, '`')}.${quoted(address.table, '`')}`,
    columns: matchColumns(`The table ${name}`, names, USAGE_COLUMNS),
    partitions: await server.rows(partitionsQuery(local), partitionRow),
  }
}

/**
 * The query for the partitions with rows, from the parts of every replica. Per shard the replica with the newest rows decides,
 * so that a pull from one that lags behind is noticed. `fingerprint` is equal after every merge as long as no row came, went or
 * changed: rows of a lightweight update stand in a partition `patch-…` until they are merged, and the version of a part equals
 * its first block until it is mutated.
 */
function partitionsQuery({ cluster, database, table }: Place): string {
  const parts = cluster === undefined ? 'system.parts' : `clusterAllReplicas(${cluster}, system.parts)`
  // A name may have macros, such as '{cluster}', of the server's configuration.
  const clusterName = (cluster ?? "''").replaceAll(/\{(\w+)\}/g, "', getMacro('$1'), '")
  return `
    SELECT
      partition AS id,
      arrayStringConcat(arraySort(groupArray(toString((shard, newest)))), ' ') AS fingerprint,
      toString(sum(newest.1)) AS row_count,
      max(newest.4) AS has_deleted
    FROM (
      SELECT r.shard AS shard, p.partition AS partition, max(p.state) AS newest
      FROM (
        SELECT
          toUInt64(${cluster === undefined ? 0 : '_shard_num'}) AS place,
          replaceRegexpOne(partition_id, '^patch-[0-9a-f]+-', '') AS partition,
          (
            sumIf(rows, NOT startsWith(partition_id, 'patch-')), max(max_block_number),
            maxIf(data_version, data_version != min_block_number), max(has_lightweight_delete)
          ) AS state
        FROM ${parts}
        WHERE active AND database = ${database} AND table = ${table}
        GROUP BY place, partition
      ) AS p
      LEFT JOIN (
        SELECT row_number() OVER (ORDER BY shard_num, replica_num) AS place, shard_num AS shard
        FROM system.clusters WHERE cluster = concat('', ${clusterName})
      ) AS r ON r.place = p.place
      GROUP BY shard, partition
    )
    GROUP BY id
    ORDER BY id`
}

/** A text as a literal of ClickHouse, or with backquotes as an identifier. */
function quoted(text: string, quote = "'"): string {
  return `${quote}${text.replaceAll(/[\\'`]/g, String.raw`\$&`)}${quote}`
}

/** Rows of one UTC day. */
function onDay(day: string): string {
  return `t.ts >= ${midnight(day)} AND t.ts < ${midnight(addDays(day, 1))}`
}

function midnight(day: string): string {
  return `toDateTime64('${day} 00:00:00', 6, 'UTC')`
}

/** Rows that are alike in these, and in what the rules tell apart, are one group of a day's file. */
const KEYS = ['app_id', 'app', 'model', 'provider', 'account_id', 'app_title', 'app_categories'] as const
const SUMS = ['requests', 'prompt_tokens', 'completion_tokens', 'reasoning_tokens', 'cached_tokens'] as const
const TOLD_APART = `isNull(row_prompt_tokens), row_requests = 0, row_cached_tokens > row_prompt_tokens,
  row_reasoning_tokens > row_completion_tokens`
const COLUMNS = ['ts', 'request_id', ...KEYS, ...SUMS] as const
type Column = (typeof COLUMNS)[number]

/** The columns that decide whether a row is plain. */
const REQUIRED: readonly Column[] = ['app_id', 'app', 'prompt_tokens', 'completion_tokens', 'requests']
const COUNTS: readonly Column[] = ['app_id', ...SUMS]
/** Only rows with the name of an app need these. */
const OF_APPS: readonly Column[] = ['account_id', 'app_title', 'app_categories']

/** The value of a column in a row `t`: '' is no text, NULL no number, and -1 a number that is no count. */
function valueOf({ columns }: Table, column: Column): string {
  if (column === 'ts') return "toDateTime64(t.ts, 6, 'UTC')"
  if (COUNTS.includes(column)) {
    const count = columns.has(column)
      ? `if(isNull(t.${column}), NULL, ifNull(accurateCastOrNull(t.${column}, 'Int64'), -1))`
      : "CAST(NULL, 'Nullable(Int64)')"
    return column === 'requests' ? `ifNull(${count}, 1)` : count
  }
  const text = columns.has(column) ? `toValidUTF8(ifNull(toString(t.${column}), ''))` : "''"
  return OF_APPS.includes(column) ? `if(row_app = '', '', ${text})` : text
}

function valuesOf(table: Table, columns: readonly Column[]): string {
  return columns.map((column) => `${valueOf(table, column)} AS row_${column}`).join(', ')
}

/** Whether a row is plain: no rule can reject it. */
function isPlain(table: Table): string {
  return `${valuesOf(table, REQUIRED)}, (
    ifNull(row_app_id >= 0, row_app != '') AND isNull(row_prompt_tokens) = isNull(row_completion_tokens)
    AND ifNull(row_prompt_tokens, 0) >= 0 AND ifNull(row_completion_tokens, 0) >= 0
    AND row_requests BETWEEN 0 AND 1000000000000
  ) AS is_plain`
}

/**
 * The query for a day's file: columns as in CONTRACT 7, and `row_count`, the rows of the table that each stands for. A sum above
 * 2^63 is an error.
 */
function pullQuery(table: Table, day: string): string {
  const id = valueOf(table, 'request_id')
  const rows = `FROM ${table.from} AS t WHERE ${onDay(day)}`
  const repeated = `SELECT cityHash64(${id}) AS id_hash ${rows} AND ${id} != '' GROUP BY id_hash HAVING count() > 1`
  const others = COLUMNS.filter((column) => !REQUIRED.includes(column))
  const select = (value: (column: Column) => string, count: string) => `
    WITH ${isPlain(table)}, ${valuesOf(table, others)},
      is_plain AND (row_request_id = '' OR cityHash64(row_request_id) GLOBAL NOT IN (${repeated})) AS is_summed
    SELECT ${COLUMNS.map((column) => `${value(column)} AS ${column}`).join(', ')}, toInt64(${count}) AS row_count ${rows}`
  const keys = KEYS.map((column) => `row_${column}`).join(', ')
  return `${select(inGroup, 'count()')} AND is_summed GROUP BY ${keys}, ${TOLD_APART}
    UNION ALL ${select((column) => `row_${column}`, '1')} AND NOT is_summed`
}

function inGroup(column: Column): string {
  if (column === 'ts') return 'min(row_ts)'
  if (column === 'request_id') return "''"
  if (KEYS.some((key) => key === column)) return `row_${column}`
  return `accurateCast(sumIf(toInt128(row_${column}), row_${column} >= 0), 'Nullable(Int64)')`
}
