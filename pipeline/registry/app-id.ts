import { UsageError } from '../contract/program.ts'
/** The id of an app as an operator types it. */

const APP_ID = /^-?\d{1,19}$/

/**
 * An id in its plain form, as the registry has it: `01` is `1`.
 * @throws UsageError when the text is no id.
 */
export function readId(text: string): string {
  if (!APP_ID.test(text)) throw new UsageError(`"${text}" is not the id of an app: list shows the ids`)
  return BigInt(text).toString()
}
