/**
 * Maps rows of an export to rows of usage. Values are found by paths such as `metadata.user_api_key_alias`. Keys may contain
 * points; capitals count only if two keys differ in nothing else. A text that holds JSON is searched like an object, and so is
 * a list of OpenTelemetry attributes, `[{ "key": …, "value": { "stringValue": … } }]`.
 */
import { isRecord, parseExactly } from '../formats/json.ts'
import {
  type ColumnSource,
  type Condition,
  type Read,
  type TimeUnit,
  type UsageMap,
  type UsageRow,
} from './usage-map.ts'

/** Decimal digits of a unit, in nanoseconds. */
const DIGITS: Record<TimeUnit, number> = { s: 9, ms: 6, us: 3, ns: 0 }

const WHOLE_OR_DECIMAL = /^(\d{1,20})(?:\.(\d+))?$/

/** The usage of an exported row; undefined if the row is not a generation. */
export function mapRow(row: unknown, map: UsageMap): UsageRow | undefined {
  const read: Read = (path) => textOf(find(row, path.split('.')))
  const isAny = (conditions: readonly Condition[] = []) => conditions.some((one) => holds(one, read))
  if (isAny(map.skipped)) return undefined
  const usage: UsageRow = Object.fromEntries(
    Object.entries(map.columns).map(([field, source]) => [field, valueOf(source, read)]),
  )
  const timed = map.unit === undefined ? usage : { ...usage, ts: timeOf(usage.ts, map.unit) }
  return isAny(map.failed) ? failureOf(timed) : timed
}

/** A request that no provider served counts 0 requests. Tokens count as the file states them, without their parts. */
function failureOf(usage: UsageRow): UsageRow {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage
  const hasTokens = (prompt ?? completion ?? null) !== null
  const tokens = hasTokens ? { prompt_tokens: prompt ?? '0', completion_tokens: completion ?? '0' } : {}
  return { ...usage, requests: '0', reasoning_tokens: null, cached_tokens: null, ...tokens }
}

function valueOf(source: ColumnSource | undefined, read: Read): string | null {
  if (source === undefined) return null
  if (typeof source === 'function') return source(read)
  for (const path of [source].flat()) {
    const value = read(path) ?? sumOf(path.split('+'), read)
    if (value !== null) return value
  }
  return null
}

/** The sum of counts at several paths, of which some may be missing; null if all are. */
function sumOf(paths: readonly string[], read: Read): string | null {
  const values = paths.length === 1 ? [] : paths.flatMap((path) => read(path.trim()) ?? [])
  if (values.length === 0) return null
  const counts = values.map(Number)
  // What is no count stays as it is, so that the row is rejected.
  return counts.every((count) => Number.isSafeInteger(count) && count >= 0)
    ? String(counts.reduce((sum, count) => sum + count, 0))
    : values.join('+')
}

/** A missing value is neither one of the texts nor another one. */
function holds(condition: Condition, read: Read): boolean {
  if (typeof condition === 'function') return condition(read)
  const value = read(condition.path)?.trim().toLowerCase()
  if (value === undefined) return false
  const texts = 'is' in condition ? condition.is : condition.not
  // As pandas writes an integer of a column with a null.
  const isAmong = [value, value.replace(/^(\d+)\.0$/, '$1')].some((text) => texts.includes(text))
  return 'is' in condition ? isAmong : !isAmong
}

/** A number of units since 1970 as ISO 8601, up to 10^21 nanoseconds; any other text unchanged. */
function timeOf(text: string | null | undefined, unit: TimeUnit): string | null {
  const [, whole, fraction = ''] = WHOLE_OR_DECIMAL.exec(text ?? '') ?? []
  const digits = DIGITS[unit]
  if (whole === undefined || whole.length + digits > 21) return text ?? null
  return new Temporal.Instant(BigInt(whole + fraction.slice(0, digits).padEnd(digits, '0'))).toString()
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
    try {
      const value = parseExactly(form)
      return typeof value === 'string' ? parseNested(value) : value
    } catch {
      // Any other text has no children.
    }
  }
  return undefined
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

/** A value as text: null if missing, null or empty; JSON for an object or a list. */
function textOf(value: unknown): string | null {
  if (value === undefined || value === null || value === '') return null
  return typeof value === 'string' ? value : JSON.stringify(value)
}
