/** The commands that show the registry: list and history. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { z } from 'zod'
import { UsageError, parseCommandLine } from '../program/program.ts'
import { JSON_OPTION, printResult } from '../commands/command.ts'
import { readRows } from '../duckdb/statements.ts'
import { readId } from './app-id.ts'
import { findFaults, withRegistry } from './read-registry.ts'
import type { RegistryCommand, RegistryDependencies } from './dependencies.ts'
import { table } from './table.ts'

const appColumns = {
  app_name: z.string().nullable(),
  visibility: z.string().nullable(),
  subcategories: z.array(z.string()).nullable(),
  alias_of: z.string().nullable(),
}
const listRow = z.object({
  app_id: z.string(),
  ...appColumns,
  referer: z.string().nullable(),
  updated_at: z.string().nullable(),
})
const historyRow = z.object({
  updated_at: z.string().nullable(),
  action: z.string().nullable(),
  reason: z.string().nullable(),
  ...appColumns,
  file: z.string(),
})

export const list: RegistryCommand = {
  usage: 'list [TEXT] [--json]',
  summary: 'lists the apps of the registry, or only the apps with TEXT in their id, name or address',
  prepare(args) {
    const { values, positionals } = parseCommandLine({ args, allowPositionals: true, options: JSON_OPTION })
    const [text = '', ...rest] = positionals
    if (rest.length > 0) throw new UsageError('list takes one text, in quotes when it has spaces')
    return (dependencies) =>
      withRegistry(dependencies.config, async (connection) => {
        const apps = await readRows(connection, 'commands.sql#list', listRow, { text })
        printResult(dependencies, values.json, apps, table(Object.keys(listRow.shape), apps))
        await reportFaults(dependencies, connection)
      })
  },
}

export const history: RegistryCommand = {
  usage: 'history ID [--json]',
  summary: 'shows every row about an app, oldest first, with decisions and reasons',
  prepare(args) {
    const { values, positionals } = parseCommandLine({ args, allowPositionals: true, options: JSON_OPTION })
    const [text, ...rest] = positionals
    if (text === undefined || rest.length > 0) throw new UsageError('history takes the id of one app')
    const id = readId(text)
    return (dependencies) =>
      withRegistry(dependencies.config, async (connection) => {
        const rows = await readRows(connection, 'commands.sql#history', historyRow, { id })
        if (rows.length === 0) throw new UsageError(`No app has the id ${id}: list shows the ids`)
        printResult(dependencies, values.json, rows, table(Object.keys(historyRow.shape), rows))
      })
  },
}

async function reportFaults(dependencies: RegistryDependencies, connection: DuckDBConnection): Promise<void> {
  const faults = await findFaults(connection)
  if (faults.length === 0) return
  dependencies.note(
    `Violations in the registry that stop the nightly run: ${faults.length}; the first: ${faults[0]}`,
  )
}
