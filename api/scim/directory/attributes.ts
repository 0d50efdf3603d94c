/**
 * Reads attributes as directories send them. Unclear values are left out: one odd entry must not stop a directory of
 * thousands.
 */
import { isObject, type JsonObject } from '../../untrusted/json.ts'

const MAX_TEXT = 1024
// PostgreSQL limits an index row to 2704 bytes over all its columns.
const MAX_ID_BYTES = 1024

const CONTROL_CHARACTER = /\p{Cc}/u

/**
 * The attribute with this lower-case name; directories may send names in any case (RFC 7643, 2.1). Undefined if it is
 * missing or null.
 */
export function attribute(object: JsonObject, name: string): unknown {
  const value = Object.hasOwn(object, name) ? object[name] : otherwiseSpelled(object, name)
  return value ?? undefined
}

// No array of names: an object may have a million.
function otherwiseSpelled(object: JsonObject, name: string): unknown {
  for (const key in object) {
    if (key.length === name.length && key.toLowerCase() === name) return object[key]
  }
  return undefined
}

/** A list; directories may send a single entry without brackets. */
export function asList(value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? value : [value]
}

/** An identifier, unchanged, or undefined. */
export function readIdentifier(value: unknown): string | undefined {
  const id = Number.isSafeInteger(value) ? String(value) : value
  if (typeof id !== 'string' || id === '' || id.length > MAX_ID_BYTES) return undefined
  const isUsable = Buffer.byteLength(id) <= MAX_ID_BYTES && id.isWellFormed() && !CONTROL_CHARACTER.test(id)
  return isUsable ? id : undefined
}

/**
 * Text that every store keeps unchanged: well-formed, without control characters, at most 1024 characters. Undefined
 * for lists, objects and missing values.
 */
export function readText(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'string') return undefined
  if (value.length > MAX_TEXT) return clean(copyOf(value.slice(0, MAX_TEXT)))
  return value.isWellFormed() && !CONTROL_CHARACTER.test(value) ? value : clean(value)
}

function clean(text: string): string {
  return text.toWellFormed().replaceAll(/\p{Cc}/gu, ' ')
}

// A slice would keep the whole text in memory.
function copyOf(slice: string): string {
  return Buffer.from(slice.toWellFormed()).toString()
}

/** A boolean, which some directories send as text; undefined for anything else. */
export function readFlag(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value
  const text = typeof value === 'string' ? value.toLowerCase() : undefined
  return text === 'true' ? true : text === 'false' ? false : undefined
}

/** The e-mail address of an object: `email`, or the primary one of `emails`, or the first. */
export function readEmail(object: JsonObject): string | undefined {
  const single = readText(attribute(object, 'email'))
  if (single !== undefined) return single
  const emails = asList(attribute(object, 'emails'))
  const primary = emails.find((email) => isObject(email) && readFlag(attribute(email, 'primary')) === true)
  const chosen = primary ?? emails[0]
  return readText(isObject(chosen) ? attribute(chosen, 'value') : chosen)
}
