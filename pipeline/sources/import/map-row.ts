/** Maps rows of an export to rows of usage. */
import { readPath } from './read-path.ts'
import { USAGE_FIELDS } from './usage-fields.ts'
import type { UsageField, UsageRow } from './usage-fields.ts'
import type { ColumnSource, Condition, Read, TimeUnit, UsageMap } from './usage-map.ts'

/** Units per second. */
const PER_SECOND: Record<TimeUnit, bigint> = {
  s: 1n,
  ms: 1000n,
  us: 1_000_000n,
  ns: 1_000_000_000n,
}

const WHOLE_OR_DECIMAL = /^(\d{1,20})(?:\.(\d+))?$/

/** The usage of an exported row; undefined if the row is not a generation. */
export function mapRow(row: unknown, map: UsageMap): UsageRow | undefined {
  const read: Read = (path) => readPath(row, path)
  if (holdsAny(map.skipped, read)) return undefined
  const usage = usageOf((field) => valueOf(map.columns[field], read))
  const timed = { ...usage, ts: map.unit === undefined ? (usage.ts ?? null) : timeOf(usage.ts, map.unit) }
  return holdsAny(map.failed, read) ? failureOf(timed) : timed
}

/** A request that no provider served counts 0 requests. Tokens count as the file states them, without their parts. */
function failureOf(usage: UsageRow): UsageRow {
  const { prompt_tokens: prompt = null, completion_tokens: completion = null } = usage
  const isKnown = prompt !== null || completion !== null
  return {
    ...usage,
    requests: '0',
    prompt_tokens: isKnown ? (prompt ?? '0') : null,
    completion_tokens: isKnown ? (completion ?? '0') : null,
    reasoning_tokens: null,
    cached_tokens: null,
  }
}

/** A row of usage with the result of `value` for each column. */
function usageOf(value: (field: UsageField) => string | null): UsageRow {
  const usage: Partial<Record<UsageField, string | null>> = {}
  for (const field of USAGE_FIELDS) usage[field] = value(field)
  return usage
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
  return counts.every(Number.isSafeInteger)
    ? String(counts.reduce((sum, count) => sum + count, 0))
    : values.join('+')
}

function holdsAny(conditions: readonly Condition[] | undefined, read: Read): boolean {
  return conditions?.some((condition) => holds(condition, read)) === true
}

/** A missing value is neither one of the texts nor another one. */
function holds(condition: Condition, read: Read): boolean {
  if ('missing' in condition) return condition.missing.every((path) => read(path) === null)
  const value = read(condition.path)?.trim().toLowerCase()
  if (value === undefined) return false
  if ('matches' in condition) return condition.matches.test(value)
  return 'is' in condition ? condition.is.includes(value) : !condition.not.includes(value)
}

/** A number of units since 1970 as ISO 8601, without trailing zeros; any other text unchanged. */
function timeOf(text: string | null | undefined, unit: TimeUnit): string | null {
  const [, whole, fraction = ''] = WHOLE_OR_DECIMAL.exec(text ?? '') ?? []
  if (whole === undefined) return text ?? null
  const perSecond = PER_SECOND[unit]
  const seconds = BigInt(whole) / perSecond
  const digits = String(perSecond).length - 1
  const below = `${String(BigInt(whole) % perSecond)
    .padStart(digits, '0')
    .slice(0, digits)}${fraction}`
  const time = new Date(Number(seconds) * 1000)
  if (Number.isNaN(time.getTime()) || time.getUTCFullYear() > 9999) return text ?? null
  return `${time.toISOString().slice(0, 19)}.${below.replace(/0+$/, '').padEnd(6, '0')}Z`
}
