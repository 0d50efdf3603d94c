/** Messages, and deltas of them, as strict clients take them: what providers tell in ways of their own. */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../../untrusted/json.ts'

/**
 * The message without nulls, with its content as text and its reasoning under both names that clients know. Content
 * with parts of another kind, such as images, stays as it is.
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
    // Some give one of the two empty beside the other.
    plain['reasoning'] ||= thought
    plain['reasoning_content'] ||= thought
  }
  return plain
}

/** The text of what was thought, wherever it stands beside the content. */
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
  // LiteLLM passes Anthropic's blocks on.
  if (details === undefined)
    return blocks === undefined ? undefined : objectsIn(blocks).map(thoughtOf).join('')
  return objectsIn(details)
    .map(({ text, summary }) => [text, summary].find((one) => typeof one === 'string') ?? '')
    .join('')
}

/** Some name the function of a call beside its id. */
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

/** A thought is a text, or has parts of its own. */
function thoughtOf(part: unknown): string {
  if (!isObject(part) || part['type'] !== 'thinking') return ''
  const { thinking } = part
  return typeof thinking === 'string' ? thinking : objectsIn(thinking).map(textOf).join('')
}
