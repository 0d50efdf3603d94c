/** Creates and hashes keys: 32 random bytes behind a readable prefix, stored only as a hash. */
import { hash, randomBytes } from 'node:crypto'

/** The kinds of key (CONTRACT 2). */
export const KEY_KINDS = ['inference', 'management'] as const
export type KeyKind = (typeof KEY_KINDS)[number]

const SECRET_BYTES = 32
const KEY_FORM = new RegExp(`^sk-(${KEY_KINDS.join('|')})-[A-Za-z0-9_-]{43}$`)
const KEYS_ANYWHERE = new RegExp(`sk-(${KEY_KINDS.join('|')})-[A-Za-z0-9_-]+`, 'g')

/** A new secret key of this kind, such as `sk-inference-…`. */
export function makeKey(kind: KeyKind): string {
  return `sk-${kind}-${randomBytes(SECRET_BYTES).toString('base64url')}`
}

/** Whether the text has the form of a key, existing or not. */
export function isKeyForm(text: string): boolean {
  return KEY_FORM.test(text)
}

/**
 * SHA-256 of a key in hexadecimal, for storage and look-up. A slow password hash would add nothing: 256 random bits
 * cannot be guessed.
 */
export function hashKey(key: string): string {
  return hash('sha256', key)
}

/** The text with every key replaced, for logs. */
export function hideKeys(text: string): string {
  // A fast path, since nearly all texts hold no key. A client may have encoded any character of a key in a path.
  if (!/(?:s|%73)(?:k|%6b)(?:-|%2d)/i.test(text)) return text
  const plain = text.replaceAll(/%[2-7][\da-f]/gi, (code) => decodeURIComponent(code))
  const hidden = plain.replaceAll(KEYS_ANYWHERE, 'sk-$1-[hidden]')
  return hidden === plain ? text : hidden
}
