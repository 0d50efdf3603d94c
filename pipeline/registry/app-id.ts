import { UsageError } from '../program/program.ts'
/** Parses the id of an app as an operator types it. */

const APP_ID = /^-?\d{1,19}$/

/**
 * Normalises an id: `01` is `1`.
 * @throws UsageError if the text is not an id.
 */
export function readId(text: string): string {
  if (!APP_ID.test(text)) throw new UsageError(`"${text}" is not the id of an app: list shows the ids`)
  return BigInt(text).toString()
}
