/** Tokens as a provider counted them. */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../../untrusted/json.ts'

/** The usage of a reply; what the provider told beyond the totals is kept in `told`. */
export interface Usage {
  readonly promptTokens: number
  readonly completionTokens: number
  /** Parts of the two; null where the provider told none. */
  readonly reasoningTokens: number | null
  readonly cachedTokens: number | null
  readonly told: JsonObject
}

/** The member of a reply, or of a chunk of one, that tells usage; undefined where none does. */
export function usageIn(reply: JsonObject): JsonObject | undefined {
  const { usage, x_groq: groq } = reply
  if (isObject(usage)) return usage
  if (Array.isArray(usage)) return objectsIn(usage)[0]
  if (isObject(groq) && isObject(groq['usage'])) return groq['usage']
  const choices: unknown = reply['choices']
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined
  return isObject(first) && isObject(first['usage']) ? first['usage'] : undefined
}

/** What two usages of one stream tell together: the later one counts, but a zero or null says nothing. */
export function laterUsage(
  earlier: JsonObject | undefined,
  later: JsonObject | undefined,
): JsonObject | undefined {
  if (earlier === undefined || later === undefined) return later ?? earlier
  const both: Record<string, unknown> = { ...earlier }
  for (const key in later) {
    const value = later[key]
    if (value !== null && (tokens(value) !== 0 || tokens(both[key]) === undefined)) both[key] = value
  }
  return both
}

/** The tokens that a provider told; undefined when it told none that are whole. Never a guess. */
export function readUsage(told: JsonObject | undefined): Usage | undefined {
  if (told === undefined) return undefined
  const total = tokens(told['total_tokens'])
  const prompt = firstOf(told, 'prompt_tokens', 'input_tokens')
  const completion = firstOf(told, 'completion_tokens', 'output_tokens')
  const promptTokens = prompt ?? difference(total, completion)
  const toldCompletion = completion ?? difference(total, prompt)
  if (promptTokens === undefined || toldCompletion === undefined) return undefined
  const reasoningTokens = reasoningIn(told)
  // Some leave what was thought out of the completion, and count it in the total alone (xAI).
  const beyond = difference(total, promptTokens + toldCompletion)
  const isThought = beyond !== undefined && beyond > 0 && beyond === reasoningTokens
  return {
    promptTokens,
    completionTokens: isThought ? toldCompletion + beyond : toldCompletion,
    reasoningTokens: reasoningTokens ?? null,
    cachedTokens: cachedIn(told) ?? null,
    told,
  }
}

/** The usage as clients get it: always whole, zeros where the provider told none (CONTRACT 6). */
export function usageReply(usage: Usage | undefined): JsonObject {
  if (usage === undefined) return { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
  const { promptTokens, completionTokens, told } = usage
  const reply = withoutNulls(told)
  // Strict clients take an absent count of a detail, not a null.
  for (const key in reply) if (isObject(reply[key])) reply[key] = withoutNulls(reply[key])
  reply['prompt_tokens'] = promptTokens
  reply['completion_tokens'] = completionTokens
  reply['total_tokens'] = Math.max(tokens(told['total_tokens']) ?? 0, promptTokens + completionTokens)
  return reply
}

function reasoningIn(told: JsonObject): number | undefined {
  return (
    detail(told, 'completion_tokens_details', 'reasoning_tokens') ??
    detail(told, 'output_tokens_details', 'reasoning_tokens') ??
    firstOf(told, 'reasoning_tokens')
  )
}

function cachedIn(told: JsonObject): number | undefined {
  return (
    detail(told, 'prompt_tokens_details', 'cached_tokens') ??
    detail(told, 'input_tokens_details', 'cached_tokens') ??
    // Moonshot, DeepSeek, Anthropic.
    firstOf(told, 'cached_tokens', 'prompt_cache_hit_tokens', 'cache_read_input_tokens')
  )
}

function detail(told: JsonObject, group: string, key: string): number | undefined {
  const details = told[group]
  return isObject(details) ? tokens(details[key]) : undefined
}

function firstOf(told: JsonObject, ...keys: readonly string[]): number | undefined {
  for (const key of keys) {
    const count = tokens(told[key])
    if (count !== undefined) return count
  }
  return undefined
}

function difference(whole: number | undefined, part: number | undefined): number | undefined {
  return whole === undefined || part === undefined || whole < part ? undefined : whole - part
}

/** Some count in text, and some, who estimate, in fractions. */
function tokens(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : value
  if (typeof count !== 'number' || !(count >= 0)) return undefined
  const whole = Math.round(count)
  return Number.isSafeInteger(whole) ? whole : undefined
}
