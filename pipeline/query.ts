/** Entry of `npm run sql`: one query over the newest snapshot, read-only. For a prompt: `duckdb -readonly`. */
import './program/runtime.js'
import { DuckDBTimestampTZValue } from '@duckdb/node-api'
import { printRows } from './commands/command.ts'
import { readConfig } from './config.ts'
import { exitCodeOf, runAsProcess, UsageError, wantsHelp, type CommandLine } from './program/program.ts'
import { findCurrent } from './snapshot/list.ts'
import { withPublished } from './snapshot/attach.ts'
import { withMemoryDatabase } from './duckdb/database.ts'

const HELP = `Usage: npm run sql -- "FROM latest_popular LIMIT 10"

Prints the result of a query over the newest snapshot, which cannot be changed; read_csv and COPY
work with the files of this machine. For a prompt: duckdb -readonly data/current/app-rankings.duckdb`

/** Runs the query of the arguments; resolves to the exit code. */
function query({ args, environment, print, note }: CommandLine): Promise<number> {
  return exitCodeOf({ note }, async () => {
    const [sql, ...rest] = args
    if (wantsHelp(args)) return print(HELP)
    if (sql === undefined || rest.length > 0) throw new UsageError(`sql takes one query.\n\n${HELP}`)
    const config = readConfig(environment)
    const found = findCurrent(config.dataDir)
    if ('reason' in found) throw new UsageError(`${found.reason}: npm run nightly makes a snapshot`)
    // UTC, as everywhere in the dataset, whatever the machine's time zone.
    DuckDBTimestampTZValue.timezoneOffsetInMinutes = 0
    await withMemoryDatabase(config, (connection) =>
      withPublished({ connection, config }, found.id, 'snapshot', async () => {
        await connection.run('USE snapshot')
        printRows({ print }, false, await connection.runAndReadAll(sql))
        await connection.run('USE memory')
      }),
    )
  })
}

if (import.meta.main) await runAsProcess(query)
