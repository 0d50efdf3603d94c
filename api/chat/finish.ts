/** How choices end: maps the providers' words to the OpenAI format's. */
import { withoutNulls, type JsonObject } from '../untrusted/json.ts'

type Called = 'tool_calls' | 'function_call'
type Meaning = 'length' | 'content_filter' | 'error'
type FinishReason = Exclude<Meaning, 'error'> | 'stop' | Called

/** Words of Anthropic, Gemini, Bedrock, Mistral and OpenAI's other API. */
const LENGTH =
  'length max_tokens max_output_tokens max_length max_new_tokens context_window_exceeded incomplete model_length ' +
  'model_context_window_exceeded'
/** Words of Bedrock, Anthropic, Gemini, Zhipu and Cohere. */
const FILTER =
  'content_filter content_filtered guardrail_intervened refusal safety image_safety recitation prohibited_content ' +
  'blocklist spii sensitive error_toxic'
/** Words of SGLang, vLLM, Zhipu and DeepSeek. */
const ERROR = 'error abort network_error engine_error failed timeout insufficient_system_resource'

/**
 * In lower case with underscores. Other words end a choice like `stop`. The words for calls are missing: a call is
 * recognised by its presence.
 */
const MEANINGS: ReadonlyMap<string, Meaning> = new Map([
  ...LENGTH.split(' ').map((word) => [word, 'length'] as const),
  ...FILTER.split(' ').map((word) => [word, 'content_filter'] as const),
  ...ERROR.split(' ').map((word) => [word, 'error'] as const),
])

/** Words for a choice that goes on (Alibaba Model Studio, Gemini). */
const GOES_ON = ['', 'null', 'finish_reason_unspecified']

/** The provider's own word; undefined while the choice goes on. */
export function nativeFinish({ finish_reason: snake, finishReason: camel }: JsonObject): string | undefined {
  const reason = snake ?? camel
  return typeof reason === 'string' && !GOES_ON.includes(reason.toLowerCase()) ? reason : undefined
}

function meaningOf(native: string | undefined): Meaning | undefined {
  return native === undefined ? undefined : MEANINGS.get(native.toLowerCase().replaceAll('-', '_'))
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
 * The members for the end of a choice, with the provider's own word if it differs. Agents act on it: they wait for the
 * results of tool calls, or do not. `called`: the finish that a call implies.
 */
export function finishMembers(native: string | undefined, called: Called | undefined): JsonObject {
  const known = meaningOf(native)
  const reason: FinishReason = known === 'length' || known === 'content_filter' ? known : (called ?? 'stop')
  if (native === undefined || native === reason) return { finish_reason: reason }
  return { finish_reason: reason, native_finish_reason: native }
}

/** A choice without nulls, its finish and its usage, which are written anew. */
export function withoutFinish(choice: JsonObject): JsonObject {
  const { finish_reason: _snake, finishReason: _camel, usage: _usage, ...rest } = withoutNulls(choice)
  return rest
}
