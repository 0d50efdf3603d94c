/** What the commands of `npm run nightly` share. */
import { commandsOf } from '../program/program.ts'
import { printable } from '../program/terminal.ts'
import type { Dependencies as RunDependencies } from '../stages/stage.ts'

/** Dependencies of the commands. */
export type Dependencies = RunDependencies & {
  /** Data for the user or the next program, on stdout. */
  readonly print: (text: string) => void
}

export const command = commandsOf<Dependencies>()

/** Prints a result as JSON, or as lines of printable text. */
export function printResult(
  { print }: Pick<Dependencies, 'print'>,
  json: boolean,
  result: unknown,
  lines: readonly string[],
): void {
  print(json ? JSON.stringify(result, null, 2) : printable(lines.join('\n')))
}
