/** What the commands of `npm run nightly` have in common. */
import type { Config } from '../config.ts'
import type { Command as ProgramCommand } from '../contract/program.ts'
import { printable } from '../contract/terminal.ts'
import type { Send } from '../contract/webhook.ts'
import type { Progress } from '../terminal/progress.ts'

/** What the commands work with. */
export type Dependencies = {
  readonly config: Config
  readonly progress: Progress
  readonly now: () => Date
  /** How notices leave. */
  readonly send: Send
  /** Data for the user or the next program, on stdout. */
  readonly print: (text: string) => void
}

/** A command of `npm run nightly`. */
export type Command = ProgramCommand<Dependencies>

/** The option that every command with a result understands. */
export const JSON_OPTION = { json: { type: 'boolean', default: false } } as const

/** Prints a result as JSON for machines, or as lines for people, at a terminal that would obey control characters. */
export function printResult(
  { print }: Pick<Dependencies, 'print'>,
  json: boolean,
  result: unknown,
  lines: readonly string[],
): void {
  print(json ? JSON.stringify(result, null, 2) : printable(lines.join('\n')))
}
