/** How choices end: the words of providers in those of the OpenAI format. */
import type { JsonObject } from '../../untrusted/json.ts'

type Called = 'tool_calls' | 'function_call'
type Meaning = 'length' | 'content_filter' | 'error'
type FinishReason = Exclude<Meaning, 'error'> | 'stop' | Called

/**
 * Words of providers, in lower case and with underscores. What is not here ends a choice like `stop`. That something was
 * called is seen, not believed, so the words for it are not here.
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

/** Words for a choice that goes on: of Alibaba Model Studio and of Gemini. */
const GOES_ON = ['', 'null', 'finish_reason_unspecified']

/** The provider's own word; undefined while the choice goes on. */
export function nativeFinish({ finish_reason: reason }: JsonObject): string | undefined {
  return typeof reason === 'string' && !GOES_ON.includes(reason.toLowerCase()) ? reason : undefined
}

function meaningOf(native: string | undefined): Meaning | undefined {
  return native === undefined ? undefined : MEANINGS[native.toLowerCase().replaceAll('-', '_')]
}

/** Whether a word says that the provider broke down. */
export function isFailure(native: string | undefined): boolean {
  return meaningOf(native) === 'error'
}

/** Whether a word says that a filter kept content back. */
export function isFilter(native: string | undefined): boolean {
  return meaningOf(native) === 'content_filter'
}

/**
 * The members that say how a choice ended, the provider's own word beside ours where they differ. `called`: what it
 * means that something was called, where it was.
 */
export function finishMembers(native: string | undefined, called: Called | undefined): JsonObject {
  const reason = finishReason(native, called)
  if (native === undefined || native === reason) return { finish_reason: reason }
  return { finish_reason: reason, native_finish_reason: native }
}

/** Agents go by this word: they wait for the results of tool calls, or for none. */
function finishReason(native: string | undefined, called: Called | undefined): FinishReason {
  const known = meaningOf(native)
  return known === 'length' || known === 'content_filter' ? known : (called ?? 'stop')
}
