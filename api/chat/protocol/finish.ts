/** How choices end: the words of providers in those of the OpenAI format. */
import type { JsonObject } from '../../untrusted/json.ts'

type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call'

/** Words of providers, in lower case. What is not here ends a choice like `stop`. */
const FINISHES: Readonly<Record<string, FinishReason | 'error'>> = {
  length: 'length',
  max_tokens: 'length', // Anthropic, Gemini, Bedrock
  max_output_tokens: 'length',
  max_length: 'length',
  model_length: 'length', // Mistral
  model_context_window_exceeded: 'length', // Anthropic, Bedrock
  tool_calls: 'tool_calls',
  tool_call: 'tool_calls', // Cohere
  tool_use: 'tool_calls', // Anthropic, Bedrock
  function_call: 'function_call',
  content_filter: 'content_filter',
  content_filtered: 'content_filter', // Bedrock
  guardrail_intervened: 'content_filter', // Bedrock
  refusal: 'content_filter', // Anthropic
  safety: 'content_filter', // Gemini, as those that follow
  image_safety: 'content_filter',
  recitation: 'content_filter',
  prohibited_content: 'content_filter',
  blocklist: 'content_filter',
  spii: 'content_filter',
  sensitive: 'content_filter', // Zhipu
  error_toxic: 'content_filter', // Cohere
  error: 'error',
  abort: 'error', // SGLang, vLLM
  network_error: 'error', // Zhipu
  insufficient_system_resource: 'error', // DeepSeek
}

/** The provider's own word; undefined while the choice goes on, for which some providers send an empty one. */
export function nativeFinish({ finish_reason: reason }: JsonObject): string | undefined {
  return typeof reason === 'string' && reason !== '' ? reason : undefined
}

/** Whether a word says that the provider broke down. */
export function isFailure(native: string | undefined): boolean {
  return native !== undefined && FINISHES[native.toLowerCase()] === 'error'
}

/** Whether a word says that a filter kept content back. */
export function isFilter(native: string | undefined): boolean {
  return native !== undefined && FINISHES[native.toLowerCase()] === 'content_filter'
}

/** The members that say how a choice ended, the provider's own word beside ours where they differ. */
export function finishMembers(native: string | undefined, hasToolCalls: boolean): JsonObject {
  const reason = finishReason(native, hasToolCalls)
  if (native === undefined || native === reason) return { finish_reason: reason }
  return { finish_reason: reason, native_finish_reason: native }
}

/** Agents go by this word: they wait for the results of tool calls, or for none. */
function finishReason(native: string | undefined, hasToolCalls: boolean): FinishReason {
  const known = native === undefined ? undefined : FINISHES[native.toLowerCase()]
  if (known === undefined || known === 'error') return hasToolCalls ? 'tool_calls' : 'stop'
  return known === 'tool_calls' && !hasToolCalls ? 'stop' : known
}
