/** The table of raw usage on a ClickHouse cluster: its place, its partitions, and the query that pulls a day. */
import { z } from 'zod'
import { addDays } from '../contract/calendar.ts'
import { DataError } from '../errors.ts'
import { quoted, quotedName } from './clickhouse.ts'
import type { ClickHouse } from './clickhouse.ts'
import type { ClusterAddress } from './cluster-address.ts'

const EXAMPLE = 'see data/clickhouse.sql'

const tableRow = z.object({ engine: z.string(), engine_full: z.string(), partition_key: z.string() })
const columnRow = z.object({ name: z.string() })
/** `fingerprint` is equal on every replica and after every merge as long as no row came, went or changed. */
const partitionRow = z.object({
  id: z.string(),
  fingerprint: z.string(),
  row_count: z.coerce.number(),
  /** Whether `row_count` includes rows that were deleted but not merged away. */
  has_deleted: z.coerce.boolean(),
})
export type Partition = z.infer<typeof partitionRow>

/** The table of raw usage: its name in messages, how to select from it, and its columns. */
export type Table = {
  readonly name: string
  readonly from: string
  readonly columns: ReadonlySet<string>
  readonly partitions: () => Promise<Partition[]>
}

/**
 * Inspects the table: a MergeTree on each shard, or a Distributed table over one.
 * @throws DataError with the requirement that the table does not meet.
 */
export async function inspectTable(server: ClickHouse, address: ClusterAddress): Promise<Table> {
  const { database, table } = address
  const name = `${database}.${table}`
  const find = async (from: string, inDatabase: string, called: string) =>
    await server.rows(
      `SELECT DISTINCT engine, engine_full, partition_key FROM ${from}
      WHERE database = ${quoted(inDatabase)} AND name = ${quoted(called)}`,
      tableRow,
    )
  const [own] = await find(onShards(address.cluster, 'system.tables'), database, table)
  if (own === undefined) {
    throw new DataError(
      `There is no table ${name} on the ClickHouse cluster that the user may see; ${EXAMPLE}`,
    )
  }
  const isDistributed = own.engine === 'Distributed'
  const named = isDistributed ? [...own.engine_full.matchAll(/'((?:[^'\\]|\\.)*)'/g)] : []
  const [shards = address.cluster, localDatabase = database, localTable = table] = named.map(
    ([, text = '']) => text.replaceAll(/\\(.)/g, '$1'),
  )
  const locals = isDistributed
    ? await find(onShards(shards, 'system.tables'), localDatabase, localTable)
    : [own]
  for (const local of locals) requirePartitions(name, local)
  const columns = await server.rows(
    `SELECT DISTINCT name FROM ${onShards(address.cluster, 'system.columns')}
    WHERE database = ${quoted(database)} AND table = ${quoted(table)}`,
    columnRow,
  )
  const has = new Set(columns.map((column) => column.name))
  const missing = ['ts', 'prompt_tokens', 'completion_tokens'].filter((column) => !has.has(column))
  if (!has.has('app_id') && !has.has('app')) missing.push('app_id')
  if (missing.length > 0) throw new DataError(`${name} has no column ${missing.join(', ')}; ${EXAMPLE}`)
  return {
    name,
    from: isDistributed
      ? quotedName(database, table)
      : onShards(address.cluster, quotedName(database, table)),
    columns: has,
    partitions: () =>
      server.rows(partitionsQuery(shards, { database: localDatabase, table: localTable }), partitionRow),
  }
}

function requirePartitions(name: string, { engine, partition_key }: z.infer<typeof tableRow>): void {
  if (!engine.endsWith('MergeTree')) {
    throw new DataError(`${name} is a ${engine}: expected a MergeTree, or a Distributed over one; ${EXAMPLE}`)
  }
  if (/\bts\b/.test(partition_key)) return
  throw new DataError(
    `${name} is partitioned by ${partition_key || 'nothing'}: it must be by the time ts, best PARTITION BY toYYYYMMDD(ts), ` +
      'so that unchanged days need not be pulled again',
  )
}

/**
 * The query for the partitions with rows, from the parts of every replica. Per shard the replica with the newest rows decides,
 * so that a pull from one that lags behind is noticed. Rows of a lightweight update stand in a partition `patch-…` until they
 * are merged; the version of a part equals its first block until it is mutated.
 */
function partitionsQuery(
  shards: string | undefined,
  local: { readonly database: string; readonly table: string },
): string {
  const [parts, place] =
    shards === undefined
      ? ['system.parts', '1']
      : [`clusterAllReplicas(${quoted(shards)}, system.parts)`, 'toUInt64(_shard_num)']
  const replicas =
    shards === undefined
      ? 'SELECT 1 AS place, 1 AS shard'
      : `SELECT row_number() OVER (ORDER BY shard_num, replica_num) AS place, shard_num AS shard
         FROM system.clusters WHERE cluster = ${withMacros(shards)}`
  return `
    SELECT
      partition AS id,
      arrayStringConcat(arraySort(groupArray(concat(toString(shard), toString(newest)))), ' ') AS fingerprint,
      toString(sum(newest.1)) AS row_count,
      max(deleted) AS has_deleted
    FROM (
      SELECT r.shard AS shard, p.partition AS partition, max(p.state) AS newest, max(p.deleted) AS deleted
      FROM (
        SELECT
          ${place} AS place,
          replaceRegexpOne(partition_id, '^patch-[0-9a-f]+-', '') AS partition,
          (
            sumIf(rows, NOT startsWith(partition_id, 'patch-')),
            max(max_block_number),
            maxIf(data_version, data_version != min_block_number)
          ) AS state,
          max(has_lightweight_delete) AS deleted
        FROM ${parts}
        WHERE active AND database = ${quoted(local.database)} AND table = ${quoted(local.table)}
        GROUP BY place, partition
      ) AS p
      JOIN (${replicas}) AS r ON r.place = p.place
      GROUP BY shard, partition
    )
    GROUP BY partition
    ORDER BY partition`
}

