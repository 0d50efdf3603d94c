/** GET /datasets/rankings-daily (CONTRACT 4.6): the models with the most tokens per day. */
import { z } from 'zod'
import { MODEL_COLUMNS, modelRowSchema } from '../../pipeline/contract/dataset.ts'
import { badRequest, type ParameterTable, readParameters, type Values } from '../http/query-parameters.ts'
import { MODEL_RANKING_PATH } from '../paths.ts'
import { PARAMETERS, reversedDates } from './rankings.ts'
import type { RowsQuery } from './reply.ts'
import { resolveWindow } from './window.ts'

const { start_date, end_date, as_of, format } = PARAMETERS

/** Every parameter with its check. A day has few rows, so there are no pages. */
export const MODEL_PARAMETERS = { start_date, end_date, as_of, format } as const satisfies ParameterTable

// The order of the macro is that of the rule.
const MODELS = `
  SELECT CAST(date AS VARCHAR) AS date, model_permaslug, CAST(total_tokens AS VARCHAR) AS total_tokens
  FROM daily_models($start, $end)`

const modelsSchema = z.array(modelRowSchema)

/**
 * Reads the query string of a request for the models by day (the part after `?`, still encoded).
 * @throws {ApiError} 400 that lists every fault.
 */
export function parseModels(text: string): RowsQuery {
  const { values, faults } = readParameters(MODEL_PARAMETERS, text)
  const parameters: Values<typeof MODEL_PARAMETERS> = values
  faults.push(...reversedDates(parameters))
  if (faults.length > 0) throw badRequest(faults)
  return {
    asOf: parameters.as_of,
    format: parameters.format,
    resolve({ dataThrough }) {
      const window = resolveWindow(parameters, dataThrough)
      const { start, end } = window
      return {
        path: MODEL_RANKING_PATH,
        key: ['models', start, end].join('.'),
        parameters: [
          ['start_date', start],
          ['end_date', end],
        ],
        window,
        columns: MODEL_COLUMNS,
        metadata: {},
        read: async ({ query }) => ({ rows: modelsSchema.parse(await query(MODELS, { start, end })) }),
      }
    },
  }
}
