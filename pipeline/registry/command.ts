/** What the commands of `npm run apps` share. */
import type { Dependencies } from '../commands/command.ts'
import { commandsOf, UsageError } from '../program/program.ts'

export type RegistryDependencies = Pick<Dependencies, 'config' | 'now' | 'print'> & {
  /** Messages to the operator, on stderr. */
  readonly note: (text: string) => void
}

export const command = commandsOf<RegistryDependencies>()

/**
 * Normalises the id of an app: `01` is `1`.
 * @throws UsageError if the text is not an id.
 */
export function readId(text: string): string {
  if (/^-?\d{1,19}$/.test(text)) return BigInt(text).toString()
  throw new UsageError(`"${text}" is not the id of an app: list shows the ids`)
}
