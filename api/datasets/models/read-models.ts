import { z } from 'zod'
import { modelRowSchema, type ModelRow } from '../../../pipeline/contract/dataset.ts'
import { badRequest, invalid } from '../../http/protocol/query-parameters.ts'
import type { DateWindow } from '../rankings/window.ts'
import type { Snapshot } from '../snapshots/facts.ts'

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
  snapshot: Snapshot,
  { start, end }: DateWindow,
): Promise<readonly ModelRow[]> {
  requireModels(snapshot)
  return modelsSchema.parse(await snapshot.query(MODELS, { start, end }))
}

/** @throws {ApiError} 400 if the snapshot predates the count of models. */
function requireModels({ contents, asOf }: Snapshot): void {
  if (contents.has('main.daily_models')) return
  const allowed =
    'a snapshot with the table model_daily, which this one is too old for; the next run publishes one'
  throw badRequest([invalid('as_of', asOf, allowed)])
}
