/**
 * Finds values in JSON rows by paths such as `metadata.user_api_key_alias`. Keys may contain points; capitals count only if
 * two keys differ in nothing else. A text that holds JSON is searched like an object, and so is a list of OpenTelemetry
 * attributes, `[{ "key": …, "value": { "stringValue": … } }]`.
 */
import { isRecord, parseExactly } from '../formats/json.ts'

/** The value at a path as text: null if missing, null or empty; JSON for an object or a list. */
export function readPath(row: unknown, path: string): string | null {
  return textOf(find(row, path.split('.')))
}

function find(value: unknown, keys: readonly string[]): unknown {
  if (keys.length === 0) return value
  const children = childrenOf(value)
  if (children === undefined) return undefined
  // The longest key first, for attributes such as gen_ai.usage.input_tokens.
  for (let length = keys.length; length > 0; length -= 1) {
    const child = childNamed(children, keys.slice(0, length).join('.'))
    const found = child === undefined ? undefined : find(child, keys.slice(length))
    if (found !== undefined) return found
  }
  return undefined
}

function childNamed(children: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(children, name)) return children[name]
  const lower = name.toLowerCase()
  const alike = Object.keys(children).find((key) => key.trim().toLowerCase() === lower)
  return alike === undefined ? undefined : children[alike]
}

function childrenOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  const entered = typeof value === 'string' ? parseNested(value) : value
  if (Array.isArray(entered)) return attributesOf(entered) ?? Object.fromEntries(entered.entries())
  return isRecord(entered) ? entered : undefined
}

/** Parses a text that holds JSON, also nested JSON text, or JSON with doubled quotes as in CSV. */
function parseNested(text: string): unknown {
  if (!/^\s*["[{]/.test(text)) return undefined
  for (const form of [text, text.replaceAll('""', '"')]) {
    const value = tryToParse(form)
    if (value !== undefined) return typeof value === 'string' ? parseNested(value) : value
  }
  return undefined
}

function tryToParse(text: string): unknown {
  try {
    return parseExactly(text)
  } catch {
    return undefined
  }
}

function attributesOf(list: readonly unknown[]): Readonly<Record<string, unknown>> | undefined {
  const pairs = list.flatMap((item) =>
    isRecord(item) && typeof item['key'] === 'string'
      ? [[item['key'], attributeValue(item['value'])] as const]
      : [],
  )
  return list.length > 0 && pairs.length === list.length ? Object.fromEntries(pairs) : undefined
}

/** The one value in an OpenTelemetry AnyValue. */
function attributeValue(value: unknown): unknown {
  const [only] = isRecord(value) ? Object.values(value) : [value]
  return only
}

function textOf(value: unknown): string | null {
  if (value === undefined || value === null || value === '') return null
  return typeof value === 'string' ? value : JSON.stringify(value)
}
