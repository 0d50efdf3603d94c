/** The query parameters of the series by day (CONTRACT 4.6): the parameters of the rankings, and the apps. */
import { z } from 'zod'
import {
  badRequest,
  readParameters,
  wholeNumber,
  type ParameterTable,
  type Values,
} from '../../http/protocol/query-parameters.ts'
import { PARAMETERS, reversedDates } from '../rankings/parameters.ts'

const MAX_APPS = 10
/** Days of one reply. */
const MAX_DAYS = 366
/** More days than any window has. */
const MAX_OFFSET = 100_000

const MAX_ID = 2n ** 63n - 1n
const idSchema = z
  .string()
  .regex(/^\d{1,19}$/)
  .transform(BigInt)
  .refine((id) => id <= MAX_ID)

/** Every parameter with its check; limit and offset count days. */
export const SERIES_PARAMETERS = {
  app_id: {
    schema: z.array(idSchema).max(MAX_APPS),
    allowed: `the app_id of a public app, given at most ${MAX_APPS} times`,
    most: MAX_APPS,
    required: true,
  },
  start_date: PARAMETERS.start_date,
  end_date: PARAMETERS.end_date,
  limit: wholeNumber(1, MAX_DAYS, MAX_DAYS),
  offset: wholeNumber(0, MAX_OFFSET, 0),
  as_of: PARAMETERS.as_of,
  format: PARAMETERS.format,
  bom: PARAMETERS.bom,
} as const satisfies ParameterTable

/**
 * Reads the query string (the part after `?`, still encoded).
 * @throws {ApiError} 400 that lists every fault.
 */
export function parseSeriesParameters(query: string): Values<typeof SERIES_PARAMETERS> {
  const { values, faults } = readParameters(SERIES_PARAMETERS, query)
  const parameters: Values<typeof SERIES_PARAMETERS> = values
  faults.push(...reversedDates(parameters))
  if (faults.length > 0) throw badRequest(faults)
  return parameters
}
