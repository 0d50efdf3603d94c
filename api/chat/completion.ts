/**
 * Rewrites a provider's whole reply for strict clients, which fail on raw ones: a required key is missing, or null
 * where only absence is allowed. Its rules for messages and finishes hold for streams too.
 */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../untrusted/json.ts'
import { failureOf, isError } from './failures.ts'
import { indexOf, ToolCalls } from './tool-calls.ts'
import { readUsage, usageIn, usageReply, type Usage } from './usage.ts'

const OK = 200

/** What identifies a reply and its model. */
export interface ReplyIdentity {
  readonly id: string
  /** Unix time in seconds. */
  readonly created: number
  readonly model: string
  readonly provider: string
}

export interface Completion {
  readonly body: JsonObject
  readonly usage: Usage | undefined
}

/**
 * Reads a completion.
 * @throws {AttemptFailure} if it is an error or no completion.
 */
export function readCompletion(value: unknown, identity: ReplyIdentity): Completion {
  if (!isObject(value)) throw failureOf(OK, value)
  throwIfError(value)
  const choices = objectsIn(value['choices'])
  if (choices.every(isEmptyChoice)) throw failureOf(OK, value)
  const usage = readUsage(usageIn(value))
  return {
    body: {
      ...withoutNulls(value),
      ...identityOf(value, identity),
      object: 'chat.completion',
      choices: choices.map(repairChoice),
      // Required, but nullable.
      system_fingerprint:
        typeof value['system_fingerprint'] === 'string' ? value['system_fingerprint'] : null,
      usage: usageReply(usage),
    },
    usage,
  }
}

/** The value of a completion from the chunks of a stream: texts and lists are appended, other members replaced. */
export function joinChunks(chunks: readonly JsonObject[]): JsonObject {
  const choices = new Map<unknown, Record<string, unknown>>()
  let reply: JsonObject = {}
  for (const { choices: parts, ...more } of chunks) {
    reply = { ...reply, ...more }
    for (const { delta, ...rest } of objectsIn(parts)) {
      const choice = choices.get(rest['index'])
      const message = appended(choice?.['message'], delta)
      choices.set(rest['index'], { ...choice, ...rest, message })
    }
  }
  return { ...reply, choices: [...choices.values()] }
}

function appended(message: unknown, delta: unknown): JsonObject {
  const both: Record<string, unknown> = isObject(message) ? { ...message } : {}
  for (const [key, added] of Object.entries(isObject(delta) ? delta : {})) {
    const known = both[key]
    if (Array.isArray(known) && Array.isArray(added)) both[key] = [...known, ...added]
    else if (typeof known === 'string' && typeof added === 'string') both[key] = known + added
    else both[key] = added
  }
  return both
}

/**
 * Throws if a reply or chunk is an error, or if one of its choices ended in a provider failure.
 * @throws {AttemptFailure}
 */
export function throwIfError(value: JsonObject): void {
  for (const choice of objectsIn(value['choices'])) {
    const native = nativeFinish(choice)
    if (meaningOf(native) === 'error' || isObject(choice['error']))
      throw failureOf(OK, { code: native, error: value['error'] ?? choice['error'] })
  }
  if (isError(value)) throw failureOf(OK, value)
}

/** A choice in the form of another operation, such as `text`: no client reads it. */
function isEmptyChoice(choice: JsonObject): boolean {
  return !isObject(choice['message']) && !isFilter(nativeFinish(choice))
}

/** Whether the provider held back all content: another model may be less strict. */
export function isFilteredOut({ body }: Completion): boolean {
  return objectsIn(body['choices']).every(
    ({ finish_reason, message }) =>
      finish_reason === 'content_filter' &&
      isObject(message) &&
      !message['content'] &&
      !message['tool_calls'] &&
      !message['function_call'],
  )
}

/** The provider's id and time of a reply; without them those of `otherwise`. */
export function identityOf({ id, created }: JsonObject, otherwise: ReplyIdentity): ReplyIdentity {
  return {
    ...otherwise,
    ...(typeof id === 'string' && id !== '' && { id }),
    ...(typeof created === 'number' && Number.isInteger(created) && created > 0 && { created }),
  }
}

function repairChoice(choice: JsonObject, position: number): JsonObject {
  const { message: whole, ...rest } = withoutFinish(choice)
  const { tool_calls: sent, ...message } = plainMessage(isObject(whole) ? whole : {})
  const tools = new ToolCalls()
  tools.read(sent)
  const calls = tools.whole()
  const old = isObject(message['function_call']) ? 'function_call' : undefined
  return {
    ...rest,
    index: indexOf(choice) ?? position,
    message: {
      ...message,
      role: 'assistant',
      content: message['content'] ?? null,
      ...(calls.length > 0 && { tool_calls: calls }),
    },
    ...finishMembers(nativeFinish(choice), calls.length > 0 ? 'tool_calls' : old),
  }
}

/**
 * A message or delta as strict clients read it.
 * - It has no nulls.
 * - Content in parts, each a text or a thought (Mistral), becomes a text and a reasoning; with other parts, such as
 *   images, it stays a list.
 * - Reasoning stands under both names that clients read.
 */
export function plainMessage(message: JsonObject): Record<string, unknown> {
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

function isThought(part: unknown): boolean {
  return isObject(part) && part['type'] === 'thinking'
}

/** The text of a part of content; undefined for an image and the like. Thoughts are a text or a list of texts. */
function textIn(part: unknown): string | undefined {
  if (typeof part === 'string') return part
  if (!isObject(part)) return undefined
  if (part['type'] !== 'thinking') return typeof part['text'] === 'string' ? part['text'] : undefined
  const { thinking } = part
  return typeof thinking === 'string' ? thinking : objectsIn(thinking).map(textIn).join('')
}

type Called = 'tool_calls' | 'function_call'
type Meaning = 'length' | 'content_filter' | 'error'

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

/** In lower case with underscores. Other words end a choice like `stop`; calls are recognised by their presence. */
const MEANINGS: ReadonlyMap<string, Meaning> = new Map([
  ...LENGTH.split(' ').map((word) => [word, 'length'] as const),
  ...FILTER.split(' ').map((word) => [word, 'content_filter'] as const),
  ...ERROR.split(' ').map((word) => [word, 'error'] as const),
])

/** Words for a choice that goes on (Alibaba Model Studio, Gemini). */
const GOES_ON = ['', 'null', 'finish_reason_unspecified']

function meaningOf(native: string | undefined): Meaning | undefined {
  return MEANINGS.get(native?.toLowerCase().replaceAll('-', '_') ?? '')
}

/** The provider's own word for the end of a choice; undefined while it goes on. */
export function nativeFinish({ finish_reason: snake, finishReason: camel }: JsonObject): string | undefined {
  const reason = snake ?? camel
  return typeof reason === 'string' && !GOES_ON.includes(reason.toLowerCase()) ? reason : undefined
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
  const reason = known === 'length' || known === 'content_filter' ? known : (called ?? 'stop')
  if (native === undefined || native === reason) return { finish_reason: reason }
  return { finish_reason: reason, native_finish_reason: native }
}

/** A choice without nulls, its finish and its usage, which are written anew. */
export function withoutFinish(choice: JsonObject): JsonObject {
  const { finish_reason: _snake, finishReason: _camel, usage: _usage, ...rest } = withoutNulls(choice)
  return rest
}
