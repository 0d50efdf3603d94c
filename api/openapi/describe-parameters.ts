import type { Parameter, ParameterTable } from '../http/protocol/query-parameters.ts'
import type { ParameterDescription } from './operation.ts'
import { jsonSchema } from './schema.ts'

/** Describes the query parameters of a table, in the order of their `meanings`. */
export function describeParameters<Table extends ParameterTable>(
  table: Table,
  meanings: Readonly<Record<keyof Table & string, string>>,
): ParameterDescription[] {
  return Object.entries<string>(meanings).flatMap(([name, description]) => {
    const parameter = table[name]
    return parameter === undefined
      ? []
      : {
          name,
          in: 'query' as const,
          description,
          required: parameter.required === true,
          schema: schemaOf(parameter),
        }
  })
}

function schemaOf({ schema, integer, pattern, most, default: fallback }: Parameter) {
  const int64 = { type: 'integer', format: 'int64' }
  if (most !== undefined)
    return { type: 'array', items: { ...int64, minimum: 0 }, minItems: 1, maxItems: most }
  const made = integer === undefined ? jsonSchema(schema, 'input') : { ...int64, ...integer }
  return {
    ...made,
    ...(pattern !== undefined && { pattern }),
    ...(fallback !== undefined && { default: fallback }),
  }
}
