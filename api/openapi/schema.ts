/** Converts zod schemas to JSON Schema in the dialect of OpenAPI 3.1. */
import { z } from 'zod'

export type JsonSchema = Readonly<Record<string, unknown>>

/** Formats that make the pattern redundant. */
const SELF_DESCRIBING = new Set(['date', 'date-time', 'uuid', 'uri'])

/**
 * The schema of requests (`input`) or of replies (`output`, with text converted to numbers). A bigint is an integer in
 * JSON.
 */
export function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema: made }) => {
      if (zodSchema instanceof z.ZodBigInt) made.type = 'integer'
      // Generators of typed languages take 32 bits otherwise, and lose the rest without an error.
      if (made.type === 'integer') made.format = 'int64'
      // A type with null alone has no name in typed languages.
      if (made.type === 'null') Object.assign(made, { type: ['string', 'null'] })
      if (zodSchema instanceof z.ZodNullable) allowNull(made)
      if (made.format !== undefined && SELF_DESCRIBING.has(made.format)) delete made.pattern
    },
  })
  return rest
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
