/** The commands of `npm run apps` that show the registry: list and history. */
import { JSON_OPTION, printRows, type Dependencies } from '../commands/command.ts'
import { sqlFile } from '../duckdb/statements.ts'
import { commandsOf, UsageError } from '../program/program.ts'
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
  usage: 'list [TEXT] [--json]',
  summary: 'lists the apps of the registry, or only the apps with TEXT in their id, name or address',
  options: JSON_OPTION,
  takes: [0, 1, 'one text, in quotes when it has spaces'],
  prepare:
    ({ json }, [text = '']) =>
    (dependencies) =>
      withRegistry(dependencies.config, async (connection) => {
        const apps = await connection.runAndReadAll(sqlFile('commands.sql#list'), { text })
        printRows(dependencies, json, apps)
        const faults = await findFaults(connection)
        if (faults.length === 0) return
        dependencies.note(
          `Violations in the registry that stop the nightly run: ${faults.length}; the first: ${faults[0]}`,
        )
      }),
})

export const history = command({
  usage: 'history ID [--json]',
  summary: 'shows every row about an app, oldest first, with decisions and reasons',
  options: JSON_OPTION,
  takes: [1, 1, 'the id of one app'],
  prepare({ json }, [given = '']) {
    const id = readId(given)
    return (dependencies) =>
      withRegistry(dependencies.config, async (connection) => {
        const rows = await connection.runAndReadAll(sqlFile('commands.sql#history'), { id })
        if (rows.currentRowCount === 0) throw new UsageError(`No app has the id ${id}: list shows the ids`)
        printRows(dependencies, json, rows)
      })
  },
})
