/** What a command of `npm run nightly` is. */
import type { Config } from '../config.ts'
import type { Send } from '../notices.ts'
import { printable } from '../terminal/printable.ts'
import type { Progress } from '../terminal/progress.ts'

/** What a command may use of the world. */
export type World = {
  readonly config: Config
  readonly progress: Progress
  readonly now: () => Date
  /** How notices leave. */
  readonly send: Send
  /** Data for the user or the next program, on stdout. */
  readonly print: (text: string) => void
}

/** A command; `Needs` is what it uses of the world. */
export type Command<Needs = World> = {
  /** One line: the command with its arguments, and what it does. */
  readonly usage: string
  readonly summary: string
  /** Reads the arguments after the command's name, before anything is opened, and returns what is to be done. */
  readonly prepare: (args: string[]) => (world: Needs) => Promise<void>
}

/** The option that every command with a result understands. */
export const JSON_OPTION = { json: { type: 'boolean', default: false } } as const

/** Prints a result as JSON for machines, or as lines for people, at a terminal that would obey control characters. */
export function printResult(
  { print }: Pick<World, 'print'>,
  json: boolean,
  result: unknown,
  lines: readonly string[],
): void {
  print(json ? JSON.stringify(result, null, 2) : printable(lines.join('\n')))
}
