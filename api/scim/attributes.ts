/**
 * Reads attributes as directories send them. Unclear values are left out: one odd entry must not stop a directory of
 * thousands.
 */
import type { JsonObject } from '../untrusted/json.ts'

const MAX_TEXT = 256
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

// No array of names: an object may have thousands.
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
 * Text that every store keeps unchanged: well-formed, without control characters, at most 256 characters. Undefined
 * for lists, objects and missing values.
 */
export function readText(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'string') return undefined
  if (value.length <= MAX_TEXT && value.isWellFormed() && !CONTROL_CHARACTER.test(value)) return value
  // Copied, since a slice would keep the whole text in memory.
  const text = Buffer.from(value.slice(0, MAX_TEXT).toWellFormed()).toString()
  return text.replaceAll(/\p{Cc}/gu, ' ')
}

/** A number of rows, which some directories send as text. */
export function readCount(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined
}

/** Whether this is true, which some directories send as text. */
export function isTrue(value: unknown): boolean {
  return String(value).toLowerCase() === 'true'
}
