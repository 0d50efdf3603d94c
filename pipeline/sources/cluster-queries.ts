/** The queries of a pull from a cluster, in ClickHouse's SQL. */

/** A text as a literal of ClickHouse, or with backquotes as an identifier. */
export function quoted(text: string, quote = "'"): string {
  return `${quote}${text.replaceAll(/[\\'`]/g, String.raw`\$&`)}${quote}`
}

/**
 * The query for the partitions with rows, from the parts of every replica; the arguments are literals. Per shard `row_count`
 * is of the replica with the newest rows, so that a pull from one that lags behind is noticed. `fingerprint` changes when a
 * row comes or goes, or once a mutation has changed all parts, on any replica; a merge of parts leaves their least version.
 * Rows of a lightweight update stand in a partition `patch-…` until they are merged.
 */
export function partitionsQuery(database: string, table: string, cluster?: string): string {
  // A name may have macros, such as '{cluster}', of the server's configuration.
  const name = (cluster ?? "''").replaceAll(/\{(\w+)\}/g, "', getMacro('$1'), '")
  const [parts, place] =
    cluster === undefined
      ? ['system.parts', '0']
      : [`clusterAllReplicas(${cluster}, system.parts)`, '_shard_num']
  return `
    WITH replicas AS (
      SELECT row_number() OVER (ORDER BY shard_num, replica_num) AS place, shard_num AS shard
      FROM system.clusters WHERE cluster = concat('', ${name})
    ), states AS (
      SELECT toUInt64(${place}) AS place, replaceRegexpOne(partition_id, '^patch-[0-9a-f]+-', '') AS id, (
        sumIf(rows, NOT startsWith(partition_id, 'patch-')), max(max_block_number),
        minIf(data_version, NOT startsWith(partition_id, 'patch-')), max(has_lightweight_delete)
      ) AS state
      FROM ${parts} WHERE active AND database = ${database} AND table = ${table} GROUP BY place, id
    ), shards AS (
      SELECT id, shard, max(state) AS newest, min(state) AS oldest FROM states LEFT JOIN replicas USING (place) GROUP BY id, shard
    )
    SELECT id, arrayStringConcat(arraySort(groupArray(toString((shard, newest, oldest)))), ' ') AS fingerprint,
      sum(newest.1) AS row_count, max(newest.4) AS has_deleted
    FROM shards GROUP BY id HAVING row_count > 0 ORDER BY id`
}

/** The condition for the rows of one UTC day. */
export function onDay(day: string): string {
  const midnight = `toDateTime64('${day} 00:00:00', 6, 'UTC')`
  return `t.ts >= ${midnight} AND t.ts < ${midnight} + INTERVAL 1 DAY`
}

const SUMS = ['requests', 'prompt_tokens', 'completion_tokens', 'reasoning_tokens', 'cached_tokens']
/** Only rows with the name of an app need these. */
const OF_APPS = ['account_id', 'app_title', 'app_categories']
/** Rows that are alike in these, and in what the rules tell apart, are one group of a day's file. */
const KEYS = ['app_id', 'app', 'model', 'provider', ...OF_APPS]
const TOLD_APART = `isNull(row_prompt_tokens), row_requests = 0, row_cached_tokens > row_prompt_tokens,
  row_reasoning_tokens > row_completion_tokens`
const COLUMNS = ['ts', 'request_id', ...KEYS, ...SUMS]

/** '' is no text, NULL no number, and -1 a number that is no integer of 64 bits. */
function valueOf(column: string, isThere: boolean): string {
  if (column === 'ts') return "toDateTime64(t.ts, 6, 'UTC')"
  if (column === 'app_id' || SUMS.includes(column)) {
    const integer = `if(isNull(t.${column}), NULL, ifNull(accurateCastOrNull(t.${column}, 'Int64'), -1))`
    const value = isThere ? integer : "CAST(NULL, 'Nullable(Int64)')"
    return column === 'requests' ? `ifNull(${value}, 1)` : value
  }
  const value = isThere ? `toValidUTF8(ifNull(toString(t.${column}), ''))` : "''"
  return OF_APPS.includes(column) ? `if(row_app = '', '', ${value})` : value
}

/** The values of a row `t`, and whether it is plain: no rule can reject it. */
export function valuesOf(columns: ReadonlyMap<string, unknown>): string {
  const values = COLUMNS.map((column) => `${valueOf(column, columns.has(column))} AS row_${column}`)
  return `${values.join(', ')}, (
    ifNull(row_app_id >= 0, row_app != '') AND isNull(row_prompt_tokens) = isNull(row_completion_tokens)
    AND ifNull(row_prompt_tokens, 0) >= 0 AND ifNull(row_completion_tokens, 0) >= 0
    AND row_requests BETWEEN 0 AND 1000000000000
  ) AS is_plain`
}

/** 48 bits: 16 choose a bucket, and 32 are kept there. */
const ID_HASH = 'bitAnd(cityHash64(row_request_id), 0xFFFFFFFFFFFF)'
/** A value for each element that occurred exactly once before it: one for each repeated hash of a bucket. */
const REPEATED = 'arrayFilter((hash, occurrence) -> occurrence = 2, hashes, arrayEnumerateUniq(hashes))'

/** The values of these columns, under their names. */
function asTheyAre(columns: readonly string[]): string {
  return columns.map((column) => `row_${column} AS ${column}`).join(', ')
}

/**
 * The two queries for a day's file: the sums of its plain rows, and as they are the rows that are not plain or have a repeated
 * request_id. Columns as in CONTRACT 7, and `row_count`, the rows of the table that each row stands for. A sum above 2^63 is
 * an error.
 */
export function pullQueries(
  values: string,
  from: string,
  day: string,
): readonly [sums: string, rows: string] {
  const rows = `FROM ${from} WHERE ${onDay(day)}`
  // Arrays of 32 bits take a third of the memory of a hash table with a count for each id.
  const repeated = `
    SELECT bucket * 0x100000000 + arrayJoin(${REPEATED}) FROM (
      WITH ${values}
      SELECT intDiv(${ID_HASH}, 0x100000000) AS bucket, groupArray(toUInt32(${ID_HASH})) AS hashes
      ${rows} AND row_request_id != '' GROUP BY bucket
    )`
  const selected = `WITH ${values},
    is_plain AND (row_request_id = '' OR ${ID_HASH} GLOBAL NOT IN (${repeated})) AS is_summed SELECT`
  const sums = SUMS.map(
    (column) =>
      `accurateCast(sumIf(toInt128(row_${column}), row_${column} >= 0), 'Nullable(Int64)') AS ${column}`,
  )
  return [
    `${selected} min(row_ts) AS ts, '' AS request_id, ${asTheyAre(KEYS)}, ${sums.join(', ')}, toInt64(count()) AS row_count
     ${rows} AND is_summed GROUP BY ${KEYS.map((column) => `row_${column}`).join(', ')}, ${TOLD_APART}`,
    `${selected} ${asTheyAre(COLUMNS)}, toInt64(1) AS row_count ${rows} AND NOT is_summed`,
  ]
}
