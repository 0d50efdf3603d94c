/**
 * `npm run bench`: what counting a day costs beside the plainest query over the same file in the same process
 * settings. Makes its own data in a temporary folder. Prints medians and ratios; times vary with the machine,
 * ratios hardly do.
 */
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { readConfig } from '../../pipeline/config.ts'
import { load } from '../../pipeline/load.ts'
import { USUAL_RUN } from '../../pipeline/run-options.ts'
import type { Run } from '../../pipeline/stage.ts'
import { dateValue, literal, openWarehouse, setVariables } from '../../pipeline/warehouse.ts'

const ROWS = 20_000_000
const APPS = 1_000_000
const RUNS = 3
const DAY = '2026-01-05'

type Case = { readonly name: string; readonly columns: string }

const CASES: readonly Case[] = [
  { name: 'one day of Parquet', columns: '' },
  { name: 'the same with request_id', columns: ", 'request-' || i AS request_id" },
]

async function median(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let run = 0; run < RUNS; run += 1) {
    const start = performance.now()
    await work()
    times.push(performance.now() - start)
  }
  return times.toSorted((a, b) => a - b)[Math.floor(RUNS / 2)] ?? Number.NaN
}

/** Writes the day's file: few apps with much traffic, many with little. Returns its path. */
async function makeDay(dataDir: string, { columns }: Case): Promise<string> {
  const folder = join(dataDir, 'raw', 'usage', `date=${DAY}`)
  mkdirSync(folder, { recursive: true })
  const path = join(folder, 'rows.parquet')
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await connection.run(`COPY (
    SELECT TIMESTAMP '${DAY}' + to_milliseconds(CAST(hash(i) % 86400000 AS BIGINT)) AS ts,
      CAST(${APPS} * pow(random(), 4) AS BIGINT) AS app_id,
      CAST(random() * 5000 AS BIGINT) AS prompt_tokens,
      CAST(random() * 1000 AS BIGINT) AS completion_tokens,
      'model-' || (i % 40) AS model${columns}
    FROM range(${ROWS}) AS t (i)
  ) TO ${literal(path)} (FORMAT parquet)`)
  connection.closeSync()
  instance.closeSync()
  return path
}

/** The least anybody could do: one GROUP BY, nothing checked, nothing kept. */
async function timeBareScan(path: string, memory: string): Promise<number> {
  const instance = await DuckDBInstance.create(':memory:', { memory_limit: memory })
  const connection = await instance.connect()
  const ms = await median(() =>
    connection.run(`CREATE OR REPLACE TEMP TABLE bare AS
      SELECT app_id, count(*) AS requests, sum(prompt_tokens) AS prompt, sum(completion_tokens) AS completion
      FROM read_parquet(${literal(path)}) GROUP BY app_id`),
  )
  connection.closeSync()
  instance.closeSync()
  return ms
}

/** The stage load, from the look at the folder to the rows in the warehouse. */
async function timeLoad(dataDir: string): Promise<number> {
  const config = readConfig({ DATA_DIR: dataDir })
  const warehouse = await openWarehouse(dataDir, config.memory)
  const { connection } = warehouse
  await setVariables(connection, { last_day: dateValue(DAY) })
  const silent = { step: () => undefined, finished: () => undefined, note: () => undefined }
  const run: Run = {
    config,
    connection,
    effects: { now: () => new Date(), progress: silent },
    asOf: new Date(),
    lastDay: DAY,
    rawFolder: join(dataDir, 'raw'),
    snapshotsFolder: '',
    buildFolder: '',
    options: USUAL_RUN,
  }
  const ms = await median(async () => {
    await connection.run("UPDATE days SET fingerprint = 'changed'")
    await load(run)
  })
  warehouse.close()
  return ms
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

print(`${ROWS / 1e6} million rows, ${APPS / 1e6} million apps, medians of ${RUNS} runs`)
print('| case | file MB | bare GROUP BY ms | load ms | ratio |\n| --- | --- | --- | --- | --- |')
for (const each of CASES) {
  const dataDir = mkdtempSync(join(tmpdir(), 'bench-'))
  const path = await makeDay(dataDir, each)
  const megabytes = Math.round(statSync(path).size / 1e6)
  const bare = await timeBareScan(path, readConfig({}).memory)
  const whole = await timeLoad(dataDir)
  const ratio = (whole / bare).toFixed(2)
  print(`| ${each.name} | ${megabytes} | ${Math.round(bare)} | ${Math.round(whole)} | ${ratio} |`)
  rmSync(dataDir, { recursive: true })
}
