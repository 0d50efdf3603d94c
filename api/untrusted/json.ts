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

export interface JsonSize {
  /** Depth of lists and objects. */
  readonly levels: number
  /** Number of values, including member names. */
  readonly values: number
}

const BYTE = { quote: 0x22, backslash: 0x5c, comma: 0x2c, colon: 0x3a } as const
const OPENING = new Set([0x5b, 0x7b])
const CLOSING = new Set([0x5d, 0x7d])

/** The bytes outside of strings that count. */
const COUNTS = Uint8Array.from({ length: 256 }, (_, byte) =>
  [BYTE.quote, BYTE.comma, BYTE.colon, ...OPENING, ...CLOSING].includes(byte) ? 1 : 0,
)

/** The size of the JSON in these bytes, valid or not; stops at `limit`. */
export function measureJson(bytes: Buffer, limit: JsonSize): JsonSize {
  let [level, levels, values] = [0, 0, 1]
  for (let at = 0; at < bytes.length && levels <= limit.levels && values <= limit.values; at += 1) {
    const byte = bytes[at] ?? 0
    if (COUNTS[byte] === 0) continue
    if (byte === BYTE.quote) at = endOfString(bytes, at)
    else if (CLOSING.has(byte)) level -= 1
    else values += 1
    if (OPENING.has(byte)) levels = Math.max(levels, (level += 1))
  }
  return { levels, values }
}

/** Where the string ends that begins at `start`. */
function endOfString(bytes: Buffer, start: number): number {
  let end = start + 1
  while (end < bytes.length && bytes[end] !== BYTE.quote) end += bytes[end] === BYTE.backslash ? 2 : 1
  return end
}
