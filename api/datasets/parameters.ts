/** The query parameters of the app rankings (CONTRACT 4.1): read strictly, and all faults told at once. */
import { z } from 'zod'
import {
  CATEGORIES,
  daySchema,
  FLOOR_DATE,
  SORTS,
  SUBCATEGORIES,
  subcategoriesOf,
} from '../../pipeline/contract.ts'
import { ApiError } from '../errors.ts'
import { shorten } from '../shorten.ts'
import { FORMAT_NAMES } from './formats.ts'

interface Parameter {
  readonly schema: z.ZodType
  /** What is allowed, in words that follow "allowed: ". */
  readonly allowed: string
}

const MAX_LIMIT = 100
/** The largest offset: with the largest limit, the end of what can be reached. */
export const MAX_OFFSET = 100

const integerText = z.string().regex(/^\d+$/).transform(Number)

/** Every parameter with its check. */
export const PARAMETERS = {
  category: { schema: z.enum(CATEGORIES), allowed: `one of ${CATEGORIES.join(', ')}` },
  subcategory: { schema: z.enum(SUBCATEGORIES), allowed: `one of ${SUBCATEGORIES.join(', ')}` },
  sort: { schema: z.enum(SORTS), allowed: `one of ${SORTS.join(', ')}` },
  start_date: { schema: daySchema, allowed: 'a calendar date (UTC) in the form YYYY-MM-DD' },
  end_date: {
    schema: daySchema.refine((day) => day >= FLOOR_DATE),
    allowed: `a calendar date (UTC) in the form YYYY-MM-DD, on or after ${FLOOR_DATE}`,
  },
  limit: {
    schema: integerText.pipe(z.number().min(1).max(MAX_LIMIT)),
    allowed: `an integer from 1 to ${MAX_LIMIT}`,
  },
  offset: {
    schema: integerText.pipe(z.number().max(MAX_OFFSET)),
    allowed: `an integer from 0 to ${MAX_OFFSET}`,
  },
  as_of: {
    schema: z.iso.datetime({ offset: true }).transform((time) => new Date(time)),
    allowed: 'the time of a snapshot, ISO 8601, such as 2026-11-20T02:00:00Z',
  },
  format: { schema: z.enum(FORMAT_NAMES), allowed: `one of ${FORMAT_NAMES.join(', ')}` },
} as const satisfies Record<string, Parameter>

type ParameterName = keyof typeof PARAMETERS

/** The parameters as sent, checked one by one and against each other. */
export type Parameters = {
  readonly [Name in ParameterName]?: z.infer<(typeof PARAMETERS)[Name]['schema']>
}

/** One thing wrong with one parameter, as told in the metadata of the 400. */
export interface Fault {
  readonly parameter: string
  readonly problem: 'unknown' | 'repeated' | 'empty' | 'invalid'
  /** The value as sent, shortened; of a repeated parameter all of them. */
  readonly sent: string
  readonly allowed: string
}

const SHOWN_FAULTS = 20

/**
 * Reads the query string (what follows the `?`, still encoded).
 * @throws {ApiError} 400 that lists every fault.
 */
export function parseParameters(query: string): Parameters {
  const sent = new URLSearchParams(query)
  const faults: Fault[] = []
  const values: Record<string, unknown> = {}
  for (const name of new Set(sent.keys())) {
    const outcome = readParameter(name, sent.getAll(name))
    if ('fault' in outcome) faults.push(outcome.fault)
    else values[name] = outcome.value
  }
  const parameters: Parameters = values
  faults.push(...contradictions(parameters))
  if (faults.length > 0) throw badRequest(faults)
  return parameters
}

/** The refusal that names each fault: the parameter, what was sent and what is allowed. */
export function badRequest(faults: readonly Fault[]): ApiError {
  const shown = faults.slice(0, SHOWN_FAULTS)
  const sentences = shown.map(describe)
  if (faults.length > shown.length) sentences.push(`${faults.length - shown.length} more faults`)
  return new ApiError(400, sentences.join('. '), { metadata: { parameters: shown } })
}

/** The fault of a value that is not allowed. */
export function invalid(parameter: ParameterName, sent: string, allowed: string): Fault {
  return { parameter, problem: 'invalid', sent: shorten(sent), allowed }
}

function readParameter(name: string, values: readonly string[]): { value: unknown } | { fault: Fault } {
  const sent = shorten(values.join(', '))
  if (!isParameterName(name)) {
    const allowed = `the parameters ${Object.keys(PARAMETERS).join(', ')}`
    return { fault: { parameter: shorten(name), problem: 'unknown', sent, allowed } }
  }
  const { schema, allowed }: Parameter = PARAMETERS[name]
  if (values.length > 1) {
    return { fault: { parameter: name, problem: 'repeated', sent, allowed: `${allowed}, given once` } }
  }
  if (sent === '') return { fault: { parameter: name, problem: 'empty', sent, allowed } }
  const parsed = schema.safeParse(values[0])
  return parsed.success ? { value: parsed.data } : { fault: invalid(name, sent, allowed) }
}

function isParameterName(name: string): name is ParameterName {
  return Object.hasOwn(PARAMETERS, name)
}

function contradictions({ category, subcategory, start_date, end_date }: Parameters): Fault[] {
  const faults: Fault[] = []
  if (category !== undefined && subcategory !== undefined) {
    const inside = subcategoriesOf(category)
    if (!inside.includes(subcategory)) {
      const allowed = `with category ${category} one of ${inside.join(', ')}`
      faults.push(invalid('subcategory', subcategory, allowed))
    }
  }
  if (start_date !== undefined && end_date !== undefined && start_date > end_date) {
    faults.push(invalid('start_date', start_date, `a date not after end_date, ${end_date}`))
  }
  return faults
}

const PROBLEMS: Readonly<Record<Fault['problem'], string>> = {
  unknown: 'is unknown',
  repeated: 'is given more than once',
  empty: 'is empty',
  invalid: 'is not valid',
}

function describe({ parameter, problem, sent, allowed }: Fault): string {
  return `Parameter "${parameter}" ${PROBLEMS[problem]}: sent "${sent}", allowed: ${allowed}`
}
