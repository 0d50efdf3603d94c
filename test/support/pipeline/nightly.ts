/** The pipeline as its users see it: commands over a DATA_DIR, and the resulting DuckDB file. */
import { cpSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { atEnd, makeFolder } from '../folders.ts'
import { runCommandLine, startProgram, type Ended } from '../processes.ts'

/** A row as text, so that no digit is lost. */
export type TextRow = Readonly<Record<string, string | null>>

/** Runs any command of `npm run nightly` in the test's process. */
export async function runCommand(dataDir: string, ...args: readonly string[]): Promise<Ended> {
  // Loaded on demand: most API tests do not use the pipeline.
  const { nightly } = await import('../../../pipeline/nightly.ts')
  const { createProgress } = await import('../../../pipeline/terminal/progress.ts')
  return await runCommandLine(
    (line) => nightly(line, createProgress({ write: (text) => line.note(text.replace(/\n$/, '')) })),
    args,
    { DATA_DIR: dataDir },
  )
}

/** Starts any command of `npm run nightly` as a process. */
export function startNightly(dataDir: string, ...args: readonly string[]) {
  return startProgram('pipeline/nightly.ts', args, { DATA_DIR: dataDir })
}

/** A run that must publish or find nothing new; otherwise the error holds its messages. */
export async function publish(dataDir: string, asOf: string, ...options: readonly string[]): Promise<Ended> {
  const run = await runCommand(dataDir, 'run', '--as-of', asOf, ...options)
  if (run.code !== 0) throw new Error(`The run ended with ${run.code ?? run.signal}:\n${run.stderr}`)
  return run
}

/** Writes a raw file below DATA_DIR/raw, with its folders. */
export function writeRaw(dataDir: string, path: string, content: string | Uint8Array): void {
  const target = join(dataDir, 'raw', path)
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, content)
}

/** Writes a file of the registry from rows of its six columns. */
export function register(dataDir: string, rows: readonly string[], file = 'registry.csv'): void {
  const header = 'app_id,app_name,visibility,subcategories,alias_of,updated_at'
  writeRaw(dataDir, `apps/${file}`, [header, ...rows].join('\n'))
}

/** A new DATA_DIR, with a registry of public apps of these names; their ids count from 1. */
export function withApps(...names: readonly string[]): string {
  const dataDir = makeFolder()
  const rows = names.map((name, index) => `${index + 1},${name},public,,,2025-01-01`)
  register(dataDir, rows)
  return dataDir
}

/** Writes a file of a day's usage from rows of app_id, prompt_tokens and completion_tokens. */
export function deliver(dataDir: string, day: string, rows: readonly string[], file = 'rows.csv'): void {
  const lines = ['ts,app_id,prompt_tokens,completion_tokens', ...rows.map((row) => `${day},${row}`)]
  writeRaw(dataDir, `usage/date=${day}/${file}`, `${lines.join('\n')}\n`)
}

/** A new DATA_DIR with these rows of the registry, and usage of a day. */
export function withRegistry(registry: readonly string[], day: string, rows: readonly string[]): string {
  const dataDir = makeFolder()
  register(dataDir, registry)
  deliver(dataDir, day, rows)
  return dataDir
}

/** Copies a folder of raw input over DATA_DIR/raw. */
export function copyRaw(dataDir: string, source: string): void {
  cpSync(source, join(dataDir, 'raw'), { recursive: true })
}

/** Folder of the current snapshot. */
export function currentSnapshot(dataDir: string): string {
  return realpathSync(join(dataDir, 'current'))
}

/** A connection to a DuckDB database until the end of the test file. */
export async function connectTo(file = ':memory:', options: Readonly<Record<string, string>> = {}) {
  const instance = await DuckDBInstance.create(file, options)
  const connection = await instance.connect()
  atEnd(() => {
    connection.closeSync()
    instance.closeSync()
  })
  return connection
}

/** Works in UTC on a DuckDB database, in memory or in a file, and closes it. */
export async function withDatabase<Result>(
  work: (connection: DuckDBConnection) => Promise<Result>,
  file = ':memory:',
  options: Readonly<Record<string, string>> = {},
): Promise<Result> {
  const instance = await DuckDBInstance.create(file, options)
  const connection = await instance.connect()
  try {
    await connection.run("SET TimeZone = 'UTC'")
    return await work(connection)
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** Writes the rows of a query into a Parquet file, with its folders. */
export async function writeParquet(path: string, sql: string, rowGroup = 122_880): Promise<void> {
  mkdirSync(dirname(path), { recursive: true })
  const options = `(FORMAT parquet, ROW_GROUP_SIZE ${rowGroup})`
  await withDatabase((connection) => connection.run(`COPY (${sql}) TO '${path}' ${options}`))
}

/** Queries a DuckDB file, read-only; every value is text. */
export function query(file: string, sql: string): Promise<TextRow[]> {
  const read = async (connection: DuckDBConnection) => {
    const reader = await connection.runAndReadAll(`SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (${sql})`)
    return reader.getRowObjectsJS().map((row) => Object.fromEntries(Object.entries(row).map(asText)))
  }
  return withDatabase(read, file, { access_mode: 'READ_ONLY' })
}

function asText([column, value]: [string, unknown]): [string, string | null] {
  return [column, typeof value === 'string' ? value : null]
}

/** Queries the current snapshot of a DATA_DIR. */
export function queryCurrent(dataDir: string, sql: string): Promise<TextRow[]> {
  return query(join(currentSnapshot(dataDir), 'app-rankings.duckdb'), sql)
}
