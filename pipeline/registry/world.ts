import type { World } from '../commands/command.ts'

/** What a command of `npm run apps` may use of the world. */
export type AppsWorld = Pick<World, 'config' | 'now' | 'print'> & {
  /** Messages to the operator, on stderr. */
  readonly note: (text: string) => void
}
