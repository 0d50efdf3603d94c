/** The commands that show the registry: list, history and unattributed. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { UsageError, parseCommandLine } from '../program/program.ts'
import { JSON_OPTION, printResult } from '../commands/command.ts'
import { UNATTRIBUTED_APP_ID } from '../contract/dataset.ts'
import { RAW_FOLDER } from '../contract/files.ts'
import { withMemoryDatabase } from '../duckdb/memory-database.ts'
import { readRows } from '../duckdb/statements.ts'
import { readId } from './decisions.ts'
import { findFaults, withRegistry } from './read-registry.ts'
import type { RegistryCommand, RegistryDependencies } from './dependencies.ts'

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

/** Only the chat route's files have the account of a request. */
const CHAT_FILES = join(RAW_FOLDER, 'usage', 'date=*', 'chat-*.ndjson')

const accountRow = z.object({
  account_id: z.string().nullable(),
  requests: z.string(),
  tokens: z.string(),
  first_day: z.string().nullable(),
  last_day: z.string().nullable(),
})

export const unattributed: RegistryCommand = {
  usage: 'unattributed [--json]',
  summary: 'shows served chat requests that named no app, by account: their authors forgot HTTP-Referer',
  prepare(args) {
    const { values, positionals } = parseCommandLine({ args, allowPositionals: true, options: JSON_OPTION })
    if (positionals.length > 0) throw new UsageError('unattributed takes no arguments')
    return async (dependencies) => {
      const { dataDir } = dependencies.config
      const [anyFile] = await Array.fromAsync(glob(CHAT_FILES, { cwd: dataDir }))
      const parameters = { files: join(dataDir, CHAT_FILES), unattributed: UNATTRIBUTED_APP_ID }
      const accounts =
        anyFile === undefined
          ? []
          : await withMemoryDatabase(dependencies.config, (connection) =>
              readRows(connection, 'commands.sql#unattributed', accountRow, parameters),
            )
      printResult(dependencies, values.json, accounts, table(Object.keys(accountRow.shape), accounts))
    }
  },
}

/** Rows as tab-separated lines with a header. */
function table(columns: readonly string[], rows: readonly Readonly<Record<string, unknown>>[]): string[] {
  const lines = rows.map((row) => columns.map((column) => cellText(row[column])))
  return [columns, ...lines].map((cells) => cells.join('\t'))
}

/** Tabs and line breaks in a name would break the table. */
function cellText(value: unknown): string {
  const text = Array.isArray(value) ? value.join('|') : typeof value === 'string' ? value : ''
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ')
}
