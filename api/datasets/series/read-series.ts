import { z } from 'zod'
import { seriesRowSchema, type SeriesRow } from '../../../pipeline/contract/dataset.ts'
import { badRequest, invalid } from '../../http/protocol/query-parameters.ts'
import type { DateWindow } from '../rankings/window.ts'
import type { Snapshot } from '../snapshots/facts.ts'
import { SERIES_PARAMETERS } from './parameters.ts'

const APPS = `
  SELECT app_id FROM apps WHERE list_contains(CAST(string_split($apps, ',') AS BIGINT[]), app_id)`

// A row for each day, so that days without usage differ from days without data.
const SERIES = `
  SELECT
    CAST(c.day AS VARCHAR) AS day, a.app_id, a.app_name, coalesce(d.requests, 0) AS requests,
    CAST(coalesce(d.prompt_tokens, 0) AS VARCHAR) AS prompt_tokens,
    CAST(coalesce(d.completion_tokens, 0) AS VARCHAR) AS completion_tokens,
    CAST(coalesce(CAST(d.prompt_tokens AS HUGEINT) + CAST(d.completion_tokens AS HUGEINT), 0) AS VARCHAR)
      AS total_tokens,
    c.status AS coverage
  FROM coverage AS c
  JOIN apps AS a ON list_contains(CAST(string_split($apps, ',') AS BIGINT[]), a.app_id)
  LEFT JOIN (
    SELECT * FROM app_daily
    WHERE day BETWEEN CAST($start AS DATE) AND CAST($end AS DATE)
      AND list_contains(CAST(string_split($apps, ',') AS BIGINT[]), app_id)
  ) AS d ON d.day = c.day AND d.app_id = a.app_id
  WHERE c.day BETWEEN CAST($start AS DATE) AND CAST($end AS DATE)
  ORDER BY c.day, a.app_id`

const appsSchema = z.array(z.object({ app_id: z.bigint() }))
const seriesSchema = z.array(seriesRowSchema)

/**
 * The rows of each day of the window, by day and app.
 * @throws {ApiError} 400 that names the ids without a public app.
 */
export async function readSeries(
  { query }: Snapshot,
  ids: readonly bigint[],
  window: DateWindow,
): Promise<readonly SeriesRow[]> {
  const apps = ids.join(',')
  const known = new Set(appsSchema.parse(await query(APPS, { apps })).map(({ app_id }) => app_id))
  const unknown = ids.filter((id) => !known.has(id))
  if (unknown.length > 0) {
    throw badRequest([invalid('app_id', unknown.join(', '), SERIES_PARAMETERS.app_id.allowed)])
  }
  return seriesSchema.parse(await query(SERIES, { apps, start: window.start, end: window.end }))
}
