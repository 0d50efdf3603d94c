/**
 * A browser reads what is published where it lies: DuckDB attaches the file over HTTP and queries both macros, hyparquet
 * reads a month of Parquet in ranges (DuckDB would load its extension for Parquet from a host of its own). The packages are
 * not among those of the project; API_CLIENTS names a folder that has them, as .ci/run installs them.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { extname, join } from 'node:path'
import { chromium } from 'playwright-core'
import { expect, it } from 'vitest'
import { queryCurrent, TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { portOf } from '../../../support/ports.ts'
import { findProgram, hasFolder } from '../../../support/programs.ts'
import { startSampleApi } from '../../../support/sample-api.ts'

const SNAPSHOT = '20260901T020000Z'
const QUERIES = {
  popular:
    "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM popular('2026-08-25', '2026-08-31', category := 'coding')",
  trending: "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM trending('2026-08-25', '2026-08-31')",
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.wasm': 'application/wasm',
}

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

const PAGE = `<!doctype html><script type="importmap">${JSON.stringify({ imports: MODULES })}</script>
<script type="module">
  import * as duckdb from '@duckdb/duckdb-wasm'
  import { asyncBufferFromUrl, parquetReadObjects } from 'hyparquet'
  import { compressors } from 'hyparquet-compressors'
  const dist = '/@duckdb/duckdb-wasm/dist/'
  globalThis.ask = async (folder, queries) => {
    const db = new duckdb.AsyncDuckDB(new duckdb.VoidLogger(), new Worker(dist + 'duckdb-browser-eh.worker.js'))
    await db.instantiate(dist + 'duckdb-eh.wasm')
    const connection = await db.connect()
    await connection.query("ATTACH '" + folder + "/app-rankings.duckdb' AS ranks (READ_ONLY)")
    await connection.query('USE ranks')
    const answers = []
    for (const sql of queries) answers.push((await connection.query(sql)).toArray().map((row) => row.toJSON()))
    const file = await asyncBufferFromUrl({ url: folder + '/app_daily/month=2026-08.parquet' })
    const month = await parquetReadObjects({ file, compressors })
    const tokens = month.reduce((sum, row) => sum + row.prompt_tokens, 0n)
    return JSON.stringify([...answers, [{ rows: String(month.length), tokens: String(tokens) }]])
  }
</script>`

/** Hands out the packages, and the page that uses them. */
async function servePackages(): Promise<{ origin: string; close: () => void }> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '', 'http://localhost').pathname
    if (path === '/') return response.setHeader('Content-Type', 'text/html').end(PAGE)
    response.setHeader('Content-Type', TYPES[extname(path)] ?? 'text/plain')
    try {
      return response.end(readFileSync(join(process.env['API_CLIENTS'] ?? '', 'node_modules', path)))
    } catch {
      return response.writeHead(404).end()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { origin: `http://127.0.0.1:${portOf(server)}`, close: () => server.close() }
}

const chromiumPath = findProgram('chromium')

it.runIf(chromiumPath !== undefined && hasFolder('API_CLIENTS'))(
  'a browser attaches the published file, queries both macros and reads a month of Parquet',
  async () => {
    const folders = new TemporaryFolders()
    const dataDir = folders.make()
    await using api = await startSampleApi(dataDir)
    const packages = await servePackages()
    const browser = await chromium.launch({ executablePath: chromiumPath ?? '', args: ['--no-sandbox'] })
    const page = await (await browser.newContext()).newPage()
    await page.goto(packages.origin)
    await page.waitForFunction(() => 'ask' in globalThis)
    const folder = `${api.base}/datasets/app-rankings/snapshots/${SNAPSHOT}`
    const answers: unknown = JSON.parse(
      await page.evaluate(
        (given): Promise<string> => Reflect.get(globalThis, 'ask')(...given),
        [folder, Object.values(QUERIES)],
      ),
    )
    const month =
      'SELECT count(*) AS rows, sum(prompt_tokens) AS tokens FROM app_daily WHERE day BETWEEN $$2026-08-01$$ AND $$2026-08-31$$'
    expect(answers).toEqual([
      await queryCurrent(dataDir, QUERIES.popular),
      await queryCurrent(dataDir, QUERIES.trending),
      await queryCurrent(dataDir, month),
    ])
    await browser.close()
    packages.close()
    folders.removeAll()
  },
)
