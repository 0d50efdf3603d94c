/** The parameters of the models page. */
import type { Request } from 'express'
import { PARAMETERS, reversedDates } from '../../datasets/rankings/parameters.ts'
import {
  badRequest,
  invalid,
  readParameters,
  type ParameterTable,
  type Values,
} from '../../http/protocol/query-parameters.ts'
import { queryString } from '../../http/respond.ts'
import { DAYS } from '../ranking/page-query.ts'

const MODEL_PAGE = {
  start_date: PARAMETERS.start_date,
  end_date: PARAMETERS.end_date,
  days: DAYS,
  as_of: PARAMETERS.as_of,
} as const satisfies ParameterTable

export interface ModelsRequest {
  readonly parameters: Values<typeof MODEL_PAGE>
}

/**
 * Reads the parameters.
 * @throws {ApiError} 400 that lists every fault.
 */
export function readModelsRequest(request: Request): ModelsRequest {
  const { values, faults } = readParameters(MODEL_PAGE, queryString(request))
  const parameters: ModelsRequest['parameters'] = values
  faults.push(...reversedDates(parameters))
  if (parameters.days !== undefined && parameters.start_date !== undefined)
    faults.push(invalid('days', String(parameters.days), DAYS.allowed))
  if (faults.length > 0) throw badRequest(faults)
  return { parameters }
}
