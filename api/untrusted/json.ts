/** Untrusted JSON: members may have any type. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Whether this is a JSON object: no array and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The parsed text; undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The object without null members, for strict clients that accept only absence. */
export function withoutNulls(object: JsonObject): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const key in object) {
    const value = object[key]
    if (value !== null) kept[key] = value
  }
  return kept
}

/** The objects in an array; empty for anything else. */
export function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}
