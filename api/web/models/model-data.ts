/** Reads the data of the models page from one snapshot. */
import { z } from 'zod'
import { OTHER_MODELS } from '../../../pipeline/contract/dataset.ts'
import { requireModels } from '../../datasets/models/read-models.ts'
import type { DateWindow } from '../../datasets/rankings/window.ts'
import type { ReadableSnapshot } from '../../datasets/snapshots/open-snapshot.ts'
import type { Daily } from '../charts/columns.ts'

/** Usage of a model in a window. */
export interface ModelTotal {
  /** `author/slug`, or OTHER_MODELS. */
  readonly model: string
  readonly requests: bigint
  readonly tokens: bigint
}

const TOTALS = `
  SELECT m.model_permaslug AS model, CAST(sum(m.requests) AS BIGINT) AS requests,
    CAST(sum(CAST(m.prompt_tokens AS HUGEINT) + CAST(m.completion_tokens AS HUGEINT)) AS VARCHAR) AS tokens
  FROM model_daily AS m
  WHERE m.day BETWEEN CAST($start AS DATE) AND CAST($end AS DATE)
  GROUP BY m.model_permaslug
  HAVING sum(m.requests) > 0 OR m.model_permaslug = '${OTHER_MODELS}'
  ORDER BY sum(CAST(m.prompt_tokens AS HUGEINT) + CAST(m.completion_tokens AS HUGEINT)) DESC, m.model_permaslug`

// No model has a space in its name.
const DAILY = `
  SELECT CAST(m.day AS VARCHAR) AS day, m.model_permaslug AS model,
    CAST(CAST(m.prompt_tokens AS HUGEINT) + CAST(m.completion_tokens AS HUGEINT) AS VARCHAR) AS tokens
  FROM model_daily AS m
  WHERE m.day BETWEEN CAST($start AS DATE) AND CAST($end AS DATE)
    AND list_contains(string_split($models, ' '), m.model_permaslug)`

const DAYS = `
  SELECT CAST(c.day AS VARCHAR) AS day, CAST(c.total_tokens AS VARCHAR) AS tokens
  FROM coverage AS c
  WHERE c.day BETWEEN CAST($start AS DATE) AND CAST($end AS DATE)`

const tokens = z.string().transform(BigInt)
const totalRows = z.array(z.object({ model: z.string(), requests: z.bigint(), tokens }))
const dailyRows = z.array(z.object({ day: z.string(), model: z.string(), tokens }))
const dayRows = z.array(z.object({ day: z.string(), tokens }))

/**
 * The usage of each model in a window, the largest first, including the sum of non-public models.
 * @throws {ApiError} 400 if the snapshot predates the count of models.
 */
export async function readModelTotals(
  snapshot: ReadableSnapshot,
  { start, end }: DateWindow,
): Promise<readonly ModelTotal[]> {
  await requireModels(snapshot)
  return totalRows.parse(await snapshot.query(TOTALS, { start, end }))
}

/** The tokens of these models by day. */
export async function readModelDays(
  snapshot: ReadableSnapshot,
  models: readonly string[],
  { start, end }: DateWindow,
): Promise<ReadonlyMap<string, Daily>> {
  const rows = dailyRows.parse(await snapshot.query(DAILY, { start, end, models: models.join(' ') }))
  const own = (model: string) => rows.filter((row) => row.model === model)
  return new Map(
    models.map((model) => [model, new Map(own(model).map(({ day, tokens: used }) => [day, used]))]),
  )
}

/** All tokens by day. */
export async function readDays(snapshot: ReadableSnapshot, { start, end }: DateWindow): Promise<Daily> {
  const rows = dayRows.parse(await snapshot.query(DAYS, { start, end }))
  return new Map(rows.map(({ day, tokens: used }) => [day, used]))
}
