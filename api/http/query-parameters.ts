/** Reads the query parameters of an operation by a table, strictly; reports all faults at once. */
import { z } from 'zod'
import { shorten } from '../untrusted/json.ts'
import { ApiError } from './errors.ts'

/** One parameter of an operation; its schema has the description for the reference. */
type Parameter = {
  readonly schema: z.ZodType
  /** The allowed values, for a message after "allowed: ". */
  readonly allowed: string
  /** Whether it is a list of at least one value, repeated or separated by commas; otherwise one, which may be left out. */
  readonly isList?: true
  /** The constant default value, if there is one. */
  readonly default?: string | number
}

export type ParameterTable = Readonly<Record<string, Parameter>>

/** The values of a table's parameters, without the ones that were not sent. */
export type Values<Table extends ParameterTable> = {
  readonly [Name in keyof Table]?: z.infer<Table[Name]['schema']>
}

/** The sent parameters by name, without defaults: `Values` of a table. */
export type Given = Readonly<Record<string, unknown>>

/** One fault of one parameter, for the metadata of the 400. */
type Fault = {
  readonly parameter: string
  readonly problem: 'unknown' | 'repeated' | 'empty' | 'invalid' | 'missing'
  /** The value as sent, shortened; all values of a repeated parameter. */
  readonly sent: string
  readonly allowed: string
}

const FAULTS_SHOWN = 20

const integerText = z.string().regex(/^\d+$/).transform(Number)

/** A parameter for a whole number from `minimum` to `maximum`. */
export function wholeNumber(minimum: number, maximum: number, fallback: number, description: string) {
  const schema = integerText.pipe(z.number().min(minimum).max(maximum)).describe(description)
  return {
    schema: asInteger(schema, { minimum, maximum, default: fallback }),
    allowed: `an integer from ${minimum} to ${maximum}`,
    default: fallback,
  }
}

/** A schema that reads digits, described as an integer for the reference. */
export function asInteger<Schema extends z.ZodType>(
  schema: Schema,
  keywords: { readonly minimum: number; readonly maximum?: number; readonly default?: number },
): Schema {
  const override = ({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }) => {
    delete jsonSchema.pattern
    Object.assign(jsonSchema, { type: 'integer', format: 'int64', ...keywords })
  }
  return schema.meta({ override })
}

/** A parameter for one of these words. */
export function oneOf<const Words extends readonly string[]>(words: Words, description = '') {
  return { schema: z.enum(words).describe(description), allowed: `one of ${words.join(', ')}` }
}

/**
 * Reads the query string (the part after `?`, still encoded).
 * @throws ApiError 400 that lists every fault.
 */
export function readParameters(table: ParameterTable, query: string): Given {
  // URLSearchParams drops one leading question mark: this one.
  const sent = Map.groupBy(new URLSearchParams(`?${query}`), ([name]) => name)
  const faults: Fault[] = []
  const values: Record<string, unknown> = {}
  for (const [name, pairs] of sent) {
    const texts = pairs.map(([, text]) => text)
    const found = readParameter(table, name, texts)
    if ('problem' in found) faults.push(found)
    else values[name] = found.value
  }
  for (const [parameter, { allowed, isList }] of Object.entries(table)) {
    if (isList && !sent.has(parameter)) faults.push({ parameter, problem: 'missing', sent: '', allowed })
  }
  if (faults.length > 0) throw badRequest(faults)
  return values
}

function readParameter(table: ParameterTable, name: string, texts: string[]): { value: unknown } | Fault {
  const sent = shorten(texts.join(', '))
  const found = Object.hasOwn(table, name) ? table[name] : undefined
  if (found === undefined) {
    const names = Object.keys(table)
    const allowed = names.length === 0 ? 'no parameters' : `the parameters ${names.join(', ')}`
    return { parameter: shorten(name), problem: 'unknown', sent, allowed }
  }
  const { schema, allowed, isList } = found
  const fault = { parameter: name, sent, allowed }
  if (!isList && texts.length > 1) return { ...fault, problem: 'repeated', allowed: `${allowed}, given once` }
  const each = isList ? texts.flatMap((text) => text.split(',')) : texts
  if (each.includes('')) return { ...fault, problem: 'empty' }
  const parsed = schema.safeParse(isList ? each : each[0])
  return parsed.success ? { value: parsed.data } : { ...fault, problem: 'invalid' }
}

/** The 400 for an invalid value: the parameter, its sent value and its allowed values. */
export function invalidParameter(parameter: string, sent: string, allowed: string): ApiError {
  return badRequest([{ parameter, problem: 'invalid', sent: shorten(sent), allowed }])
}

function badRequest(faults: readonly Fault[]): ApiError {
  const shown = faults.slice(0, FAULTS_SHOWN)
  const sentences = shown.map(({ parameter, problem, sent, allowed }) => {
    return `Parameter "${parameter}" is ${problem}: sent "${sent}", allowed: ${allowed}`
  })
  if (faults.length > shown.length) sentences.push(`${faults.length - shown.length} more faults`)
  return new ApiError(400, sentences.join('. '), { metadata: { parameters: shown } })
}
