/** Entry of `npm run sql`: one query over the newest snapshot, read-only. For a prompt: `duckdb -readonly`. */
import './program/runtime.js'
import { DuckDBTimestampTZValue } from '@duckdb/node-api'
import { readConfig, refuseMissing } from './config.ts'
import { withMemoryDatabase } from './duckdb/database.ts'
import { isShortage, messageOf } from './errors.ts'
import { ProgramError, UsageError, programOf, runAsProcess } from './program/program.ts'
import { printRows } from './program/terminal.ts'
import { withPublished } from './snapshot/attach.ts'
import { NONE_CURRENT, currentSnapshot } from './snapshot/list.ts'

const query = programOf('npm run sql', {
  summary:
    'prints the result of a query over the newest snapshot, such as "FROM latest_popular LIMIT 10". The snapshot cannot be ' +
    'changed; read_csv and COPY work with the files of this machine. For a prompt: ' +
    'duckdb -readonly data/current/app-rankings.duckdb',
  takes: 'QUERY',
  options: {},
  async work({ environment, print }, _options, [sql = '']) {
    const config = readConfig(environment)
    refuseMissing(config)
    const current = currentSnapshot(config.dataDir)
    if (current === undefined) throw new UsageError(NONE_CURRENT)
    // UTC, as everywhere in the dataset, whatever the machine's time zone.
    DuckDBTimestampTZValue.timezoneOffsetInMinutes = 0
    await withMemoryDatabase(config, (connection) =>
      withPublished({ connection, config }, current, 'snapshot', async () => {
        await connection.run('USE snapshot')
        const rows = await connection.runAndReadAll(sql)
        await connection.run('USE memory')
        if (rows.columnCount === 0) throw new UsageError(`"${sql}" is no query. See npm run sql -- --help`)
        printRows({ print, json: false }, rows.columnNames(), rows.getRowsJson())
      }),
    ).catch((error: unknown) => {
      // DuckDB's own words show the place in the query.
      throw error instanceof ProgramError || isShortage(error) ? error : new UsageError(messageOf(error))
    })
  },
})

// A query may begin with a comment, which looks like an option.
if (import.meta.main) await runAsProcess((line) => query({ ...line, args: ['--', ...line.args] }))
