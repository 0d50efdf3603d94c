/** JSON Schema from the zod schemas that validate, in the dialect of OpenAPI 3.1. */
import { z } from 'zod'

export type JsonSchema = Readonly<Record<string, unknown>>

/** Formats that say all their pattern says. */
const SPOKEN_FOR = new Set(['date', 'date-time', 'uuid', 'uri'])

/**
 * The schema of what is sent (`input`) or of what comes back (`output`, where text was turned into numbers).
 * A bigint is an integer in JSON.
 */
export function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema: made }) => {
      if (zodSchema instanceof z.ZodBigInt) made.type = 'integer'
      if (zodSchema instanceof z.ZodNullable) allowNull(made)
      if (made.format !== undefined && SPOKEN_FOR.has(made.format)) delete made.pattern
    },
  })
  return rest
}

/** Says `null` among the types, which generators of clients read better than a choice of two schemas. */
function allowNull(made: z.core.JSONSchema.BaseSchema): void {
  const [schema, ...others] = (made.anyOf ?? []).filter(({ type }) => type !== 'null')
  if (schema?.type === undefined || others.length > 0) return
  delete made.anyOf
  const { type } = schema
  Object.assign(made, schema, { type: [type, 'null'] })
  if (schema.enum !== undefined) made.enum = [...schema.enum, null]
}
