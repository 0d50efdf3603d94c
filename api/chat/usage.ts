/** Tokens as a provider counted them. */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../untrusted/json.ts'

const names = (text: string): readonly string[] => text.split(' ')

// As OpenAI names them, then Anthropic, Bedrock and Gemini.
const PROMPT = names('prompt_tokens promptTokens promptTokenCount prompt_token_count')
const INPUT = names('input_tokens inputTokens')
const COMPLETION = names(
  'completion_tokens output_tokens completionTokens outputTokens candidatesTokenCount candidates_token_count',
)
const TOTAL = names('total_tokens totalTokens totalTokenCount total_token_count')
const REASONING = names('reasoning_tokens thoughtsTokenCount thoughts_token_count')
// Moonshot, DeepSeek, Anthropic, Gemini.
const CACHED = names(
  'cached_tokens prompt_cache_hit_tokens cache_read_input_tokens cachedContentTokenCount cached_content_token_count',
)

/** The usage of a reply; `reported` holds what the provider reported beyond the totals. */
export interface Usage {
  readonly promptTokens: number
  readonly completionTokens: number
  /** Parts of the two; null if the provider reported none. */
  readonly reasoningTokens: number | null
  readonly cachedTokens: number | null
  readonly reported: JsonObject
}

/** The member of a reply or chunk that holds its usage; undefined if none does. */
export function usageIn(reply: JsonObject): JsonObject | undefined {
  return (
    usageOf(reply) ??
    usageOf(reply['x_groq']) ??
    usageInChoices(reply['choices']) ??
    usageOf(reply['metadata']) ??
    usageOf(reply['meta']) ??
    countsIn(reply)
  )
}

function usageOf(holder: unknown): JsonObject | undefined {
  if (!isObject(holder)) return undefined
  const reported = holder['usage'] ?? holder['usageMetadata'] ?? holder['usage_metadata']
  const usage: unknown = Array.isArray(reported) ? reported[0] : reported
  if (!isObject(usage)) return undefined
  // Cohere lists billed tokens separately.
  return isObject(usage['tokens']) ? usage['tokens'] : usage
}

function usageInChoices(choices: unknown): JsonObject | undefined {
  for (const choice of objectsIn(choices)) {
    const usage = usageOf(choice) ?? usageOf(choice['delta'] ?? choice['message'])
    if (usage !== undefined) return usage
  }
  return undefined
}

/** Counts in the reply itself (Ollama) or among its times (llama.cpp, with cached tokens apart). */
function countsIn(reply: JsonObject): JsonObject | undefined {
  const { timings, prompt_eval_count: prompt, eval_count: completion } = reply
  if (prompt !== undefined || completion !== undefined)
    return { prompt_tokens: prompt, completion_tokens: completion }
  if (!isObject(timings)) return undefined
  const [read, cached] = [tokens(timings['prompt_n']), tokens(timings['cache_n'])]
  return {
    prompt_tokens: read === undefined ? undefined : read + (cached ?? 0),
    completion_tokens: timings['predicted_n'],
    cached_tokens: cached,
  }
}

/** Merges two usages of one stream: the later one counts, but a zero or null does not. */
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

/** The tokens that a provider reported; undefined if it reported no whole numbers. Never an estimate. */
export function readUsage(reported: JsonObject | undefined): Usage | undefined {
  if (reported === undefined) return undefined
  const total = firstOf(reported, ...TOTAL)
  const prompt = firstOf(reported, ...PROMPT) ?? promptBesideCache(reported, total)
  const completion = firstOf(reported, ...COMPLETION)
  const promptTokens = prompt ?? difference(total, completion)
  const reportedCompletion = completion ?? difference(total, prompt)
  if (promptTokens === undefined || reportedCompletion === undefined) return undefined
  const reasoningTokens = reasoningIn(reported)
  // Some providers (xAI) count reasoning in the total alone.
  const beyond = difference(total, promptTokens + reportedCompletion)
  const isThought = beyond !== undefined && beyond > 0 && beyond === reasoningTokens
  return {
    promptTokens,
    completionTokens: isThought ? reportedCompletion + beyond : reportedCompletion,
    reasoningTokens: reasoningTokens ?? null,
    cachedTokens: cachedIn(reported) ?? null,
    reported,
  }
}

/** Anthropic's `input_tokens` lacks what its cache read and wrote, and there is no total. */
function promptBesideCache(reported: JsonObject, total: number | undefined): number | undefined {
  const input = firstOf(reported, ...INPUT)
  if (input === undefined || total !== undefined) return input
  const [read, written] = [reported['cache_read_input_tokens'], reported['cache_creation_input_tokens']].map(
    tokens,
  )
  return input + (read ?? 0) + (written ?? 0)
}

/** The usage for clients: always complete, zeros if the provider reported none (CONTRACT 6). */
export function usageReply(usage: Usage | undefined): JsonObject {
  if (usage === undefined) return { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
  const { promptTokens, completionTokens, reported } = usage
  const reply = withoutNulls(reported)
  // Strict clients accept an absent detail, not a null.
  for (const key in reply) if (isObject(reply[key])) reply[key] = withoutNulls(reply[key])
  reply['prompt_tokens'] = promptTokens
  reply['completion_tokens'] = completionTokens
  reply['total_tokens'] = Math.max(firstOf(reported, ...TOTAL) ?? 0, promptTokens + completionTokens)
  return reply
}

function reasoningIn(reported: JsonObject): number | undefined {
  return (
    detail(reported, 'completion_tokens_details', 'reasoning_tokens') ??
    detail(reported, 'output_tokens_details', 'reasoning_tokens') ??
    firstOf(reported, ...REASONING)
  )
}

function cachedIn(reported: JsonObject): number | undefined {
  return (
    detail(reported, 'prompt_tokens_details', 'cached_tokens') ??
    detail(reported, 'input_tokens_details', 'cached_tokens') ??
    firstOf(reported, ...CACHED)
  )
}

function detail(reported: JsonObject, group: string, key: string): number | undefined {
  const details = reported[group]
  return isObject(details) ? tokens(details[key]) : undefined
}

function firstOf(reported: JsonObject, ...keys: readonly string[]): number | undefined {
  for (const key of keys) {
    const count = tokens(reported[key])
    if (count !== undefined) return count
  }
  return undefined
}

function difference(whole: number | undefined, part: number | undefined): number | undefined {
  return whole === undefined || part === undefined || whole < part ? undefined : whole - part
}

/** Some providers send text, and some that estimate send fractions. */
function tokens(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : value
  if (typeof count !== 'number' || !(count >= 0)) return undefined
  const whole = Math.round(count)
  return Number.isSafeInteger(whole) ? whole : undefined
}
