/**
 * What is asked of a cluster, in the SQL that ClickHouse 18.16 and today's releases both understand. Each statement asks
 * the distributed table flatly, so that the shards group before anything travels. Which row is valid, and which duplicate
 * counts, is stated in validation.ts; the tests compare both ways row by row. No alias has the name of a column: ClickHouse
 * would put the one in the place of the other.
 */
import { addDays } from '../../contract/calendar.ts'
import type { ClickHouseTable } from './table.ts'
import { MODEL_NAME, precedence, violationBranches } from '../validation.ts'

/** Sums travel as two halves: ClickHouse's own would overflow beyond 2^64. */
const HALF = 4_294_967_296

/** A column of UInt64 holds larger ones, which toInt64 would make negative. */
const LARGEST_ID = '9223372036854775807'

/** Rejected rows that are kept word for word, per day; the counts are exact beyond. */
const REJECTS_KEPT = 10_000

type Columns = ClickHouseTable['columns']

/** Data parts of each day, over all shards. */
export function partsQuery({ parts }: ClickHouseTable): string {
  return `
    SELECT partition, name, toString(rows) AS row_count, toString(toUInt32(modification_time)) AS modified
    FROM ${parts}
    ORDER BY partition, name, row_count, modified`
}

/** The texts by which rows name their apps, those that were seen first before the others. */
export function namesQuery({ everywhere, columns: { app } }: ClickHouseTable, day: string): string {
  return `
    SELECT ${app} AS name_text
    FROM ${everywhere}
    WHERE ${onDay(day)} AND name_text != ''
    GROUP BY name_text
    ORDER BY min(ts), name_text`
}

/** Every row of the day by app and model; app_id null gathers the rejected rows. An app has its id or its name. */
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
 * Who served: requests of good rows by provider, those without tokens among them, and the rows without tokens of requests
 * that nobody served. Repeated rows count as often as they stand there: the shares are for people to look at.
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

/** May request_ids repeat? Distinct hashes are far cheaper to count than distinct texts. */
export function suspicionQuery({ everywhere, columns }: ClickHouseTable, day: string): string {
  const id = columns.request_id
  return `
    SELECT count() > uniqExact(cityHash64(${id})) AS suspicious
    FROM ${everywhere}
    WHERE ${onDay(day)} AND ${id} != ''`
}

/** Good rows whose request_id stands more than once, by app and model. */
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
 * The row of a request_id that counts is the largest of these (newest ts, ties the larger values). Which id a name stands for
 * is not known here: of rows that tie in all else, the later name counts.
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

/** Of each repeated request_id the one row that counts, by app and model. */
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

/** How many good rows differ in app or tokens from the row of their request_id that counts. Capitals of a name do not count. */
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

/** The first rejected rows of the day with their reason, in an order that does not depend on the shards. */
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

/** The violation of a row; empty where it is valid. */
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

/** The model of a row; empty where it names none. */
function modelName({ model }: Columns): string {
  return `extract(ifNull(toString(${model}), ''), '${MODEL_NAME}')`
}

function reasoning(columns: Columns): string {
  return partOf(columns.completion, columns.reasoning)
}

function cached(columns: Columns): string {
  return partOf(columns.prompt, columns.cached)
}

/** A part of a count; 0 where it is none. */
function partOf(whole: string, part: string): string {
  return `toUInt64(if(ifNull(${part} >= 0 AND ${part} <= ${whole}, 0), ifNull(${part}, 0), 0))`
}

function tokens(column: string): string {
  return `toUInt64(greatest(ifNull(${column}, 0), 0))`
}

function sumHalves(value: string, name: string): string {
  return `toString(sum(intDiv(${value}, ${HALF}))) AS ${name}_high, toString(sum(${value} % ${HALF})) AS ${name}_low`
}

/** The whole of two halves. */
export function joinHalves(high: string, low: string): bigint {
  return BigInt(high) * BigInt(HALF) + BigInt(low)
}
