const SHOWN_CHARACTERS = 100

/** Client input shortened for a message: at most `most` characters, then an ellipsis. */
export function shorten(text: string, most = SHOWN_CHARACTERS): string {
  // A character has at most two code units, and the text may have millions.
  const characters = Array.from(text.slice(0, 2 * (most + 1)))
  return characters.length <= most ? text : `${characters.slice(0, most).join('')}…`
}
