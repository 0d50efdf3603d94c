const SHOWN_CHARACTERS = 100

/** What a client sent, in a form fit for a message: at most 100 characters, and an ellipsis for the rest. */
export function shorten(text: string): string {
  // A character has two code units at most, and the text may have millions.
  const characters = Array.from(text.slice(0, 2 * (SHOWN_CHARACTERS + 1)))
  return characters.length <= SHOWN_CHARACTERS ? text : `${characters.slice(0, SHOWN_CHARACTERS).join('')}…`
}
