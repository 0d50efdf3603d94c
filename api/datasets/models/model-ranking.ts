/** GET /datasets/rankings-daily (CONTRACT 4.6): the models with the most tokens per day. */
import { MODEL_COLUMNS } from '../../../pipeline/contract/dataset.ts'
import {
  badRequest,
  readParameters,
  type ParameterTable,
  type Values,
} from '../../http/protocol/query-parameters.ts'
import { MODEL_RANKING_PATH } from '../../paths.ts'
import { PARAMETERS, reversedDates } from '../rankings/parameters.ts'
import { resolveWindow, type DateWindow } from '../rankings/window.ts'
import type { Question, RowsRequest } from '../rows/question.ts'
import { readModels } from './read-models.ts'

/** Every parameter with its check. A day has few rows, so there are no pages. */
export const MODEL_PARAMETERS = {
  start_date: PARAMETERS.start_date,
  end_date: PARAMETERS.end_date,
  as_of: PARAMETERS.as_of,
  format: PARAMETERS.format,
  bom: PARAMETERS.bom,
} as const satisfies ParameterTable

/**
 * Reads the query string of a request for the models by day (the part after `?`, still encoded).
 * @throws {ApiError} 400 that lists every fault.
 */
export function parseModelRanking(text: string): RowsRequest {
  const { values, faults } = readParameters(MODEL_PARAMETERS, text)
  const parameters: Values<typeof MODEL_PARAMETERS> = values
  faults.push(...reversedDates(parameters))
  if (faults.length > 0) throw badRequest(faults)
  return {
    asOf: parameters.as_of,
    format: parameters.format,
    hasMark: parameters.bom !== undefined,
    resolve: ({ dataThrough }) => modelsQuestion(resolveWindow(parameters, dataThrough)),
  }
}

/** The question for the models of a window. */
function modelsQuestion(window: DateWindow): Question {
  return {
    path: MODEL_RANKING_PATH,
    key: ['models', window.start, window.end].join('.'),
    parameters: [
      ['start_date', window.start],
      ['end_date', window.end],
    ],
    window,
    columns: MODEL_COLUMNS,
    metadata: {},
    read: async (snapshot) => ({ rows: await readModels(snapshot, window) }),
  }
}
