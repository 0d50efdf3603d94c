/** Tokens as a provider counted them. */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../untrusted/json.ts'

/** Names of the counts: OpenAI's, then those of Anthropic, Moonshot, DeepSeek and Gemini. */
const NAMES = {
  prompt: ['prompt_tokens', 'promptTokenCount'],
  completion: ['completion_tokens', 'output_tokens', 'candidatesTokenCount'],
  total: ['total_tokens', 'totalTokenCount'],
  reasoning: ['reasoning_tokens', 'thoughtsTokenCount'],
  cached:
    'cached_tokens num_cached_tokens prompt_cache_hit_tokens cache_read_input_tokens cachedContentTokenCount'.split(
      ' ',
    ),
} as const

/** The columns of a record if the provider reported no usage. */
export const NO_USAGE = {
  prompt_tokens: null,
  completion_tokens: null,
  reasoning_tokens: null,
  cached_tokens: null,
}

/**
 * The usage in a reply or chunk; undefined if there is none.
 * - `usage`, also in a list; `usageMetadata` (Gemini); inside of `x_groq` (Groq) or of a choice (Moonshot).
 * - Without usage, the counts among the times of llama.cpp, which count cached tokens apart.
 */
export function usageIn(reply: JsonObject): JsonObject | undefined {
  for (const holder of objectsIn([reply, reply['x_groq'], ...objectsIn(reply['choices'])])) {
    const reported = holder['usage'] ?? holder['usageMetadata']
    const usage: unknown = Array.isArray(reported) ? reported[0] : reported
    if (isObject(usage)) return usage
  }
  const { timings } = reply
  if (!isObject(timings)) return undefined
  const { prompt_n: read, cache_n: cached, predicted_n: completion } = timings
  const prompt = tokens(read)
  return {
    prompt_tokens: prompt === undefined ? undefined : prompt + (tokens(cached) ?? 0),
    completion_tokens: completion,
    cached_tokens: cached,
  }
}

/** Merges two usages of one stream: the later one counts, but a zero or null does not. */
export function laterUsage(earlier: JsonObject, later: JsonObject): JsonObject {
  const both: Record<string, unknown> = { ...earlier }
  for (const key in later) {
    const value = later[key]
    if (value !== null && (tokens(value) !== 0 || tokens(both[key]) === undefined)) both[key] = value
  }
  return both
}

/**
 * The tokens that a provider reported; undefined if it reported no whole numbers. Never an estimate. Reasoning and what
 * was cached are parts of the two counts, null if it reported none.
 * - A missing count is the total without the other one.
 * - `input_tokens` without a total (Anthropic) lack what the cache read and wrote.
 * - What the total holds beyond the two counts was thought (xAI, Gemini), and is part of the completion.
 */
export function readUsage(reported: JsonObject) {
  const total = count(reported, 'total')
  const completion = count(reported, 'completion')
  const prompt = count(reported, 'prompt') ?? inputIn(reported, total) ?? difference(total, completion)
  const rest = difference(total, prompt)
  if (prompt === undefined || (completion ?? rest) === undefined) return undefined
  return {
    prompt_tokens: prompt,
    completion_tokens: Math.max(completion ?? 0, rest ?? 0),
    reasoning_tokens: partIn(reported, 'reasoning'),
    cached_tokens: partIn(reported, 'cached'),
  }
}

/** `usage` for clients, with all that was `reported`; zeros if the provider reported none (CONTRACT 6). */
export function usageReply(reported: JsonObject, usage: ReturnType<typeof readUsage>): JsonObject {
  if (usage === undefined) return { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
  const { prompt_tokens, completion_tokens } = usage
  const reply = withoutNulls(reported)
  // Strict clients accept an absent detail, not a null.
  for (const key in reply) if (isObject(reply[key])) reply[key] = withoutNulls(reply[key])
  const total = Math.max(count(reported, 'total') ?? 0, prompt_tokens + completion_tokens)
  return { ...reply, prompt_tokens, completion_tokens, total_tokens: total }
}

function inputIn(reported: JsonObject, total: number | undefined): number | undefined {
  const input = tokens(reported['input_tokens'])
  if (input === undefined || total !== undefined) return input
  const { cache_read_input_tokens: read, cache_creation_input_tokens: written } = reported
  return input + (tokens(read) ?? 0) + (tokens(written) ?? 0)
}

/** A part of a count, among the details of any name or beside them. */
function partIn(reported: JsonObject, name: keyof typeof NAMES): number | null {
  const counts = objectsIn([...Object.values(reported), reported]).map((group) => count(group, name))
  return counts.find((number) => number !== undefined) ?? null
}

function count(reported: JsonObject, name: keyof typeof NAMES): number | undefined {
  return NAMES[name].map((key) => tokens(reported[key])).find((number) => number !== undefined)
}

function difference(whole: number | undefined, part: number | undefined): number | undefined {
  return whole === undefined || part === undefined || whole < part ? undefined : whole - part
}

/** Some providers send text, and some that estimate send fractions. */
function tokens(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : value
  if (typeof number !== 'number' || !(number >= 0)) return undefined
  const whole = Math.round(number)
  return Number.isSafeInteger(whole) ? whole : undefined
}
