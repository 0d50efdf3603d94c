/** JSON Schema from zod schemas, in the form that generators of typed clients need. */
import { z } from 'zod'

type Override = NonNullable<z.core.ToJSONSchemaParams['override']>

/** Formats that make the pattern redundant. */
const SELF_DESCRIBING = new Set(['date', 'date-time', 'uuid', 'uri'])

/** Adapts one schema of OpenAPI 3.1. */
export const adaptSchema: Override = ({ zodSchema, jsonSchema: made }) => {
  // A bigint is an integer in JSON.
  if (zodSchema instanceof z.ZodBigInt) made.type = 'integer'
  // Generators of typed languages take 32 bits otherwise, and lose the rest without an error.
  if (made.type === 'integer') made.format = 'int64'
  // A type with null alone has no name in typed languages.
  if (made.type === 'null') Object.assign(made, { type: ['string', 'null'] })
  if (zodSchema instanceof z.ZodNullable) allowNull(made)
  // A text or something else has no type in typed languages: it is described as any value.
  if (made.anyOf?.some(({ type }) => type !== 'object') === true) delete made.anyOf
  if (zodSchema instanceof z.ZodStringFormat && SELF_DESCRIBING.has(made.format ?? '')) delete made.pattern
}

/** Adds `null` to the types: client generators handle that better than a union of two schemas. */
function allowNull(made: z.core.JSONSchema.BaseSchema): void {
  const [schema, ...others] = (made.anyOf ?? []).filter(({ type }) => type !== 'null')
  if (schema?.type === undefined || others.length > 0) return
  delete made.anyOf
  const { type } = schema
  Object.assign(made, schema, { type: [type, 'null'] })
  if (schema.enum !== undefined) made.enum = [...schema.enum, null]
}

/** The schema of requests, for the `meta` of a schema that zod cannot describe itself. */
export function jsonSchema(schema: z.ZodType): Readonly<Record<string, unknown>> {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: adaptSchema,
  })
  return rest
}
