/** Entry of `npm run sql`: one query over the newest snapshot, read-only. For a prompt: `duckdb -readonly`. */
import './program/runtime.js'
import { DuckDBTimestampTZValue } from '@duckdb/node-api'
import { printRows } from './commands/command.ts'
import { readConfig } from './config.ts'
import { withMemoryDatabase } from './duckdb/database.ts'
import { messageOf } from './errors.ts'
import { exitCodeOf, runAsProcess, UsageError, wantsHelp, type CommandLine } from './program/program.ts'
import { withPublished } from './snapshot/attach.ts'
import { findCurrent } from './snapshot/list.ts'

const HELP = `Usage: npm run sql -- "FROM latest_popular LIMIT 10"

Prints the result of a query over the newest snapshot, which cannot be changed; read_csv and COPY
work with the files of this machine. For a prompt: duckdb -readonly data/current/app-rankings.duckdb`

const TAKES_ONE = `sql takes one query.\n\n${HELP}`

/** DuckDB's errors about the text of a query, or about what it does. They show the place. */
const FAULT_OF_QUERY = /^(?:Parser|Binder|Catalog|Conversion|Invalid Input|Out of Range) Error: /

/** Runs the query of the arguments; resolves to the exit code. */
function query({ args, environment, print, note }: CommandLine): Promise<number> {
  return exitCodeOf({ note }, async () => {
    const [sql, ...rest] = args
    if (wantsHelp(args)) return print(HELP)
    if (sql === undefined || rest.length > 0) throw new UsageError(TAKES_ONE)
    const config = readConfig(environment)
    const found = findCurrent(config.dataDir)
    if ('reason' in found) throw new UsageError(`${found.reason}: npm run nightly makes a snapshot`)
    // UTC, as everywhere in the dataset, whatever the machine's time zone.
    DuckDBTimestampTZValue.timezoneOffsetInMinutes = 0
    await withMemoryDatabase(config, (connection) =>
      withPublished({ connection, config }, found.id, 'snapshot', async () => {
        await connection.run('USE snapshot')
        const rows = await connection.runAndReadAll(sql)
        await connection.run('USE memory')
        // Nothing but a comment: a mistyped option.
        if (rows.columnCount === 0) throw new UsageError(TAKES_ONE)
        printRows({ print }, false, rows)
      }),
    ).catch((error: unknown) => {
      throw FAULT_OF_QUERY.test(messageOf(error)) ? new UsageError(messageOf(error)) : error
    })
  })
}

if (import.meta.main) await runAsProcess(query)
