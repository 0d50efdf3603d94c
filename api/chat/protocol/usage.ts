/** Tokens as a provider counted them. */
import { isObject, withoutNulls, type JsonObject } from '../../untrusted/json.ts'

/** The usage of a reply; what the provider told beyond the totals is kept in `told`. */
export interface Usage {
  readonly promptTokens: number
  readonly completionTokens: number
  readonly told: JsonObject
}

/** The usage a provider told; undefined when it told none that is whole. Never a guess. */
export function readUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined
  const promptTokens = tokens(value['prompt_tokens'] ?? value['input_tokens'])
  const completionTokens = tokens(value['completion_tokens'] ?? value['output_tokens'])
  if (promptTokens === undefined || completionTokens === undefined) return undefined
  return { promptTokens, completionTokens, told: value }
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
  reply['total_tokens'] = tokens(told['total_tokens']) ?? promptTokens + completionTokens
  return reply
}

function tokens(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
