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

function schemaOf({ schema, integer, most, default: fallback }: Parameter) {
  if (most !== undefined) return { type: 'array', items: { type: 'integer' }, minItems: 1, maxItems: most }
  const made = integer === undefined ? jsonSchema(schema, 'input') : { type: 'integer', ...integer }
  return fallback === undefined ? made : { ...made, default: fallback }
}
