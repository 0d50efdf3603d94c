/** What may be asked of the page of models. */
import type { Request } from 'express'
import { z } from 'zod'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { PARAMETERS, reversedDates } from '../../datasets/rankings/parameters.ts'
import { requireWindow } from '../../datasets/rankings/query.ts'
import { resolveWindow, type DateWindow } from '../../datasets/rankings/window.ts'
import {
  badRequest,
  invalid,
  readParameters,
  type ParameterTable,
  type Values,
} from '../../http/protocol/query-parameters.ts'
import { queryString } from '../../http/respond.ts'
import { WINDOWS } from '../ranking/page-query.ts'

const MODEL_PAGE = {
  start_date: PARAMETERS.start_date,
  end_date: PARAMETERS.end_date,
  days: {
    schema: z.enum(WINDOWS.map(String)).transform(Number),
    allowed: `one of ${WINDOWS.join(', ')}, instead of start_date`,
  },
  as_of: PARAMETERS.as_of,
} as const satisfies ParameterTable

export interface AskedModels {
  readonly parameters: Values<typeof MODEL_PAGE>
}

/**
 * Reads what is asked.
 * @throws {ApiError} 400 that lists every fault.
 */
export function askedModels(request: Request): AskedModels {
  const { values, faults } = readParameters(MODEL_PAGE, queryString(request))
  const parameters: AskedModels['parameters'] = values
  faults.push(...reversedDates(parameters))
  if (parameters.days !== undefined && parameters.start_date !== undefined)
    faults.push(invalid('days', String(parameters.days), MODEL_PAGE.days.allowed))
  if (faults.length > 0) throw badRequest(faults)
  return { parameters }
}

/**
 * The window that is shown.
 * @throws {ApiError} 400 when it would start after it ends.
 */
export function windowOf({ parameters }: AskedModels, dataThrough: string): DateWindow {
  const { days, start_date, end_date } = parameters
  if (days === undefined) return requireWindow(parameters, dataThrough)
  const { end } = resolveWindow(end_date === undefined ? {} : { end_date }, dataThrough)
  return requireWindow({ start_date: start_date ?? addDays(end, 1 - days), end_date: end }, dataThrough)
}