/** The name of a cluster as an expression: its macros stand for what the server's configuration says. */
function withMacros(name: string): string {
  const parts = name.split(/\{([^}]*)\}/)
  return `concat('', ${parts.map((part, index) => (index % 2 === 0 ? quoted(part) : `getMacro(${quoted(part)})`)).join(', ')})`
}

function onShards(shards: string | undefined, inner: string): string {
  return shards === undefined ? inner : `cluster(${quoted(shards)}, ${inner})`
}

const TEXTS = ['app', 'request_id', 'model', 'provider', 'account_id', 'app_title', 'app_categories'] as const
const COUNTS = [
  'app_id',
  'prompt_tokens',
  'completion_tokens',
  'requests',
  'reasoning_tokens',
  'cached_tokens',
] as const
const COLUMNS = ['ts', ...COUNTS, ...TEXTS] as const
type Column = (typeof COLUMNS)[number]

/** Columns that only rows with the name of an app need. */
const OF_NAMED_APPS: readonly Column[] = ['account_id', 'app_title', 'app_categories']

/** Rows that are alike in these are one group. */
const GROUP_KEYS: readonly Column[] = ['app_id', 'app', 'model', 'provider', 'account_id']

/** Rows of one UTC day. */
export function onDay(day: string): string {
  return `ts >= ${midnight(day)} AND ts < ${midnight(addDays(day, 1))}`
}

function midnight(day: string): string {
  return `toDateTime64('${day} 00:00:00', 6, 'UTC')`
}

/** The value of a row: NULL or '' if there is none, and -1 for a number that no count is. */
function valueOf(table: Table, column: Column): string {
  const { columns } = table
  if (column === 'ts') return "toDateTime64(ts, 6, 'UTC')"
  if (TEXTS.some((name) => name === column)) {
    const text = columns.has(column) ? `trimBoth(ifNull(toString(${column}), ''))` : "''"
    return OF_NAMED_APPS.includes(column) ? `if(${valueOf(table, 'app')} = '', '', ${text})` : text
  }
  const count = columns.has(column)
    ? `if(isNull(${column}), NULL, ifNull(accurateCastOrNull(${column}, 'Int64'), -1))`
    : "CAST(NULL, 'Nullable(Int64)')"
  return column === 'requests' ? `ifNull(${count}, 1)` : count
}

/** What a group of rows has in a column: NULL in the sum of none, and an error above 2^63. */
function groupOf(column: Column, value: string): string {
  if (GROUP_KEYS.includes(column)) return value
  if (column === 'ts') return "toDateTime64(min(ts), 6, 'UTC')"
  if (column === 'request_id') return "''"
  return OF_NAMED_APPS.includes(column)
    ? `argMin(${value}, ts)`
    : `accurateCast(sum(toInt128(${value})), 'Nullable(Int64)')`
}

/** True for rows that no rule can reject. */
export function isPlain(table: Table): string {
  const [prompt, completion] = [valueOf(table, 'prompt_tokens'), valueOf(table, 'completion_tokens')]
  const [app, requests] = [valueOf(table, 'app'), valueOf(table, 'requests')]
  return (
    `(ifNull(${valueOf(table, 'app_id')} >= 0, ${app} != '') AND isValidUTF8(${app}) ` +
    `AND isNull(${prompt}) = isNull(${completion}) AND ifNull(${prompt}, 0) >= 0 AND ifNull(${completion}, 0) >= 0 ` +
    `AND ${requests} BETWEEN 0 AND 1000000000000)`
  )
}

/**
 * The rows of a day's file: columns as in CONTRACT 7, and `row_count`, the rows of the table that each stands for. No alias
 * equals a column, since ClickHouse would put the alias's expression in the column's place.
 */
export function pullQuery(table: Table, day: string): string {
  const select = (value: (column: Column) => string, rows: string) =>
    [...COLUMNS.map((column) => `${value(column)} AS pulled_${column}`), `${rows} AS pulled_rows`].join(', ')
  const grouped = select((column) => groupOf(column, valueOf(table, column)), 'toInt64(count())')
  const alone = select((column) => valueOf(table, column), 'toInt64(1)')
  const keys = GROUP_KEYS.map((column) => `pulled_${column}`).join(', ')
  const id = valueOf(table, 'request_id')
  const rowsOfDay = `FROM ${table.from} WHERE ${onDay(day)}`
  const repeated =
    `cityHash64(${id}) GLOBAL IN (SELECT cityHash64(${id}) AS id_hash ${rowsOfDay} AND ${id} != '' ` +
    'GROUP BY id_hash HAVING count() > 1)'
  const summed = `${isPlain(table)} AND (${id} = '' OR NOT ${repeated})`
  return `
    SELECT ${COLUMNS.map((column) => `pulled_${column} AS ${column}`).join(', ')}, pulled_rows AS row_count
    FROM (
      SELECT ${grouped} ${rowsOfDay} AND ${summed} GROUP BY ${keys}, isNull(${valueOf(table, 'prompt_tokens')})
      UNION ALL
      SELECT ${alone} ${rowsOfDay} AND NOT (${summed})
    )`
}
