const SHOWN_CHARACTERS = 100

/** What a client sent, in a form fit for a message: at most `most` characters, and an ellipsis for the rest. */
export function shorten(text: string, most = SHOWN_CHARACTERS): string {
  // A character has two code units at most, and the text may have millions.
  const characters = Array.from(text.slice(0, 2 * (most + 1)))
  return characters.length <= most ? text : `${characters.slice(0, most).join('')}…`
}
