/** JSON of strangers: objects whose members may be anything. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Whether this is a JSON object, no array and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The parsed text; undefined when it is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The object without its null members, which strict clients refuse where a member may only be absent. */
export function withoutNulls(object: JsonObject): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const key in object) {
    const value = object[key]
    if (value !== null) kept[key] = value
  }
  return kept
}

/** The objects in an array of strangers; empty when it is none. */
export function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** Whether lists and objects stand in one another more than `levels` deep. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  if (Array.isArray(value)) return levels === 0 || value.some((one) => isDeeperThan(levels - 1, one))
  if (!isObject(value)) return false
  if (levels === 0) return true
  // To list the values of an object of a million members takes longer than to parse it did.
  for (const key in value) {
    if (isDeeperThan(levels - 1, value[key])) return true
  }
  return false
}
