/** Characters of a field that negotiates: real clients send a few hundred, and its parsers take longer than its length. */
const CHARACTERS = 2000

/** The field; one that is too long is as if it was not sent, as the standard allows for each of them. */
export function unlessLong(field: string | undefined): string | undefined {
  return field !== undefined && field.length > CHARACTERS ? undefined : field
}
