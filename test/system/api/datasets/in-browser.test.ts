/**
 * CONTRACT 4.6: a browser reads published files over HTTP: DuckDB attaches the database and queries both macros, and hyparquet
 * reads a month of Parquet. The packages are not dependencies of the project; API_CLIENTS names a folder with them, as
 * .ci/run installs it.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'
import { chromium } from 'playwright-core'
import { expect, it } from 'vitest'
import { queryCurrent, TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { listen } from '../../../support/ports.ts'
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
  globalThis.attach = async (file, queries) => {
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
  globalThis.sum = async (url) => {
    const file = await asyncBufferFromUrl({ url })
    const month = await parquetReadObjects({ file, compressors })
    const tokens = month.reduce((sum, row) => sum + row.prompt_tokens, 0n)
    return [{ rows: String(month.length), tokens: String(tokens) }]
  }
</script>`

/** Serves the packages, and the page that uses them. */
function servePackages() {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '', 'http://localhost').pathname
    if (path === '/') return response.setHeader('Content-Type', 'text/html').end(PAGE)
    response.setHeader('Content-Type', TYPES[extname(path)] ?? 'text/plain')
    try {
      return response.end(readFileSync(join(process.env['API_CLIENTS'] ?? '', 'node_modules', path)))
    } catch {
      return response.writeHead(404).end()
    }
  })
  return listen(server)
}

const chromiumPath = findProgram('chromium')

it.runIf(chromiumPath !== undefined && hasFolder('API_CLIENTS'))(
  'a browser attaches the published file, queries both macros and reads a month of Parquet',
  async () => {
    const folders = new TemporaryFolders()
    const dataDir = folders.make()
    await using api = await startSampleApi(dataDir)
    await using packages = await servePackages()
    const browser = await chromium.launch({ executablePath: chromiumPath ?? '', args: ['--no-sandbox'] })
    const page = await (await browser.newContext()).newPage()
    await page.goto(`http://127.0.0.1:${packages.port}`)
    await page.waitForFunction(() => 'sum' in globalThis)
    const call = (name: string, ...given: unknown[]): Promise<unknown> =>
      page.evaluate(([key, values]) => Reflect.get(globalThis, key)(...values), [name, given] as const)
    const folder = `${api.base}/datasets/app-rankings/snapshots/${SNAPSHOT}`
    const month = `${folder}/app_daily/month=2026-08.parquet`

    expect(await call('attach', `${folder}/app-rankings.duckdb`, Object.values(QUERIES))).toEqual([
      await queryCurrent(dataDir, QUERIES.popular),
      await queryCurrent(dataDir, QUERIES.trending),
    ])
    expect(await call('sum', month)).toEqual(
      await queryCurrent(
        dataDir,
        'SELECT count(*) AS rows, sum(prompt_tokens) AS tokens FROM app_daily WHERE day BETWEEN $$2026-08-01$$ AND $$2026-08-31$$',
      ),
    )
    await browser.close()
    folders.removeAll()
  },
)
