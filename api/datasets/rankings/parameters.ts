/** The query parameters of the app rankings (CONTRACT 4.1): read strictly; all faults are reported at once. */
import { z } from 'zod'
import { asOfFromId, daySchema, FLOOR_DATE } from '../../../pipeline/contract/calendar.ts'
import { SORTS } from '../../../pipeline/contract/dataset.ts'
import { CATEGORIES, SUBCATEGORIES, subcategoriesOf } from '../../../pipeline/contract/taxonomy.ts'
import {
  badRequest,
  invalid,
  oneOf,
  readParameters,
  wholeNumber,
  type Fault,
  type ParameterTable,
  type Values,
} from '../../http/protocol/query-parameters.ts'
import { FORMAT_NAMES } from '../formats/formats.ts'

const MAX_LIMIT = 100
const DEFAULT_LIMIT = 50
/** The largest offset; with the largest limit it bounds the reachable ranks. */
export const MAX_OFFSET = 100
/** The last rank on a page. */
export const REACHABLE_RANKS = MAX_OFFSET + MAX_LIMIT

const isTime = (text: string) => z.iso.datetime({ offset: true }).safeParse(text).success

/** Every parameter with its check. */
export const PARAMETERS = {
  category: oneOf(CATEGORIES),
  subcategory: oneOf(SUBCATEGORIES),
  sort: { ...oneOf(SORTS), default: SORTS[0] },
  start_date: { schema: daySchema, allowed: 'a calendar date (UTC) in the form YYYY-MM-DD' },
  end_date: {
    schema: daySchema.refine((day) => day >= FLOOR_DATE),
    // From 2025 on.
    pattern: String.raw`^(202[5-9]|20[3-9]\d|2[1-9]\d\d|[3-9]\d{3})-\d\d-\d\d$`,
    allowed: `a calendar date (UTC) in the form YYYY-MM-DD, on or after ${FLOOR_DATE}`,
  },
  limit: wholeNumber(1, MAX_LIMIT, DEFAULT_LIMIT),
  offset: wholeNumber(0, MAX_OFFSET, 0),
  as_of: {
    // One text for generated clients, not one of two.
    schema: z.string().refine((text) => isTime(text) || asOfFromId(text) !== undefined),
    allowed:
      'the time of a snapshot, such as 2026-11-20T02:00:00Z, or its identifier, such as 20261120T020000Z',
  },
  format: oneOf(FORMAT_NAMES),
  bom: { schema: z.literal('1'), allowed: '1, with format csv' },
} as const satisfies ParameterTable

/** The parameters as sent, validated one by one and against each other. */
export type Parameters = Values<typeof PARAMETERS>

/**
 * Reads the query string (the part after `?`, still encoded).
 * @throws {ApiError} 400 that lists every fault.
 */
export function parseParameters(query: string): Parameters {
  const { values, faults } = readParameters(PARAMETERS, query)
  const parameters: Parameters = values
  faults.push(...contradictions(parameters))
  if (faults.length > 0) throw badRequest(faults)
  return parameters
}

/** Faults of parameters that are valid alone, but not together. */
export function contradictions(parameters: Parameters): Fault[] {
  const { category, subcategory } = parameters
  const faults: Fault[] = []
  if (category !== undefined && subcategory !== undefined) {
    const inside = subcategoriesOf(category)
    if (!inside.includes(subcategory)) {
      const allowed = `with category ${category} one of ${inside.join(', ')}`
      faults.push(invalid('subcategory', subcategory, allowed))
    }
  }
  faults.push(...reversedDates(parameters))
  return faults
}

/** The fault of dates in the wrong order. */
export function reversedDates({
  start_date,
  end_date,
}: Pick<Parameters, 'start_date' | 'end_date'>): Fault[] {
  if (start_date === undefined || end_date === undefined || start_date <= end_date) return []
  return [invalid('start_date', start_date, `a date not after end_date, ${end_date}`)]
}
