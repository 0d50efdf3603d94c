import type { Command } from '../program/program.ts'
import type { Dependencies } from '../commands/command.ts'

/** Dependencies of the commands of `npm run apps`. */
export type RegistryDependencies = Pick<Dependencies, 'config' | 'now' | 'print'> & {
  /** Messages to the operator, on stderr. */
  readonly note: (text: string) => void
}

export type RegistryCommand = Command<RegistryDependencies>
