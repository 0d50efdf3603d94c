/** Query parameters of any operation, read by a table: strictly, and all faults told at once. */
import { z } from 'zod'
import { ApiError } from '../errors.ts'
import { shorten } from '../../untrusted/shorten.ts'

/** One parameter of an operation. */
export interface Parameter {
  readonly schema: z.ZodType
  /** What is allowed, in words that follow "allowed: ". */
  readonly allowed: string
  /** How many times it may be given; its schema is that of the list of values then. Once, where nothing is said. */
  readonly most?: number
  /** Whether no request can do without it. */
  readonly required?: boolean
  /** What a request without it means, where that is always the same. */
  readonly default?: string | number
  /** The bounds of a whole number, whose text is read as one. */
  readonly integer?: { readonly minimum: number; readonly maximum: number }
}

/** The parameters of an operation, by name. */
export type ParameterTable = Readonly<Record<string, Parameter>>

/** The values of a table's parameters; one that was not sent is missing. */
export type Values<Table extends ParameterTable> = {
  readonly [Name in keyof Table]?: z.infer<Table[Name]['schema']>
}

/** One thing wrong with one parameter, as told in the metadata of the 400. */
export interface Fault {
  readonly parameter: string
  readonly problem: 'unknown' | 'repeated' | 'empty' | 'invalid' | 'missing'
  /** The value as sent, shortened; of a repeated parameter all of them. */
  readonly sent: string
  readonly allowed: string
}

const SHOWN_FAULTS = 20

const integerText = z.string().regex(/^\d+$/).transform(Number)

/** A parameter that is a whole number from `minimum` to `maximum`. */
export function wholeNumber(minimum: number, maximum: number, fallback: number) {
  return {
    schema: integerText.pipe(z.number().min(minimum).max(maximum)),
    allowed: `an integer from ${minimum} to ${maximum}`,
    default: fallback,
    integer: { minimum, maximum },
  }
}

/** A parameter that is one of these words. */
export function oneOf<const Words extends readonly string[]>(words: Words) {
  return { schema: z.enum(words), allowed: `one of ${words.join(', ')}` }
}

/** Reads the query string (what follows the `?`, still encoded). The values are those of `Values` of the table. */
export function readParameters(
  table: ParameterTable,
  query: string,
): { readonly values: Readonly<Record<string, unknown>>; readonly faults: Fault[] } {
  const faults: Fault[] = []
  const values: Record<string, unknown> = {}
  const sent = groupByName(query)
  for (const [name, texts] of sent) {
    const outcome = readParameter(table, name, texts)
    if ('fault' in outcome) faults.push(outcome.fault)
    else values[name] = outcome.value
  }
  for (const [name, { allowed, required }] of Object.entries(table)) {
    if (required === true && !sent.has(name))
      faults.push({ parameter: name, problem: 'missing', sent: '', allowed })
  }
  return { values, faults }
}

/** The values of each name in their order; URLSearchParams would search all parameters for each name. */
function groupByName(query: string): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>()
  // A question mark at its beginning would be dropped; this one is.
  for (const [name, value] of new URLSearchParams(`?${query}`)) {
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [value])
    else group.push(value)
  }
  return groups
}

/** The refusal that names each fault: the parameter, what was sent and what is allowed. */
export function badRequest(faults: readonly Fault[]): ApiError {
  const shown = faults.slice(0, SHOWN_FAULTS)
  const sentences = shown.map(describe)
  if (faults.length > shown.length) sentences.push(`${faults.length - shown.length} more faults`)
  return new ApiError(400, sentences.join('. '), { metadata: { parameters: shown } })
}

/** The fault of a value that is not allowed. */
export function invalid(parameter: string, sent: string, allowed: string): Fault {
  return { parameter, problem: 'invalid', sent: shorten(sent), allowed }
}

function readParameter(
  table: ParameterTable,
  name: string,
  values: readonly string[],
): { value: unknown } | { fault: Fault } {
  const sent = shorten(values.join(', '))
  const parameter = Object.hasOwn(table, name) ? table[name] : undefined
  if (parameter === undefined) {
    const allowed = `the parameters ${Object.keys(table).join(', ')}`
    return { fault: { parameter: shorten(name), problem: 'unknown', sent, allowed } }
  }
  const { schema, allowed, most } = parameter
  if (most === undefined && values.length > 1) {
    return { fault: { parameter: name, problem: 'repeated', sent, allowed: `${allowed}, given once` } }
  }
  if (values.includes('')) return { fault: { parameter: name, problem: 'empty', sent, allowed } }
  const parsed = schema.safeParse(most === undefined ? values[0] : values)
  return parsed.success ? { value: parsed.data } : { fault: invalid(name, sent, allowed) }
}

const PROBLEMS: Readonly<Record<Fault['problem'], string>> = {
  unknown: 'is unknown',
  repeated: 'is given more than once',
  empty: 'is empty',
  invalid: 'is not valid',
  missing: 'is missing',
}

function describe({ parameter, problem, sent, allowed }: Fault): string {
  return `Parameter "${parameter}" ${PROBLEMS[problem]}: sent "${sent}", allowed: ${allowed}`
}
