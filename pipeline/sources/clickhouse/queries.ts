/**
 * The queries to a cluster, in SQL for ClickHouse 18.16 and current releases. Each one selects from the distributed table
 * without subqueries, so that the shards group before rows travel. Validity and precedence of rows come from validation.ts.
 * No alias equals a column name: ClickHouse would substitute it for the column.
 */
import { addDays } from '../../contract/calendar.ts'
import type { ClickHouseTable } from './table.ts'
import { MODEL_NAME, precedence, violationBranches } from '../validation.ts'

/** Sums travel in two halves: ClickHouse's own sums overflow at 2^64. */
const HALF = 4_294_967_296

/** UInt64 columns hold larger values, which toInt64 would make negative. */
const LARGEST_ID = '9223372036854775807'

/** Rejected rows kept verbatim per day; the counts include all. */
const REJECTS_KEPT = 10_000

type Columns = ClickHouseTable['columns']

/** Data parts of each day, over all shards. */
export function partsQuery({ parts }: ClickHouseTable): string {
  return `
    SELECT partition, name, toString(rows) AS row_count, toString(toUInt32(modification_time)) AS modified
    FROM ${parts}
    ORDER BY partition, name, row_count, modified`
}

/** The texts by which rows name their apps, in the order in which they were seen first. */
export function namesQuery({ everywhere, columns: { app } }: ClickHouseTable, day: string): string {
  return `
    SELECT ${app} AS name_text
    FROM ${everywhere}
    WHERE ${onDay(day)} AND name_text != ''
    GROUP BY name_text
    ORDER BY min(ts), name_text`
}

/** All rows of the day by app and model; app_id null holds the rejected rows. An app has an id or a name. */
export function countQuery(table: ClickHouseTable, day: string): string {
  const good = isGood(table.columns)
  const { app_id, prompt, requests } = table.columns
  return `
    SELECT
      if(${good}, toInt64(ifNull(${app_id}, 0)), NULL) AS app_number,
      toString(app_number) AS app_text,
      if(${good}, ${table.columns.app}, '') AS name_text,
      if(${good}, ${modelName(table.columns)}, '') AS model_text,
      toString(count()) AS row_count,
      toString(countIf(${good} AND isNull(${prompt}))) AS without_tokens,
      toString(sumIf(toInt64(ifNull(${requests}, 1)), ${good})) AS request_sum,
      ${sumHalves(tokens(prompt), 'prompt')},
      ${sumHalves(tokens(table.columns.completion), 'completion')},
      ${sumHalves(`if(${good}, ${reasoning(table.columns)}, 0)`, 'reasoning')},
      ${sumHalves(`if(${good}, ${cached(table.columns)}, 0)`, 'cached')}
    FROM ${table.everywhere}
    WHERE ${onDay(day)}
    GROUP BY app_number, name_text, model_text`
}

/**
 * Usage by provider: requests of valid rows, requests with unknown tokens, and rows of requests that no provider served.
 * Includes duplicates, since people only look at the shares.
 */
export function providersQuery(table: ClickHouseTable, day: string): string {
  const { prompt, provider } = table.columns
  const requests = `toInt64(ifNull(${table.columns.requests}, 1))`
  return `
    SELECT
      ifNull(toString(${provider}), '') AS provider_text,
      toString(sum(${requests})) AS request_sum,
      toString(sumIf(${requests}, isNull(${prompt}))) AS unknown_sum,
      toString(countIf(isNull(${prompt}) AND ${requests} = 0)) AS failed_count
    FROM ${table.everywhere}
    WHERE ${onDay(day)} AND ${isGood(table.columns)}
    GROUP BY provider_text`
}

/** Whether request_ids may repeat. Counting distinct hashes is far cheaper than counting distinct texts. */
export function suspicionQuery({ everywhere, columns }: ClickHouseTable, day: string): string {
  const id = columns.request_id
  return `
    SELECT count() > uniqExact(cityHash64(${id})) AS suspicious
    FROM ${everywhere}
    WHERE ${onDay(day)} AND ${id} != ''`
}

/** Valid rows with a repeated request_id, by app and model. */
export function repeatedQuery(table: ClickHouseTable, day: string): string {
  const { app_id, prompt, completion, requests, request_id } = table.columns
  return `
    SELECT
      toString(toInt64(ifNull(${app_id}, 0))) AS app_text,
      ${table.columns.app} AS name_text,
      ${modelName(table.columns)} AS model_text,
      toString(count()) AS row_count,
      toString(countIf(isNull(${prompt}))) AS without_tokens,
      toString(sum(toInt64(ifNull(${requests}, 1)))) AS request_sum,
      ${sumHalves(tokens(prompt), 'prompt')},
      ${sumHalves(tokens(completion), 'completion')},
      ${sumHalves(reasoning(table.columns), 'reasoning')},
      ${sumHalves(cached(table.columns), 'cached')}
    FROM ${table.everywhere}
    WHERE ${onDay(day)} AND ${request_id} != '' AND ${isGood(table.columns)}
      AND ${request_id} GLOBAL IN (
        SELECT ${request_id} AS id
        FROM ${table.everywhere}
        WHERE ${onDay(day)} AND ${request_id} != '' AND ${isGood(table.columns)}
        GROUP BY id
        HAVING count() > 1
      )
    GROUP BY app_text, name_text, model_text`
}

