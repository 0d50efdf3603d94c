/** Content that a provider tells in parts, as some with reasoning do: clients of this API take it as one text. */
import { isObject, objectsIn, type JsonObject } from '../../untrusted/json.ts'

/**
 * The message, or the delta of one, with its content as text and what was thought under `reasoning`. Content with
 * parts of any other kind, such as images, stays as it is.
 */
export function withPlainContent(message: JsonObject): JsonObject {
  const { content } = message
  if (!Array.isArray(content) || !content.every(isTextOrThought)) return message
  const thought = content.map(thoughtOf).join('')
  const said = { ...message, content: content.map(textOf).join('') }
  return thought === '' || 'reasoning' in message ? said : { ...said, reasoning: thought }
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
