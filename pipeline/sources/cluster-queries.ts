/** The queries of a pull from a cluster, in ClickHouse's SQL. */

/** A text as a literal of ClickHouse, or with backquotes as an identifier. */
export function quoted(text: string, quote = "'"): string {
  return `${quote}${text.replaceAll(/[\\'`]/g, String.raw`\$&`)}${quote}`
}

/**
 * The query for the partitions with rows, from the parts of every replica; the arguments are literals. Per shard the replica
 * with the newest rows decides, so that a pull from one that lags behind is noticed. `fingerprint` is equal after every merge
 * as long as no row came, went or changed: rows of a lightweight update stand in a partition `patch-…` until they are merged,
 * and the version of a part equals its first block until it is mutated.
 */
export function partitionsQuery(database: string, table: string, cluster?: string): string {
  // A name may have macros, such as '{cluster}', of the server's configuration.
  const name = (cluster ?? "''").replaceAll(/\{(\w+)\}/g, "', getMacro('$1'), '")
  const [parts, place] =
    cluster === undefined
      ? ['system.parts', '0']
      : [`clusterAllReplicas(${cluster}, system.parts)`, '_shard_num']
  return `
    SELECT
      partition AS id,
      arrayStringConcat(arraySort(groupArray(toString((shard, newest)))), ' ') AS fingerprint,
      sum(newest.1) AS row_count,
      max(newest.4) AS has_deleted
    FROM (
      SELECT r.shard AS shard, p.partition AS partition, max(p.state) AS newest
      FROM (
        SELECT
          toUInt64(${place}) AS place,
          replaceRegexpOne(partition_id, '^patch-[0-9a-f]+-', '') AS partition,
          (
            sumIf(rows, NOT startsWith(partition_id, 'patch-')), max(max_block_number),
            maxIf(data_version, data_version != min_block_number), max(has_lightweight_delete)
          ) AS state
        FROM ${parts} WHERE active AND database = ${database} AND table = ${table}
        GROUP BY place, partition
      ) AS p
      LEFT JOIN (
        SELECT row_number() OVER (ORDER BY shard_num, replica_num) AS place, shard_num AS shard
        FROM system.clusters WHERE cluster = concat('', ${name})
      ) AS r ON r.place = p.place
      GROUP BY shard, partition
    )
    GROUP BY id
    HAVING row_count > 0
    ORDER BY id`
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

/**
 * The values of a row `t`, and whether it is plain: no rule can reject it. '' is no text, NULL no number, and -1 a number that
 * is no integer of 64 bits.
 */
export function valuesOf(columns: ReadonlyMap<string, unknown>): string {
  const values = COLUMNS.map((column) => {
    if (column === 'ts') return "toDateTime64(t.ts, 6, 'UTC') AS row_ts"
    const isCount = column === 'app_id' || SUMS.includes(column)
    const absent = isCount ? "CAST(NULL, 'Nullable(Int64)')" : "''"
    const present = isCount
      ? `if(isNull(t.${column}), NULL, ifNull(accurateCastOrNull(t.${column}, 'Int64'), -1))`
      : `toValidUTF8(ifNull(toString(t.${column}), ''))`
    const value = columns.has(column) ? present : absent
    if (column === 'requests') return `ifNull(${value}, 1) AS row_requests`
    return `${OF_APPS.includes(column) ? `if(row_app = '', '', ${value})` : value} AS row_${column}`
  })
  return `${values.join(', ')}, (
    ifNull(row_app_id >= 0, row_app != '') AND isNull(row_prompt_tokens) = isNull(row_completion_tokens)
    AND ifNull(row_prompt_tokens, 0) >= 0 AND ifNull(row_completion_tokens, 0) >= 0
    AND row_requests BETWEEN 0 AND 1000000000000
  ) AS is_plain`
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
  const repeated = `WITH ${values} SELECT cityHash64(row_request_id) AS id_hash ${rows} AND row_request_id != ''
    GROUP BY id_hash HAVING count() > 1`
  const select = (valueOf: (column: string) => string, count: string) => `
    WITH ${values},
      is_plain AND (row_request_id = '' OR cityHash64(row_request_id) GLOBAL NOT IN (${repeated})) AS is_summed
    SELECT ${COLUMNS.map((column) => `${valueOf(column)} AS ${column}`).join(', ')}, toInt64(${count}) AS row_count ${rows}`
  const inGroup = (column: string) => {
    if (column === 'ts') return 'min(row_ts)'
    if (column === 'request_id') return "''"
    if (KEYS.includes(column)) return `row_${column}`
    return `accurateCast(sumIf(toInt128(row_${column}), row_${column} >= 0), 'Nullable(Int64)')`
  }
  const keys = KEYS.map((column) => `row_${column}`).join(', ')
  return [
    `${select(inGroup, 'count()')} AND is_summed GROUP BY ${keys}, ${TOLD_APART}`,
    `${select((column) => `row_${column}`, '1')} AND NOT is_summed`,
  ]
}
