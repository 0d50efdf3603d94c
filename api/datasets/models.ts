/** GET /datasets/rankings-daily (CONTRACT 4.6): the models with the most tokens per day. */
import { z } from 'zod'
import { MODEL_COLUMNS, modelRowSchema } from '../../pipeline/contract/dataset.ts'
import type { ParameterTable } from '../http/query-parameters.ts'
import { MODEL_RANKING_PATH } from '../paths.ts'
import { PARAMETERS } from './rankings.ts'
import type { RowsOperation } from './reply.ts'
import { resolveWindow } from './window.ts'

const { start_date, end_date, as_of, format } = PARAMETERS

// The order of the macro is that of the rule.
const ROWS = `
  SELECT CAST(date AS VARCHAR) AS date, model_permaslug, CAST(total_tokens AS VARCHAR) AS total_tokens
  FROM daily_models($start, $end)`

const rowsSchema = z.array(modelRowSchema)

/** A day has few rows, so there are no pages. */
export const MODELS = {
  path: MODEL_RANKING_PATH,
  parameters: { start_date, end_date, as_of, format } satisfies ParameterTable,
  columns: MODEL_COLUMNS,
  resolve(given, { dataThrough }) {
    const { start, end } = resolveWindow(given, dataThrough)
    return {
      parameters: { start_date: start, end_date: end },
      read: async ({ query }) => ({ rows: rowsSchema.parse(await query(ROWS, { start, end })) }),
    }
  },
} satisfies RowsOperation
