/** Limits of a JSON text beside its length. */
export interface JsonBounds {
  /** Values in lists and objects. */
  readonly elements: number
  /** Lists and objects inside one another. */
  readonly depth: number
}

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPENING_BRACKET = 0x5b
const CLOSING_BRACKET = 0x5d
const OPENING_BRACE = 0x7b
const CLOSING_BRACE = 0x7d

/**
 * The limit that a text exceeds, if any. Checked before parsing, since a parser makes an object of every few
 * characters. Invalid JSON is left to the parser.
 */
export function exceededBound(text: string, bounds: JsonBounds): keyof JsonBounds | undefined {
  let depth = 0
  let elements = 0
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === QUOTE) index = endOfString(text, index)
    else if (code === COMMA) elements += 1
    else if (code === CLOSING_BRACKET || code === CLOSING_BRACE) depth -= 1
    else if (code === OPENING_BRACKET || code === OPENING_BRACE) {
      elements += 1
      depth += 1
      if (depth > bounds.depth) return 'depth'
    }
    if (elements > bounds.elements) return 'elements'
  }
  return undefined
}

/** The position of the quote that closes the one at `start`. */
function endOfString(text: string, start: number): number {
  let index = start + 1
  for (; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === QUOTE) return index
    if (code === BACKSLASH) index += 1
  }
  return index
}
