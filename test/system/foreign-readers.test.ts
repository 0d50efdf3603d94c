/**
 * CONTRACT 4.6 and 8: what others read snapshots with, in their folder and over HTTP: researchers' libraries in Python, the
 * oldest DuckDB on npm for Node, and a browser. None is a dependency of the project: PYTHON_READERS, OLD_DUCKDB and
 * API_CLIENTS name folders with them, as .ci/run installs them.
 */
import { createServer } from 'node:http'
import { join } from 'node:path'
import express, { type RequestHandler } from 'express'
import { chromium } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { startSampleApi, type Api } from '../support/api.ts'
import { makeFolder } from '../support/folders.ts'
import { LONG } from '../support/long.ts'
import { currentSnapshot, queryCurrent } from '../support/pipeline/nightly.ts'
import { listen } from '../support/ports.ts'
import { startProcess } from '../support/processes.ts'
import { findProgram, hasFolder } from '../support/programs.ts'

const dataDir = makeFolder()
let api: Api

beforeAll(async () => {
  api = await startSampleApi(dataDir)
})

const address = () => `${api.base}/datasets/app-rankings/snapshots/20260901T020000Z`

async function rowsOf(table: string, where = 'true'): Promise<number> {
  const [row] = await queryCurrent(dataDir, `SELECT count(*) AS rows FROM ${table} WHERE ${where}`)
  return Number(row?.['rows'])
}

/** What a program prints as JSON. */
async function jsonOf(command: string, args: readonly string[], environment = {}): Promise<unknown> {
  const { stdout, stderr, code } = await startProcess(command, args, { environment }).ended
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout)
}

const SMALL = ['rankings', 'apps', 'categories', 'coverage', 'restatements', 'meta'] as const
const TABLES = [...SMALL, 'app_daily', 'model_daily'] as const

/** Prints how many rows each reader finds in each table, and the totals of a view as pandas has them. */
const READ_FOLDER = `
import json, sys, duckdb, pandas, polars, pyarrow.parquet

from datasets import load_dataset
folder, *tables = sys.argv[1:]
found = {}
for table in tables:
    path = f"{folder}/{table}" if table.endswith("_daily") else f"{folder}/{table}.parquet"
    found[table] = [
        pyarrow.parquet.read_table(path).num_rows,
        len(pandas.read_parquet(path)),
        polars.scan_parquet(path).collect().height,
    ]
for table in ("app_daily", "rankings"):
    found[table].append(load_dataset(folder, table, split="train").num_rows)
database = duckdb.connect(f"{folder}/app-rankings.duckdb", read_only=True)
found["app_history"] = database.sql("SELECT count(*) FROM app_history").fetchall()[0][0]
found["as_of"] = database.sql("SELECT as_of_text FROM meta").fetchall()[0][0]
found["popular"] = [str(n) for n in database.sql("FROM latest_popular").df()["total_tokens"].tolist()]
print(json.dumps(found))
`

/** Prints how many records mlcroissant finds in each record set. */
const READ_CROISSANT = `
import json, sys, mlcroissant

dataset = mlcroissant.Dataset(jsonld=sys.argv[1])
print(json.dumps({s.id: sum(1 for _ in dataset.records(s.id)) for s in dataset.metadata.record_sets}))
`

const withPython = it.runIf(hasFolder('PYTHON_READERS'))

/** The JSON that a Python program prints; its caches stand in a temporary folder. */
function python(program: string, ...args: readonly string[]): Promise<unknown> {
  const environment = { HF_HOME: makeFolder(), HF_HUB_OFFLINE: '1', CROISSANT_CACHE: makeFolder() }
  const executable = join(String(process.env['PYTHON_READERS']), 'bin', 'python')
  return jsonOf(executable, ['-c', program, ...args], environment)
}

withPython('pyarrow, pandas, polars, datasets and DuckDB read every table to the digit', LONG, async () => {
  const found = z
    .object({ app_history: z.int(), as_of: z.string(), popular: z.array(z.string()) })
    .catchall(z.array(z.int()))
    .parse(await python(READ_FOLDER, currentSnapshot(dataDir), ...TABLES))
  for (const table of TABLES) expect(new Set(found[table])).toEqual(new Set([await rowsOf(table)]))
  expect(found.app_history).toBe(await rowsOf('app_daily'))
  expect(found.as_of).toBe('2026-09-01T02:00:00Z')
  const popular = await queryCurrent(dataDir, 'SELECT total_tokens FROM latest_popular ORDER BY rank')
  expect(found.popular).toEqual(popular.map(({ total_tokens }) => total_tokens))
})

withPython.each([
  ['folder', () => currentSnapshot(dataDir)],
  ['address', address],
])('mlcroissant loads every table and month from its %s', LONG, async (_place, placeOf) => {
  const found = z
    .record(z.string(), z.int())
    .parse(await python(READ_CROISSANT, `${placeOf()}/croissant.json`))
  for (const table of SMALL) expect(found[table]).toBe(await rowsOf(table))
  for (const table of ['app_daily', 'model_daily'])
    for (const month of ['2026-07', '2026-08'])
      expect(found[`${table}/${month}`]).toBe(await rowsOf(table, `strftime(day, '%Y-%m') = '${month}'`))
})

