/**
 * One choice of a reply, rewritten for strict clients, which fail on raw ones: a required key is missing, or null where
 * only absence is allowed.
 */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../untrusted/json.ts'
import { ToolCalls } from './tool-calls.ts'

/**
 * Providers' words for the end of a choice, in lower case with underscores: of a limit (Anthropic, Gemini, Bedrock, Mistral,
 * OpenAI's other API), a filter (Bedrock, Anthropic, Gemini, Zhipu, Cohere) and an error (SGLang, vLLM, Zhipu, DeepSeek).
 * Gemini adds a reason after a colon. Other words mean `stop`; tool calls are recognised by their presence.
 */
const FINISHES = {
  length: (
    'length max_tokens max_output_tokens max_length max_new_tokens context_window_exceeded incomplete model_length ' +
    'model_context_window_exceeded error_limit'
  ).split(' '),
  content_filter: (
    'content_filter content_filtered guardrail_intervened refusal safety image_safety recitation prohibited_content ' +
    'image_prohibited_content model_armor blocklist spii sensitive error_toxic'
  ).split(' '),
  error: 'error abort network_error engine_error failed timeout insufficient_system_resource'.split(' '),
}
const MEANINGS = ['length', 'content_filter', 'error'] as const

/** Words for a choice that goes on (Alibaba Model Studio, Gemini). */
const GOES_ON = ['', 'null', 'finish_reason_unspecified']

/** The provider's own word for the end of a choice; undefined while it goes on. */
export function nativeFinish({ finish_reason: snake, finishReason: camel }: JsonObject): string | undefined {
  const reason = snake ?? camel
  return typeof reason === 'string' && !GOES_ON.includes(reason.toLowerCase()) ? reason : undefined
}

/** What the provider's word means, if it is more than `stop`. */
export function finishMeant(native = '') {
  const [word = ''] = native.toLowerCase().replaceAll('-', '_').split(':')
  return MEANINGS.find((meaning) => FINISHES[meaning].includes(word))
}

/** A choice as far as it was read: a `message` is the whole of it, a `delta` a part. */
export class Choice {
  readonly tools = new ToolCalls()
  readonly index: number
  /** Whether it has any content: a tool call is content even while its first part waits. */
  hasContent = false
  /** Whether its last part had a finish beside content. */
  endedWithContent = false
  #hasBegun = false
  /** Whether any content was in a delta. */
  #hasDelta = false
  /** The provider's word for its end. */
  #native: string | undefined
  /** Members beside its finish. */
  #more: JsonObject = {}

  constructor(index: number) {
    this.index = index
  }

  /** Whether the provider said that it is over. */
  get isOver(): boolean {
    return this.#native !== undefined
  }

  get isFiltered(): boolean {
    return finishMeant(this.#native) === 'content_filter'
  }

  /** Reads the next part; returns what is sent of it, if anything. */
  read(sent: JsonObject): JsonObject | undefined {
    const { finish_reason: _snake, finishReason: _camel, usage: _usage, ...members } = withoutNulls(sent)
    const { delta: sentDelta, message, ...rest } = members
    this.#native = nativeFinish(sent) ?? this.#native
    const { tool_calls: sentCalls, role: _role, ...delta } = plainMessage(this.#own(sentDelta, message))
    // Older TGI sends a call instead of a list, and gateways in Lua an empty object instead of an empty list.
    const calls = objectsIn([sentCalls].flat()).filter((call) => Object.keys(call).length > 0)
    const hasContent = !isEmptyDelta(delta) || calls.length > 0
    this.hasContent ||= hasContent
    this.endedWithContent = hasContent && this.isOver
    const parts = this.tools.read(calls)
    if (parts.length > 0) delta['tool_calls'] = parts
    const isEmpty = isEmptyDelta(delta) && rest['logprobs'] === undefined
    if (isEmpty && this.isOver) this.#more = { ...this.#more, ...rest }
    // A role alone is sent and keeps a client waiting; a tool call with nothing to send is waited for.
    return isEmpty && (this.isOver || hasContent) ? undefined : { ...rest, ...this.#begin(delta) }
  }

  /** The delta, or without one the message. A message beside or after deltas repeats them (Perplexity, MiniMax). */
  #own(delta: unknown, message: unknown): JsonObject {
    const sent = isObject(delta) ? delta : {}
    const { role: _role, ...content } = withoutNulls(sent)
    this.#hasDelta ||= !isEmptyDelta(content)
    return isObject(message) && !this.#hasDelta ? message : sent
  }

  /** The rest of its tool calls; undefined if there is none. No part may follow. */
  lastCalls(): JsonObject | undefined {
    const parts = this.tools.finish()
    return parts.length === 0 ? undefined : this.#begin({ tool_calls: parts })
  }

  /**
   * The last part, with the finish. Agents act on it: they wait for the results of tool calls, or do not. The provider's
   * own word is beside it if it differs.
   */
  ending(): JsonObject {
    const answered = this.#native === 'function_call' ? 'function_call' : 'stop'
    const called = this.tools.isEmpty ? answered : 'tool_calls'
    const known = finishMeant(this.#native)
    const finish = known === undefined || known === 'error' ? called : known
    return {
      ...this.#more,
      index: this.index,
      delta: this.#hasBegun ? {} : { role: 'assistant', content: '' },
      finish_reason: finish,
      ...(this.#native !== undefined && this.#native !== finish && { native_finish_reason: this.#native }),
    }
  }

  /** A part with this delta. Clients that assemble a message need its role once. */
  #begin(delta: JsonObject): JsonObject {
    const first = this.#hasBegun ? {} : { role: 'assistant' }
    this.#hasBegun = true
    return { index: this.index, delta: { ...first, ...delta }, finish_reason: null }
  }
}

/** Only empty texts and empty lists. */
function isEmptyDelta(delta: JsonObject): boolean {
  for (const key in delta) {
    const value = delta[key]
    if (value !== '' && !(Array.isArray(value) && value.length === 0)) return false
  }
  return true
}

/**
 * A message or delta as strict clients read it, without nulls. Content in parts, each a text, a thought or a reference to
 * a document (Mistral), becomes a text and a reasoning; with other parts, such as images, it stays a list. Reasoning
 * stands under both names that clients read.
 */
function plainMessage(message: JsonObject): Record<string, unknown> {
  const plain = withoutNulls(message)
  const { content, reasoning, reasoning_content } = plain
  let thought = reasoning || reasoning_content
  if (Array.isArray(content) && content.every((part) => textIn(part) !== undefined)) {
    plain['content'] = content.map((part) => (isThought(part) ? '' : textIn(part))).join('')
    thought ||= content.map((part) => (isThought(part) ? textIn(part) : '')).join('')
  }
  if (thought) {
    plain['reasoning'] ||= thought
    plain['reasoning_content'] ||= thought
  }
  return plain
}

/** Parts of Mistral and Anthropic, and of Databricks. */
function isThought(part: unknown): boolean {
  return isObject(part) && ['thinking', 'redacted_thinking', 'reasoning'].includes(String(part['type']))
}

/** The text of a part of content; undefined for an image and the like. Thoughts are a text or a list of texts. */
function textIn(part: unknown): string | undefined {
  if (typeof part === 'string') return part
  if (!isObject(part)) return undefined
  const { text = part['type'] === 'reference' ? '' : undefined, thinking = part['summary'] } = part
  if (!isThought(part)) return typeof text === 'string' ? text : undefined
  return typeof thinking === 'string' ? thinking : objectsIn(thinking).map(textIn).join('')
}
