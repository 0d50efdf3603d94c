/** How choices end: maps the providers' words to the OpenAI format's. */
import type { JsonObject } from '../../untrusted/json.ts'

type Called = 'tool_calls' | 'function_call'
type Meaning = 'length' | 'content_filter' | 'error'
type FinishReason = Exclude<Meaning, 'error'> | 'stop' | Called

/**
 * Words of providers, in lower case with underscores. Other words end a choice like `stop`. The words for calls are
 * missing: a call is recognised by its presence.
 */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  length: 'length',
  max_tokens: 'length', // Anthropic, Gemini, Bedrock
  max_output_tokens: 'length',
  max_length: 'length',
  max_new_tokens: 'length',
  context_window_exceeded: 'length',
  incomplete: 'length', // OpenAI's other API
  model_length: 'length', // Mistral
  model_context_window_exceeded: 'length', // Anthropic, Bedrock
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
  engine_error: 'error',
  failed: 'error',
  timeout: 'error',
  insufficient_system_resource: 'error', // DeepSeek
}

/** Words for a choice that goes on (Alibaba Model Studio, Gemini). */
const GOES_ON = ['', 'null', 'finish_reason_unspecified']

/** The provider's own word; undefined while the choice goes on. */
export function nativeFinish({ finish_reason: reason }: JsonObject): string | undefined {
  return typeof reason === 'string' && !GOES_ON.includes(reason.toLowerCase()) ? reason : undefined
}

function meaningOf(native: string | undefined): Meaning | undefined {
  return native === undefined ? undefined : MEANINGS[native.toLowerCase().replaceAll('-', '_')]
}

/** Whether a word means that the provider failed. */
export function isFailure(native: string | undefined): boolean {
  return meaningOf(native) === 'error'
}

/** Whether a word means that a filter held content back. */
export function isFilter(native: string | undefined): boolean {
  return meaningOf(native) === 'content_filter'
}

/**
 * The members for the end of a choice, with the provider's own word if it differs. `called`: the finish that a call
 * implies.
 */
export function finishMembers(native: string | undefined, called: Called | undefined): JsonObject {
  const reason = finishReason(native, called)
  if (native === undefined || native === reason) return { finish_reason: reason }
  return { finish_reason: reason, native_finish_reason: native }
}

/** Agents act on this word: they wait for the results of tool calls, or do not. */
function finishReason(native: string | undefined, called: Called | undefined): FinishReason {
  const known = meaningOf(native)
  return known === 'length' || known === 'content_filter' ? known : (called ?? 'stop')
}
