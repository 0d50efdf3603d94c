import { z } from 'zod'
import { modelRowSchema, type ModelRow } from '../../../pipeline/contract/dataset.ts'
import { badRequest, invalid } from '../../http/protocol/query-parameters.ts'
import type { DateWindow } from '../rankings/window.ts'
import type { ReadableSnapshot } from '../snapshots/open-snapshot.ts'

const HAS_MODELS = "SELECT table_name FROM duckdb_tables() WHERE table_name = 'model_daily'"

// The macro's order is the rule's.
const MODELS = `
  SELECT CAST(date AS VARCHAR) AS date, model_permaslug, CAST(total_tokens AS VARCHAR) AS total_tokens
  FROM daily_models($start, $end)`

const modelsSchema = z.array(modelRowSchema)

/**
 * The models of each day of the window, by the macro of the snapshot.
 * @throws {ApiError} 400 if the snapshot predates the count of models.
 */
export async function readModels(
  snapshot: ReadableSnapshot,
  { start, end }: DateWindow,
): Promise<readonly ModelRow[]> {
  await requireModels(snapshot)
  return modelsSchema.parse(await snapshot.query(MODELS, { start, end }))
}

/** @throws {ApiError} 400 if the snapshot predates the count of models. */
export async function requireModels({ query, asOf }: ReadableSnapshot): Promise<void> {
  if ((await query(HAS_MODELS, {})).length > 0) return
  const allowed =
    'a snapshot with the table model_daily, which this one is too old for; the next run publishes one'
  throw badRequest([invalid('as_of', asOf, allowed)])
}
