import type { Command } from '../contract/program.ts'
import type { Dependencies } from '../commands/command.ts'

/** What the commands of `npm run apps` work with. */
export type RegistryDependencies = Pick<Dependencies, 'config' | 'now' | 'print'> & {
  /** Messages to the operator, on stderr. */
  readonly note: (text: string) => void
}

/** A command of `npm run apps`. */
export type RegistryCommand = Command<RegistryDependencies>
