/** The commands that show the registry: list, history and unattributed. */
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { UsageError } from '../program/program.ts'
import { JSON_OPTION, printResult } from '../commands/command.ts'
import { UNATTRIBUTED_APP_ID } from '../contract/dataset.ts'
import { RAW_FOLDER } from '../contract/files.ts'
import { withMemoryDatabase } from '../duckdb/memory-database.ts'
import { readRows } from '../duckdb/statements.ts'
import { findFaults, withRegistry } from './registry.ts'
import { command, readId } from './command.ts'
import type { RegistryDependencies } from './command.ts'

const text = z.string().nullable()
const appColumns = {
  app_name: text,
  visibility: text,
  subcategories: z.array(z.string()).nullable(),
  alias_of: text,
}
const listRow = z.object({ app_id: z.string(), ...appColumns, referer: text, updated_at: text })
const historyRow = z.object({ updated_at: text, action: text, reason: text, ...appColumns, file: z.string() })
const accountRow = z.object({
  account_id: text,
  requests: z.string(),
  tokens: z.string(),
  first_day: text,
  last_day: text,
})

export const list = command({
  usage: 'list [TEXT] [--json]',
  summary: 'lists the apps of the registry, or only the apps with TEXT in their id, name or address',
  options: JSON_OPTION,
  takes: [0, 1, 'one text, in quotes when it has spaces'],
  prepare:
    ({ json }, [wanted = '']) =>
    (dependencies) =>
      withRegistry(dependencies.config, async (connection) => {
        const apps = await readRows(connection, 'commands.sql#list', listRow, { text: wanted })
        printRows(dependencies, json, listRow, apps)
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
        const rows = await readRows(connection, 'commands.sql#history', historyRow, { id })
        if (rows.length === 0) throw new UsageError(`No app has the id ${id}: list shows the ids`)
        printRows(dependencies, json, historyRow, rows)
      })
  },
})

/** Only the chat route's files have the account of a request. */
const CHAT_FILES = join(RAW_FOLDER, 'usage', 'date=*', 'chat-*.ndjson')

export const unattributed = command({
  usage: 'unattributed [--json]',
  summary: 'shows served chat requests that named no app, by account: their authors forgot HTTP-Referer',
  options: JSON_OPTION,
  prepare:
    ({ json }) =>
    async (dependencies) => {
      const { dataDir } = dependencies.config
      const parameters = { files: join(dataDir, CHAT_FILES), unattributed: UNATTRIBUTED_APP_ID }
      const accounts =
        globSync(CHAT_FILES, { cwd: dataDir }).length === 0
          ? []
          : await withMemoryDatabase(dependencies.config, (connection) =>
              readRows(connection, 'commands.sql#unattributed', accountRow, parameters),
            )
      printRows(dependencies, json, accountRow, accounts)
    },
})

/** Prints rows as JSON, or as tab-separated lines with a header. */
function printRows(
  dependencies: RegistryDependencies,
  json: boolean,
  { shape }: z.ZodObject,
  rows: readonly Readonly<Record<string, unknown>>[],
): void {
  const columns = Object.keys(shape)
  const lines = rows.map((row) => columns.map((column) => cellText(row[column])))
  const table = [columns, ...lines].map((cells) => cells.join('\t'))
  printResult(dependencies, json, rows, table)
}

/** Tabs and line breaks in a name would break the table. */
function cellText(value: unknown): string {
  const cell = Array.isArray(value) ? value.join('|') : typeof value === 'string' ? value : ''
  return cell.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ')
}
