/** Entry of `npm run sql`: a small read-only SQL prompt on the newest snapshot. */
import './program/runtime.js'
import { DuckDBTimestampTZValue } from '@duckdb/node-api'
import type { DuckDBConnection } from '@duckdb/node-api'
import { createInterface, type Interface } from 'node:readline/promises'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import {
  failureText,
  UsageError,
  parseCommandLine,
  runAsProcess,
  type CommandLine,
} from './program/program.ts'
import { readConfig } from './config.ts'
import { messageOf } from './errors.ts'
import { withSnapshots } from './snapshot/reader.ts'
import { findCurrent } from './snapshot/list.ts'
import { formatTable } from './terminal/table-text.ts'

type Output = Pick<CommandLine, 'print' | 'note'>
type Input = Readable & { readonly isTTY?: boolean }

const PROMPT = 'sql> '
const CONTINUED = '  -> '

/** Puts files, databases and extensions out of reach of the SQL. */
const SAFE = 'SET enable_external_access = false; SET lock_configuration = true'

const INTERRUPT_PAUSE_MS = 20

/** Most rows shown on a terminal: a table of the dataset may have a hundred million. */
const SHOWN_ROWS = 1000

// UTC, as everywhere in the dataset, whatever the machine's time zone.
DuckDBTimestampTZValue.timezoneOffsetInMinutes = 0

const HELP = `Usage: npm run sql -- [--safe] [SQL]

Queries the newest snapshot, read-only. Without SQL it reads statements, each ended by a semicolon,
from the terminal or from stdin. On a terminal Ctrl-C stops a statement, and a long result is cut
after ${SHOWN_ROWS} rows.

The snapshot cannot be changed. The files of this machine can: COPY, ATTACH and read_csv work as
your user. With --safe, for SQL from others, DuckDB refuses all of them, extensions and changes of
settings too.

  FROM latest_popular LIMIT 10;
  FROM trending('2026-08-25', '2026-08-31', category := 'coding');
  SELECT table_name, comment FROM duckdb_tables();

Settings (environment): DATA_DIR, PIPELINE_MEMORY; see README.md
`

// The alternatives cannot match the same text: otherwise a line of dashes backtracks exponentially.
const NO_STATEMENT = /^(?:\s|;|--[^\n]*(?:\n|$)|\/\*[^*]*\*+(?:[^*/][^*]*\*+)*\/)*$/

/** Prints the result of each statement, at most `rows` of each. */
async function answer(
  connection: DuckDBConnection,
  sql: string,
  line: Output,
  rows = Infinity,
): Promise<void> {
  if (NO_STATEMENT.test(sql)) throw new UsageError('There is no statement to run. See --help')
  const statements = await connection.extractStatements(sql)
  for (let index = 0; index < statements.count; index += 1) {
    const statement = await statements.prepare(index)
    // One row more shows whether the result is cut.
    const reader = await statement.streamAndReadUntil(rows + 1)
    line.print(formatTable(reader.columnNames(), reader.getRowsJson().slice(0, rows)))
    if (reader.currentRowCount > rows) {
      line.note(`These are the first ${rows} rows; COPY (FROM ...) TO 'file.csv' writes all of them`)
    }
  }
}

/** Runs one interruptible DuckDB statement at a time. */
function createInterruptible(connection: DuckDBConnection) {
  let runs = false
  let interrupting: NodeJS.Timeout | undefined
  return {
    runs: () => runs,
    async run(work: () => Promise<void>): Promise<void> {
      runs = true
      try {
        await work()
      } finally {
        runs = false
        clearInterval(interrupting)
        interrupting = undefined
      }
    },
    /** Interrupts repeatedly: DuckDB forgets an interruption that comes before a statement has begun. */
    interrupt(): void {
      interrupting ??= setInterval(() => connection.interrupt(), INTERRUPT_PAUSE_MS)
    },
  }
}

/**
 * Runs statements until the user leaves, also after one that fails. Ctrl-C stops a running statement, clears a half-typed
 * one, and otherwise leaves.
 */
async function converse(connection: DuckDBConnection, output: Output): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout, prompt: PROMPT })
  const asked = createInterruptible(connection)
  let statement = ''
  const prompt = () => {
    terminal.setPrompt(statement.trim() === '' ? PROMPT : CONTINUED)
    terminal.prompt()
  }
  terminal.on('SIGINT', () => {
    if (asked.runs()) return asked.interrupt()
    if (statement === '' && terminal.line === '') return terminal.close()
    statement = ''
    eraseLine(terminal)
    prompt()
  })
  prompt()
  for await (const line of terminal) {
    if (statement === '' && /^\.?(?:exit|quit|q)$/.test(line.trim())) break
    statement += `${line}\n`
    if (line.trimEnd().endsWith(';')) {
      const whole = statement
      await asked
        .run(() => answer(connection, whole, output, SHOWN_ROWS))
        .catch((error: unknown) => output.note(messageOf(error)))
      statement = ''
    }
    prompt()
  }
  terminal.close()
}

/** Erases the current line: from the cursor to its end, then back to its start. */
function eraseLine(terminal: Interface): void {
  terminal.write(null, { ctrl: true, name: 'e' })
  terminal.write(null, { ctrl: true, name: 'u' })
}

/** Runs the statements among the arguments; without any, the statements in `input`. */
async function ask({ args, environment, ...output }: CommandLine, input: Input): Promise<void> {
  const { values, positionals } = parseCommandLine({
    args: [...args],
    options: { help: { type: 'boolean', short: 'h' }, safe: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  if (values.help === true) return output.print(HELP.trimEnd())
  const config = readConfig(environment)
  const found = findCurrent(config.dataDir)
  if ('reason' in found) throw new UsageError(`${found.reason}: npm run nightly makes a snapshot`)
  const { id } = found
  await withSnapshots(config, { snapshot: id }, async (connection) => {
    await connection.run('USE snapshot')
    if (values.safe) await connection.run(SAFE)
    if (positionals.length > 0) return answer(connection, positionals.join(' '), output)
    if (input.isTTY !== true) return answer(connection, await text(input), output)
    const files = values.safe
      ? 'files of this machine are out of reach'
      : 'files of this machine are not (see --safe)'
    output.note(`Snapshot ${id} is read-only, ${files}. End a statement with a semicolon; exit leaves`)
    await converse(connection, output)
  })
}

/** Runs the prompt, or the statements among the arguments; resolves to the exit code. */
export async function sqlPrompt(line: CommandLine, input: Input = process.stdin): Promise<number> {
  try {
    await ask(line, input)
    return 0
  } catch (error) {
    // DuckDB's messages begin with their kind: `Parser Error: `.
    const isOfDuckDb = error instanceof Error && /^\w+(?: \w+)* Error: /.test(error.message)
    line.note(isOfDuckDb ? error.message : failureText(error))
    return 2
  }
}

if (import.meta.main) await runAsProcess(sqlPrompt)
