/** The command that lists chat requests without an app. */
import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { JSON_OPTION, printResult } from '../commands/command.ts'
import { UNATTRIBUTED_APP_ID } from '../contract/dataset.ts'
import { RAW_FOLDER } from '../contract/files.ts'
import { parseCommandLine, UsageError } from '../program/program.ts'
import { withMemoryDatabase } from '../duckdb/memory-database.ts'
import { readRows } from '../duckdb/statements.ts'
import type { RegistryCommand } from './dependencies.ts'
import { table } from './table.ts'

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
