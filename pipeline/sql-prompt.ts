/** Entry of `npm run sql`: a small read-only SQL prompt on the newest snapshot. */
import type { DuckDBConnection } from '@duckdb/node-api'
import { createInterface } from 'node:readline/promises'
import { text } from 'node:stream/consumers'
import { note, parseCommandLine, print } from './command-line.ts'
import { readConfig } from './config.ts'
import { UsageError, isExpected, messageOf, stackOf } from './errors.ts'
import { withSnapshots } from './snapshot-reader.ts'
import { currentSnapshot } from './snapshots.ts'
import { formatTable } from './table-text.ts'

const HELP = `Usage: npm run sql -- [SQL]

Asks the newest snapshot, read-only. Without SQL it reads statements, each ended by a semicolon, from the terminal
or from stdin.

  FROM latest_popular LIMIT 10;
  FROM trending('2026-08-25', '2026-08-31', category := 'coding');
  SELECT table_name, comment FROM duckdb_tables();

Settings (environment): DATA_DIR, PIPELINE_MEMORY; see README.md
`

const PROMPT = 'sql> '
const CONTINUED = '  -> '

/** Prints what each of the statements gives. */
async function answer(connection: DuckDBConnection, sql: string): Promise<void> {
  const statements = await connection.extractStatements(sql)
  for (let index = 0; index < statements.count; index += 1) {
    const statement = await statements.prepare(index)
    const reader = await statement.runAndReadAll()
    print(formatTable(reader.columnNames(), reader.getRowsJson()))
  }
}

/** Answers until the user leaves; a statement that fails is told, and the next is asked. */
async function converse(connection: DuckDBConnection): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout, prompt: PROMPT })
  let statement = ''
  terminal.prompt()
  for await (const line of terminal) {
    if (statement === '' && /^\.?(?:exit|quit|q)$/.test(line.trim())) break
    statement += `${line}\n`
    if (line.trimEnd().endsWith(';')) {
      await answer(connection, statement).catch((error: unknown) => note(messageOf(error)))
      statement = ''
    }
    terminal.setPrompt(statement.trim() === '' ? PROMPT : CONTINUED)
    terminal.prompt()
  }
  terminal.close()
}

async function main(): Promise<void> {
  const { values, positionals } = parseCommandLine({
    options: { help: { type: 'boolean' } },
    allowPositionals: true,
  })
  if (values.help === true) return print(HELP.trimEnd())
  const config = readConfig(process.env)
  const id = currentSnapshot(config.dataDir)
  if (id === undefined) throw new UsageError('Nothing is published yet: npm run nightly makes a snapshot')
  await withSnapshots(config, { snapshot: id }, async (connection) => {
    await connection.run('USE snapshot')
    if (positionals.length > 0) return answer(connection, positionals.join(' '))
    if (!process.stdin.isTTY) return answer(connection, await text(process.stdin))
    note(`Snapshot ${id}, read-only. End a statement with a semicolon; exit leaves`)
    await converse(connection)
  })
}

try {
  await main()
} catch (error) {
  const crash = !(error instanceof Error) || (!isExpected(error) && !/Error: /.test(error.message))
  note(crash ? stackOf(error) : error.message)
  process.exitCode = 2
}
