/**
 * CONTRACT 8: the oldest DuckDB on npm for Node opens a published file: tables, views, macros, comments. It is not among the project's
 * packages; OLD_DUCKDB names a folder into which `npm install` has put it, as .ci/run does.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, expect, it } from 'vitest'
import { z } from 'zod'
import { runAt } from '../../../support/pipeline/in-process.ts'
import { TemporaryFolders, copyRaw, currentSnapshot, query } from '../../../support/pipeline/nightly.ts'
import { REPOSITORY } from '../../../support/processes.ts'
import { hasFolder } from '../../../support/programs.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const QUERIES = [
  "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM popular('2026-08-25', '2026-08-31', category := 'coding')",
  "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM trending('2026-08-25', '2026-08-31')",
  "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM trending('2024-08-25', '2026-09-03')",
  "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM popular_by_requests('2026-08-25', '2026-08-31')",
  "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM daily_models('2026-08-25', '2026-08-31')",
  'SELECT CAST(COLUMNS(*) AS VARCHAR) FROM latest_popular',
  'SELECT CAST(COLUMNS(*) AS VARCHAR) FROM latest_trending',
  'SELECT CAST(COLUMNS(*) AS VARCHAR) FROM app_history ORDER BY ALL',
  'SELECT CAST(COLUMNS(*) AS VARCHAR) FROM coverage ORDER BY ALL',
  'SELECT table_name, comment FROM duckdb_tables() ORDER BY ALL',
]

/** A separate process: one process cannot load two versions of the library. */
const OLD_PROGRAM = `
  const { DuckDBInstance } = require('@duckdb/node-api')
  const [file, ...queries] = process.argv.slice(1)
  const ask = async () => {
    const instance = await DuckDBInstance.create(file, { access_mode: 'READ_ONLY' })
    const connection = await instance.connect()
    const answers = []
    for (const sql of queries) answers.push((await connection.runAndReadAll(sql)).getRows())
    process.stdout.write(JSON.stringify(answers))
  }
  ask()`

const answersSchema = z.array(z.array(z.array(z.string().nullable())))

async function askOld(file: string, queries: readonly string[]): Promise<(string | null)[][][]> {
  const child = spawn(process.execPath, ['-e', OLD_PROGRAM, file, ...queries], {
    cwd: process.env['OLD_DUCKDB'],
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return answersSchema.parse(JSON.parse(await text(child.stdout)))
}

it.runIf(hasFolder('OLD_DUCKDB'))('DuckDB 1.1.3 returns the same rows', async () => {
  const dataDir = folders.make()
  copyRaw(dataDir, join(REPOSITORY, 'data', 'sample'))
  await runAt(dataDir, '2026-08-31T02:00:00Z')
  // The second snapshot shares the file of July.
  await runAt(dataDir, '2026-09-01T02:00:00Z')
  const file = join(currentSnapshot(dataDir), 'app-rankings.duckdb')
  const parquet = join(currentSnapshot(dataDir), 'app_daily/*.parquet')
  const queries = [...QUERIES, `SELECT CAST(COLUMNS(*) AS VARCHAR) FROM read_parquet('${parquet}')`]
  const [version, ...answers] = await askOld(file, ['SELECT version()', ...queries])
  expect(version).toEqual([['v1.1.3']])
  for (const [index, sql] of queries.entries()) {
    const rows = (await query(file, sql)).map((row) => Object.values(row))
    expect(rows.length).toBeGreaterThan(0)
    expect(answers[index], sql).toEqual(rows)
  }
})