const QUERIES = [
  "FROM popular('2026-08-25', '2026-08-31', category := 'coding')",
  "FROM trending('2026-08-25', '2026-08-31')",
  "FROM trending('2024-08-25', '2026-09-03')",
  "FROM popular_by_requests('2026-08-25', '2026-08-31')",
  "FROM daily_models('2026-08-25', '2026-08-31')",
  'FROM latest_popular',
  'FROM latest_trending',
  'FROM app_history ORDER BY ALL',
  'FROM coverage ORDER BY ALL',
  'FROM (SELECT table_name, comment FROM duckdb_tables()) ORDER BY ALL',
].map((sql) => `SELECT CAST(COLUMNS(*) AS VARCHAR) ${sql}`)

/** A separate process: one process cannot load two versions of the library. */
const ASK_OLD = `
  const { DuckDBInstance } = require(process.argv[1])
  const [file, ...queries] = process.argv.slice(2)
  const ask = async () => {
    const instance = await DuckDBInstance.create(file, { access_mode: 'READ_ONLY' })
    const connection = await instance.connect()
    const answers = []
    for (const sql of queries) answers.push((await connection.runAndReadAll(sql)).getRows())
    process.stdout.write(JSON.stringify(answers))
  }
  ask()`

it.runIf(hasFolder('OLD_DUCKDB'))('DuckDB 1.1.3 returns the same rows', async () => {
  const folder = currentSnapshot(dataDir)
  const parquet = `SELECT CAST(COLUMNS(*) AS VARCHAR) FROM read_parquet('${folder}/app_daily/*.parquet')`
  const queries = [...QUERIES, parquet]
  const library = join(String(process.env['OLD_DUCKDB']), 'node_modules', '@duckdb', 'node-api')
  const file = join(folder, 'app-rankings.duckdb')
  const answers = z
    .array(z.array(z.array(z.string().nullable())))
    .parse(await jsonOf(process.execPath, ['-e', ASK_OLD, library, file, 'SELECT version()', ...queries]))
  expect(answers[0]).toEqual([['v1.1.3']])
  for (const [index, sql] of queries.entries()) {
    const rows = (await queryCurrent(dataDir, sql)).map((row) => Object.values(row))
    expect(rows.length).toBeGreaterThan(0)
    expect(answers[index + 1], sql).toEqual(rows)
  }
})

const MODULES = {
  '@duckdb/duckdb-wasm': '/@duckdb/duckdb-wasm/dist/duckdb-browser.mjs',
  'apache-arrow': '/apache-arrow/Arrow.dom.mjs',
  hyparquet: '/hyparquet/src/index.js',
  'hyparquet-compressors': '/hyparquet-compressors/src/index.js',
  fzstd: '/fzstd/esm/index.mjs',
  hysnappy: '/hysnappy/js/index.js',
  flatbuffers: '/flatbuffers/mjs/flatbuffers.js',
  tslib: '/tslib/tslib.es6.mjs',
}

/** A page of another host that attaches the database, and sums the tokens of a month of Parquet. */
const PAGE = `<!doctype html><script type="importmap">${JSON.stringify({ imports: MODULES })}</script>
<script type="module">
  import * as duckdb from '@duckdb/duckdb-wasm'
  import { asyncBufferFromUrl, parquetReadObjects } from 'hyparquet'
  import { compressors } from 'hyparquet-compressors'
  const dist = '/@duckdb/duckdb-wasm/dist/'
  globalThis.attach = async ([file, ...queries]) => {
    const db = new duckdb.AsyncDuckDB(new duckdb.VoidLogger(), new Worker(dist + 'duckdb-browser-eh.worker.js'))
    await db.instantiate(dist + 'duckdb-eh.wasm')
    const connection = await db.connect()
    const query = async (sql) => (await connection.query(sql)).toArray().map((row) => row.toJSON())
    await query("ATTACH '" + file + "' AS ranks (READ_ONLY)")
    await query('USE ranks')
    const answers = []
    for (const sql of queries) answers.push(await query(sql))
    return answers
  }
  globalThis.sum = async ([url]) => {
    const file = await asyncBufferFromUrl({ url })
    const month = await parquetReadObjects({ file, compressors })
    const tokens = month.reduce((sum, row) => sum + row.prompt_tokens, 0n)
    return [{ rows: String(month.length), tokens: String(tokens) }]
  }
</script>`

/** Serves the packages, and the page that uses them. */
function servePackages() {
  const packages = express.static(join(process.env['API_CLIENTS'] ?? '', 'node_modules'))
  const page: RequestHandler = (_request, response) => void response.send(PAGE)
  return listen(createServer(express().get('/', page).use(packages)))
}

const executablePath = findProgram('chromium')

const withBrowser = it.runIf(executablePath !== undefined && hasFolder('API_CLIENTS'))

withBrowser('a browser attaches the published file, and reads a month of Parquet', LONG, async () => {
  await using packages = await servePackages()
  const browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] })
  const page = await (await browser.newContext()).newPage()
  await page.goto(`http://127.0.0.1:${packages.port}`)
  await page.waitForFunction(() => 'sum' in globalThis)
  const call = (name: string, ...given: string[]): Promise<unknown> =>
    page.evaluate(([key, values]) => Reflect.get(globalThis, key)(values), [name, given] as const)

  const [popular = '', trending = ''] = QUERIES
  expect(await call('attach', `${address()}/app-rankings.duckdb`, popular, trending)).toEqual([
    await queryCurrent(dataDir, popular),
    await queryCurrent(dataDir, trending),
  ])
  const sums = 'SELECT count(*) AS rows, sum(prompt_tokens) AS tokens FROM app_daily'
  expect(await call('sum', `${address()}/app_daily/month=2026-08.parquet`)).toEqual(
    await queryCurrent(dataDir, `${sums} WHERE day BETWEEN '2026-08-01' AND '2026-08-31'`),
  )
  await browser.close()
})
