/** What the commands of `npm run nightly` share. */
import type { DuckDBResultReader } from '@duckdb/node-api'
import { commandsOf } from '../program/program.ts'
import { printable } from '../program/terminal.ts'
import type { Dependencies as RunDependencies } from '../stages/stage.ts'
import { formatTable } from '../terminal/table-text.ts'

/** Dependencies of the commands. */
export type Dependencies = RunDependencies & {
  /** Data for the user or the next program, on stdout. */
  readonly print: (text: string) => void
}

export const command = commandsOf<Dependencies>()

/** Options that several commands have. */
export const JSON_OPTION = {
  json: { type: 'boolean', default: false, help: 'prints the result as JSON' },
} as const
export const DRY_RUN_OPTION = {
  'dry-run': { type: 'boolean', default: false, help: 'shows what the command would do; writes nothing' },
} as const

/** Prints a result as JSON, or as lines of printable text. */
export function printResult(
  { print }: Pick<Dependencies, 'print'>,
  json: boolean,
  result: unknown,
  lines: readonly string[],
): void {
  print(json ? JSON.stringify(result, null, 2) : printable(lines.join('\n')))
}

/** Prints the rows of a query as JSON, BIGINT as text, or as a table. */
export function printRows(
  { print }: Pick<Dependencies, 'print'>,
  json: boolean,
  rows: DuckDBResultReader,
): void {
  if (json) print(JSON.stringify(rows.getRowObjectsJson(), null, 2))
  else print(formatTable(rows.columnNames(), rows.getRowsJson()))
}
