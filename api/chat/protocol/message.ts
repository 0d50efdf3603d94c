/** Messages, and deltas of them, as strict clients take them: what providers tell in ways of their own. */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../../untrusted/json.ts'

/**
 * The message without nulls, with its content as text and its reasoning under both names that clients know. Content
 * with parts of another kind, such as images, stays as it is.
 */
export function plainMessage(message: JsonObject): Record<string, unknown> {
  const plain = withoutNulls(message)
  const { content } = plain
  let thought = reasoningIn(plain)
  if (Array.isArray(content) && content.every(isTextOrThought)) {
    plain['content'] = content.map(textOf).join('')
    thought ??= content.map(thoughtOf).join('')
  }
  if (thought !== undefined && thought !== '') {
    plain['reasoning'] ??= thought
    plain['reasoning_content'] ??= thought
  }
  return plain
}

/** The text of what was thought, wherever it stands beside the content. */
function reasoningIn(message: JsonObject): string | undefined {
  const told = [message['reasoning'], message['reasoning_content']].find((text) => typeof text === 'string')
  if (told !== undefined || message['reasoning_details'] === undefined) return told
  return objectsIn(message['reasoning_details'])
    .map(({ text, summary }) => [text, summary].find((one) => typeof one === 'string') ?? '')
    .join('')
}

function isTextOrThought(part: unknown): boolean {
  if (!isObject(part)) return false
  return (part['type'] === 'text' && typeof part['text'] === 'string') || part['type'] === 'thinking'
}

function textOf(part: JsonObject): string {
  return part['type'] === 'text' ? String(part['text']) : ''
}

/** A thought is a text, or has parts of its own. */
function thoughtOf(part: JsonObject): string {
  const { type, thinking } = part
  if (type !== 'thinking') return ''
  return typeof thinking === 'string' ? thinking : objectsIn(thinking).map(textOf).join('')
}
