/** The table of raw usage on a cluster: how to select from it, and which of its partitions hold what. */
import { z } from 'zod'
import { DataError } from '../../errors.ts'
import type { ClusterAddress } from './address.ts'
import { quoted } from './client.ts'
import type { Cluster } from './client.ts'

export type ClusterTable = {
  /** Its name in messages. */
  readonly name: string
  /** Table expression over every shard. */
  readonly from: string
  /** The type of each column. */
  readonly types: ReadonlyMap<string, string>
  /** The partitions with rows, by id. */
  readonly partitions: () => Promise<ReadonlyMap<string, Partition>>
}

export type Partition = {
  /** Equal on every replica and after every merge as long as no row came, went or changed. */
  readonly fingerprint: string
  readonly rows: number
  /** Whether `rows` includes rows that were deleted but not merged away. */
  readonly hasDeleted: boolean
}

const tableRow = z.object({ engine: z.string(), engine_full: z.string(), partition_key: z.string() })
const columnRow = z.object({ name: z.string(), type: z.string() })
const macroRow = z.object({ macro: z.string(), substitution: z.string() })
const replicaRow = z.object({ shard_num: z.number(), place: z.string() })
const partRow = z.object({
  replica: z.coerce.number(),
  partition: z.string(),
  row_count: z.coerce.number(),
  block: z.coerce.number(),
  mutation: z.coerce.number(),
  deleted: z.coerce.boolean(),
})

const DISTRIBUTED = /^Distributed\('((?:[^'\\]|\\.)*)', '((?:[^'\\]|\\.)*)', '((?:[^'\\]|\\.)*)'/
const EXAMPLE = 'see data/clickhouse.sql'

/**
 * Inspects the table.
 * @throws DataError with the requirement that the table does not meet.
 */
export async function inspectTable(cluster: Cluster, address: ClusterAddress): Promise<ClusterTable> {
  const { database, table } = address
  const name = `${database}.${table}`
  const isNamed = `database = ${quoted(database)} AND `
  const read = async (from: string, local: string) =>
    await cluster.rows(
      `SELECT DISTINCT engine, engine_full, partition_key FROM ${from} WHERE ${local}`,
      tableRow,
    )
  const own = `${isNamed}name = ${quoted(table)}`
  const direct = onShards(address.cluster, 'system.tables')
  const [asked] = await read(direct, own)
  if (asked === undefined) {
    throw new DataError(
      `There is no table ${name} on the ClickHouse cluster that the user may see; ${EXAMPLE}`,
    )
  }
  const [, ownCluster, localDatabase = database, localTable = table] =
    DISTRIBUTED.exec(asked.engine_full) ?? []
  const isDistributed = asked.engine === 'Distributed'
  const shards = address.cluster ?? unescaped(ownCluster)
  const place = `database = ${quoted(unescaped(localDatabase) ?? '')} AND `
  const locals = isDistributed
    ? await read(onShards(shards, 'system.tables'), `${place}name = ${quoted(unescaped(localTable) ?? '')}`)
    : [asked]
  for (const local of locals) requirePartitions(name, local)
  const columns = await cluster.rows(
    `SELECT DISTINCT name, type FROM ${direct.replace('system.tables', 'system.columns')} WHERE ${isNamed}table = ${quoted(table)}`,
    columnRow,
  )
  return {
    name,
    from: isDistributed ? identifier(database, table) : onShards(shards, identifier(database, table)),
    types: new Map(columns.map((column) => [column.name, column.type])),
    partitions: () =>
      readPartitions(cluster, shards, `${place}table = ${quoted(unescaped(localTable) ?? '')}`),
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
 * Reads the parts of every replica that answers; a shard without any fails the queries of a pull. Per shard the replica
 * with the newest rows decides, so that a pull from one that lags behind is noticed.
 */
async function readPartitions(
  cluster: Cluster,
  shards: string | undefined,
  place: string,
): Promise<ReadonlyMap<string, Partition>> {
  const shardOf = await readReplicas(cluster, shards)
  const isOfReplicas = shards !== undefined && shardOf !== undefined
  const parts = isOfReplicas
    ? `clusterAllReplicas(${quoted(shards)}, system.parts)`
    : onShards(shards, 'system.parts')
  const rows = await cluster.rows(
    `SELECT ${shards === undefined ? '1' : '_shard_num'} AS replica,
      -- Rows of a lightweight update stand in a partition of their own until they are merged.
      replaceRegexpOne(partition_id, '^patch-[0-9a-f]+-', '') AS partition,
      toString(sumIf(rows, NOT startsWith(partition_id, 'patch-'))) AS row_count,
      toString(max(max_block_number)) AS block,
      -- Equal to the first block until a part is mutated.
      toString(maxIf(data_version, data_version != min_block_number)) AS mutation,
      max(has_lightweight_delete) AS deleted
    FROM ${parts}
    WHERE active AND ${place}
    GROUP BY replica, partition
    ORDER BY partition, toUInt64(row_count), toUInt64(block), toUInt64(mutation)
    ${isOfReplicas && cluster.maySet ? 'SETTINGS skip_unavailable_shards = 1' : ''}`,
    partRow,
  )
  const newest = new Map<string, Map<number, z.infer<typeof partRow>>>()
  for (const row of rows) {
    const ofPartition = newest.get(row.partition) ?? new Map<number, z.infer<typeof partRow>>()
    newest.set(row.partition, ofPartition.set(shardOf?.[row.replica - 1] ?? row.replica, row))
  }
  return new Map([...newest].map(([id, ofShards]) => [id, partitionOf(ofShards)]))
}

function partitionOf(ofShards: ReadonlyMap<number, z.infer<typeof partRow>>): Partition {
  const rows = [...ofShards].toSorted(([a], [b]) => a - b)
  return {
    fingerprint: rows
      .map(([shard, { row_count, block, mutation }]) => `${shard}:${row_count}:${block}:${mutation}`)
      .join(' '),
    rows: rows.reduce((sum, [, { row_count }]) => sum + row_count, 0),
    hasDeleted: rows.some(([, { deleted }]) => deleted),
  }
}

/**
 * The shard of each replica, in the order of clusterAllReplicas; undefined if the order is not known, as where two
 * entries have one address.
 */
async function readReplicas(cluster: Cluster, shards: string | undefined): Promise<number[] | undefined> {
  if (shards === undefined) return undefined
  const macros = shards.includes('{')
    ? await cluster.rows('SELECT macro, substitution FROM system.macros', macroRow)
    : []
  const name = macros.reduce(
    (given, { macro, substitution }) => given.replaceAll(`{${macro}}`, substitution),
    shards,
  )
  const replicas = await cluster.rows(
    `SELECT shard_num, concat(host_name, ':', toString(port)) AS place FROM system.clusters
    WHERE cluster = ${quoted(name)} ORDER BY shard_num, replica_num`,
    replicaRow,
  )
  const isPlain = replicas.length > 0 && new Set(replicas.map(({ place }) => place)).size === replicas.length
  return isPlain ? replicas.map(({ shard_num }) => shard_num) : undefined
}

function onShards(shards: string | undefined, inner: string): string {
  return shards === undefined ? inner : `cluster(${quoted(shards)}, ${inner})`
}

function identifier(...names: readonly string[]): string {
  return names.map((name) => `\`${name.replaceAll(/[\\`]/g, (character) => `\\${character}`)}\``).join('.')
}

function unescaped(literal: string | undefined): string | undefined {
  return literal?.replaceAll(/\\(.)/g, '$1')
}