/**
 * Precedence among rows with one request_id (newest ts, then the larger values). The cluster does not know the id of a
 * named app, so among otherwise equal rows the later name counts.
 */
function rankOf({ columns }: ClickHouseTable): string {
  const values = precedence(['ts'], {
    app_id: `toInt64(ifNull(${columns.app_id}, 0))`,
    prompt_tokens: columns.prompt,
    completion_tokens: columns.completion,
    requests: `toInt64(${columns.requests})`,
    model: modelName(columns),
    reasoning_tokens: reasoning(columns),
    cached_tokens: cached(columns),
  })
  return `tuple(${[...values, columns.app].join(', ')})`
}

/** The winning row of each repeated request_id, by app and model. */
export function winnersQuery(table: ClickHouseTable, day: string): string {
  const { request_id } = table.columns
  return `
    SELECT
      toString(tupleElement(winner, 2)) AS app_text,
      tupleElement(winner, 10) AS name_text,
      tupleElement(winner, 7) AS model_text,
      toString(count()) AS row_count,
      toString(countIf(tupleElement(winner, 3) = 0)) AS without_tokens,
      toString(sum(tupleElement(winner, 6))) AS request_sum,
      ${sumHalves('tupleElement(winner, 4)', 'prompt')},
      ${sumHalves('tupleElement(winner, 5)', 'completion')},
      ${sumHalves('tupleElement(winner, 8)', 'reasoning')},
      ${sumHalves('tupleElement(winner, 9)', 'cached')}
    FROM (
      SELECT ${request_id} AS id, max(${rankOf(table)}) AS winner
      FROM ${table.everywhere}
      WHERE ${onDay(day)} AND id != '' AND ${isGood(table.columns)}
      GROUP BY id
      HAVING count() > 1
    )
    GROUP BY app_text, name_text, model_text`
}

/** Number of valid rows that differ in app or tokens from the winning row. Capitals of a name do not count. */
export function conflictsQuery(table: ClickHouseTable, day: string): string {
  const { app_id, app, prompt, completion, request_id } = table.columns
  return `
    SELECT toString(sum(row_count - same_count)) AS conflicts
    FROM (
      SELECT id, sum(like_count) AS row_count, argMax(like_count, winner) AS same_count
      FROM (
        SELECT ${request_id} AS id, count() AS like_count, max(${rankOf(table)}) AS winner
        FROM ${table.everywhere}
        WHERE ${onDay(day)} AND id != '' AND ${isGood(table.columns)}
        GROUP BY id, toInt64(ifNull(${app_id}, 0)), lowerUTF8(${app}), ${prompt}, ${completion}
      )
      GROUP BY id
    )`
}

/** The first rejected rows of the day with their violation, in an order independent of the shards. */
export function rejectsQuery(table: ClickHouseTable, day: string): string {
  const { app_id, prompt, completion, requests, request_id } = table.columns
  return `
    SELECT
      ${rejection(table.columns)} AS reason,
      toString(ts) AS ts_text,
      toString(${app_id}) AS app_text,
      toString(${prompt}) AS prompt_text,
      toString(${completion}) AS completion_text,
      toString(${requests}) AS requests_text,
      ${request_id} AS id
    FROM ${table.everywhere}
    WHERE ${onDay(day)} AND reason != ''
    ORDER BY ts_text, id, app_text, prompt_text, completion_text, requests_text
    LIMIT ${REJECTS_KEPT}`
}

function onDay(day: string): string {
  return `ts >= toDateTime('${day} 00:00:00', 'UTC') AND ts < toDateTime('${addDays(day, 1)} 00:00:00', 'UTC')`
}

/** The violation of a row; empty if it is valid. */
function rejection({ app_id, prompt, completion, requests }: Columns): string {
  const branches = violationBranches({
    app_id: `if(ifNull(${app_id} > ${LARGEST_ID}, 0), NULL, ${app_id})`,
    prompt_tokens: prompt,
    completion_tokens: completion,
    requests: `toInt64(${requests})`,
  })
  return `(CASE ${branches} ELSE '' END)`
}

function isGood(columns: Columns): string {
  return `(${rejection(columns)} = '')`
}

/** The model of a row; empty if unknown. */
function modelName({ model }: Columns): string {
  return `extract(ifNull(toString(${model}), ''), '${MODEL_NAME}')`
}

function reasoning(columns: Columns): string {
  return partOf(columns.completion, columns.reasoning)
}

function cached(columns: Columns): string {
  return partOf(columns.prompt, columns.cached)
}

/** A part of a count; 0 if it is broken. */
function partOf(whole: string, part: string): string {
  return `toUInt64(if(ifNull(${part} >= 0 AND ${part} <= ${whole}, 0), ifNull(${part}, 0), 0))`
}

function tokens(column: string): string {
  return `toUInt64(greatest(ifNull(${column}, 0), 0))`
}

function sumHalves(value: string, name: string): string {
  return `toString(sum(intDiv(${value}, ${HALF}))) AS ${name}_high, toString(sum(${value} % ${HALF})) AS ${name}_low`
}

/** Joins the two halves of a sum. */
export function joinHalves(high: string, low: string): bigint {
  return BigInt(high) * BigInt(HALF) + BigInt(low)
}
