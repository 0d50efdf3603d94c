/** Untrusted input: JSON with members of any type, texts and lists of any length. */
import { z } from 'zod'
import { jsonSchema } from '../openapi/schema.ts'

export type JsonObject = Readonly<Record<string, unknown>>

/** Whether this is a JSON object: no array and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The parsed text; undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The object without null members, for strict clients that accept only absence. */
export function withoutNulls(object: JsonObject): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const key in object) {
    const value = object[key]
    if (value !== null) kept[key] = value
  }
  return kept
}

/** The objects in an array; empty for anything else. */
export function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/**
 * Whether a JSON text has more values in lists and objects (`elements`), or more of them inside one another (`depth`).
 * Checked before parsing, since a parser makes an object of every few characters. Invalid JSON is left to the parser.
 */
export function exceededBound(text: string, bounds: Readonly<Record<'elements' | 'depth', number>>) {
  let depth = 0
  let elements = 0
  for (let index = 0; index < text.length; index += 1) {
    const character = text.charAt(index)
    if (character === '"') {
      index = endOfString(text, index)
      continue
    }
    // Comparisons: a search in a text takes ten times as long for each of millions of digits or blanks.
    const opens = character === '[' || character === '{'
    if (opens) depth += 1
    else if (character === ']' || character === '}') depth -= 1
    if (opens || character === ',') elements += 1
    if (depth > bounds.depth) return 'depth'
    if (elements > bounds.elements) return 'elements'
  }
  return undefined
}

/** The place of the quote that ends the string from `start` on. */
function endOfString(text: string, start: number): number {
  // At once for a picture of millions of characters, which has no escapes.
  const quote = text.indexOf('"', start + 1)
  if (quote !== -1 && text.charAt(quote - 1) !== '\\') return quote
  let index = start + 1
  while (index < text.length && text.charAt(index) !== '"') index += text.charAt(index) === '\\' ? 2 : 1
  return index
}

const SHOWN_CHARACTERS = 100

/** Client input shortened for a message: at most SHOWN_CHARACTERS, then an ellipsis. */
export function shorten(text: string): string {
  // A character has at most two code units, and the text may have millions.
  const characters = Array.from(text.slice(0, 2 * (SHOWN_CHARACTERS + 1)))
  return characters.length <= SHOWN_CHARACTERS ? text : `${characters.slice(0, SHOWN_CHARACTERS).join('')}…`
}

/** Invalid elements after which validation stops: more than a message lists. */
const FAULTY_AT_MOST = 6

/** A list of `element`s, validated and passed on unchanged. */
export function longList<Output>(element: z.ZodType<Output>) {
  // zod's array would visit every element.
  return z
    .custom<readonly Output[]>(Array.isArray, 'Expected a list')
    .superRefine((list, context) => {
      let faulty = 0
      for (let index = 0; index < list.length && faulty < FAULTY_AT_MOST; index += 1) {
        const issues = element.safeParse(list[index]).error?.issues ?? []
        if (issues.length > 0) faulty += 1
        for (const { path, message } of issues)
          context.addIssue({ code: 'custom', path: [index, ...path], message, continue: false })
      }
    })
    .meta({ type: 'array', items: jsonSchema(element) })
}
