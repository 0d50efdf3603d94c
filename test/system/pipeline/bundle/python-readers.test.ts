/**
 * CONTRACT 8: what researchers use in Python reads the folder and the file of a snapshot: pyarrow, pandas, polars, DuckDB,
 * datasets (Hugging Face) and mlcroissant. They are not among the project's packages; PYTHON_READERS names a virtual
 * environment with them, as .ci/run makes it.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { Api } from '../../../support/api.ts'
import { startProcess } from '../../../support/processes.ts'
import { currentSnapshot, queryCurrent, TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { hasFolder } from '../../../support/programs.ts'
import { startSampleApi } from '../../../support/sample-api.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const TABLES = ['rankings', 'app_daily', 'model_daily', 'apps', 'coverage', 'restatements'] as const

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

const folders = new TemporaryFolders()
const dataDir = folders.make()
let api: Api

/** The JSON that a Python program prints; its caches stand in a temporary folder. */
async function python(program: string, ...args: readonly string[]): Promise<unknown> {
  const executable = join(String(process.env['PYTHON_READERS']), 'bin', 'python')
  const environment = { HF_HOME: folders.make(), HF_HUB_OFFLINE: '1', CROISSANT_CACHE: folders.make() }
  const { stdout, stderr, code } = await startProcess(executable, ['-c', program, ...args], { environment })
    .ended
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout)
}

async function rowsOf(table: string, where = 'true'): Promise<number> {
  const [row] = await queryCurrent(dataDir, `SELECT count(*) AS rows FROM ${table} WHERE ${where}`)
  return Number(row?.['rows'])
}

describe.runIf(hasFolder('PYTHON_READERS'))('in Python', () => {
  beforeAll(async () => {
    api = await startSampleApi(dataDir)
  })
  afterAll(async () => {
    await api.close()
    folders.removeAll()
  })

  it('pyarrow, pandas, polars, datasets and DuckDB read every table, to the last digit', async () => {
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

  it.each(['its folder', 'its address'])('mlcroissant loads every table and month from %s', async (place) => {
    const id = '20260901T020000Z'
    const address = `${api.base}/datasets/app-rankings/snapshots/${id}/croissant.json`
    const path = place === 'its address' ? address : join(currentSnapshot(dataDir), 'croissant.json')
    const found = z.record(z.string(), z.int()).parse(await python(READ_CROISSANT, path))
    for (const table of ['rankings', 'apps', 'coverage', 'restatements'])
      expect(found[table]).toBe(await rowsOf(table))
    for (const table of ['app_daily', 'model_daily'])
      for (const month of ['2026-07', '2026-08'])
        expect(found[`${table}/${month}`]).toBe(await rowsOf(table, `strftime(day, '%Y-%m') = '${month}'`))
  })
})
