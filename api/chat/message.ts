/** Normalizes messages and deltas for strict clients. */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../untrusted/json.ts'

/**
 * The message without nulls, with its content as text and its reasoning under both names that clients read. Content
 * with other parts, such as images, stays as it is.
 */
export function plainMessage(message: JsonObject): Record<string, unknown> {
  const { usage: _usage, ...plain } = withoutNulls(message)
  const content: unknown = isObject(plain['content']) ? [plain['content']] : plain['content']
  let thought = reasoningIn(plain)
  if (Array.isArray(content) && content.every(isTextOrThought)) {
    plain['content'] = content.map(textOf).join('')
    thought ??= content.map(thoughtOf).join('')
  }
  const calls = plain['tool_calls']
  if (calls !== undefined) plain['tool_calls'] = objectsIn(isObject(calls) ? [calls] : calls).map(plainCall)
  if (thought !== undefined && thought !== '') {
    // Some providers send one of the two empty.
    plain['reasoning'] ||= thought
    plain['reasoning_content'] ||= thought
  }
  return plain
}

/** The reasoning text, wherever the provider puts it. */
function reasoningIn(message: JsonObject): string | undefined {
  const {
    reasoning,
    reasoning_content,
    thinking,
    reasoning_details: details,
    thinking_blocks: blocks,
  } = message
  const thoughts = [reasoning, reasoning_content, thinking].filter((one) => typeof one === 'string')
  const thought = thoughts.find((one) => one !== '')
  if (thought !== undefined) return thought
  // LiteLLM passes on Anthropic's blocks.
  if (details === undefined)
    return blocks === undefined ? undefined : objectsIn(blocks).map(thoughtOf).join('')
  return objectsIn(details)
    .map(({ text, summary }) => [text, summary].find((one) => typeof one === 'string') ?? '')
    .join('')
}

/** Some providers name a call's function beside its id. */
function plainCall(call: JsonObject): JsonObject {
  const { name, arguments: sent, ...rest } = call
  if (typeof name !== 'string' || isObject(call['function'])) return call
  return { ...rest, function: { name, arguments: sent } }
}

function isTextOrThought(part: unknown): boolean {
  if (typeof part === 'string') return true
  if (!isObject(part)) return false
  return isText(part) || part['type'] === 'thinking'
}

function isText({ type, text }: JsonObject): boolean {
  return typeof text === 'string' && (type === undefined || type === 'text' || type === 'output_text')
}

function textOf(part: unknown): string {
  if (typeof part === 'string') return part
  return isObject(part) && isText(part) ? String(part['text']) : ''
}

/** Reasoning is a text or a list of parts. */
function thoughtOf(part: unknown): string {
  if (!isObject(part) || part['type'] !== 'thinking') return ''
  const { thinking } = part
  return typeof thinking === 'string' ? thinking : objectsIn(thinking).map(textOf).join('')
}
