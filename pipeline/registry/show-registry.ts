/** The commands of `npm run apps` that show the registry: list and history. */
import type { Dependencies } from '../commands/command.ts'
import { sqlFile } from '../duckdb/statements.ts'
import { JSON_OPTION } from '../program/options.ts'
import { UsageError, commandsOf } from '../program/program.ts'
import { printRows } from '../program/terminal.ts'
import { findFaults, withRegistry } from './registry.ts'

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

export const list = command({
  summary: 'lists the apps of the registry, or only the apps with TEXT in their id, name or address',
  takes: '[TEXT]',
  options: JSON_OPTION,
  work: (dependencies, { json }, [text = '']) =>
    withRegistry(dependencies.config, async (connection) => {
      const apps = await connection.runAndReadAll(sqlFile('commands.sql#list'), { text })
      printRows({ ...dependencies, json }, apps.columnNames(), apps.getRowsJson())
      const faults = await findFaults(connection)
      if (faults.length === 0) return
      dependencies.note(
        `Violations in the registry that stop the nightly run: ${faults.length}; the first: ${faults[0]}`,
      )
    }),
})

export const history = command({
  summary: 'shows every row about an app, oldest first, with decisions and reasons',
  takes: 'ID',
  options: JSON_OPTION,
  async work(dependencies, { json }, [given = '']) {
    const id = readId(given)
    await withRegistry(dependencies.config, async (connection) => {
      const rows = await connection.runAndReadAll(sqlFile('commands.sql#history'), { id })
      if (rows.currentRowCount === 0) throw new UsageError(`No app has the id ${id}: list shows the ids`)
      printRows({ ...dependencies, json }, rows.columnNames(), rows.getRowsJson())
    })
  },
})
