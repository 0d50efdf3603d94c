/** What the commands of `npm run nightly` share. */
import type { Config } from '../config.ts'
import type { Command as ProgramCommand } from '../program/program.ts'
import { printable } from '../program/terminal.ts'
import type { Dependencies as RunDependencies } from '../dependencies.ts'

/** Dependencies of the commands. */
export type Dependencies = RunDependencies & {
  readonly config: Config
  /** Data for the user or the next program, on stdout. */
  readonly print: (text: string) => void
}

export type Command = ProgramCommand<Dependencies>

/** The option of every command with a result. */
export const JSON_OPTION = { json: { type: 'boolean', default: false } } as const

/** Prints a result as JSON, or as lines of printable text. */
export function printResult(
  { print }: Pick<Dependencies, 'print'>,
  json: boolean,
  result: unknown,
  lines: readonly string[],
): void {
  print(json ? JSON.stringify(result, null, 2) : printable(lines.join('\n')))
}
