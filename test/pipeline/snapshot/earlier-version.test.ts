/** This version continues the DATA_DIR of an earlier one, which had app_daily in one file and further folders. */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { startApi } from '../../support/api.ts'
import { sha256 } from '../../support/pipeline/bundle.ts'
import { fact, queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, currentSnapshot, queryCurrent, writeRaw } from '../../support/pipeline/nightly.ts'

const OLD = '20260107T020000Z'
const NEW = '20260108T020000Z'
const LIST = '/datasets/app-rankings/snapshots'

/** The earlier version's tables in the warehouse, with a row in the first. */
const KEPT = `
  CREATE TABLE kept_files (id VARCHAR NOT NULL, shape VARCHAR NOT NULL, database_through DATE NOT NULL);
  CREATE TABLE kept_days (day DATE NOT NULL, content_hash VARCHAR NOT NULL);
  CREATE TABLE kept_apps (app_id BIGINT NOT NULL, canonical_id BIGINT NOT NULL);
  CREATE TABLE kept_tops (level INTEGER NOT NULL, first_day DATE NOT NULL);
  CREATE TABLE kept_tags (app_id BIGINT NOT NULL, subcategories VARCHAR[] NOT NULL);
  INSERT INTO kept_files VALUES ('${OLD}', '[]', DATE '2025-12-31')`

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const dataDir = folders.make()

function deliver(day: string): void {
  writeRaw(
    dataDir,
    `usage/date=${day}/rows.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${day},1,10,5\n`,
  )
}

beforeAll(async () => {
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  deliver('2025-12-30')
  deliver('2026-01-06')
  await runAt(dataDir, '2026-01-07T02:00:00Z')
  const instance = await DuckDBInstance.create(join(dataDir, 'warehouse.duckdb'))
  const connection = await instance.connect()
  await connection.run(KEPT)
  await asOneFile((statement) => connection.run(statement))
  connection.closeSync()
  instance.closeSync()
  mkdirSync(join(dataDir, 'kept', OLD), { recursive: true })
  writeFileSync(join(dataDir, 'kept', OLD, 'app_daily.parquet'), 'dead')
  // It had no permanent records either.
  rmSync(join(dataDir, 'snapshots/records'), { recursive: true })
  deliver('2026-01-07')
})

const descriptorSchema = z.looseObject({ resources: z.array(z.looseObject({ path: z.string() })) })

/** Replaces the published snapshot's files by the earlier version's. */
async function asOneFile(run: (statement: string) => Promise<unknown>): Promise<void> {
  const folder = currentSnapshot(dataDir)
  const file = join(folder, 'app_daily.parquet')
  await run(`COPY (FROM '${join(folder, 'app_daily/*.parquet')}') TO '${file}'`)
  rmSync(join(folder, 'app_daily'), { recursive: true })
  const descriptor = join(folder, 'datapackage.json')
  const { resources, ...about } = descriptorSchema.parse(JSON.parse(readFileSync(descriptor, 'utf8')))
  const others = resources.filter(({ path }) => !path.startsWith('app_daily'))
  const days = {
    name: 'app-daily-parquet',
    path: 'app_daily.parquet',
    rows: 2,
    bytes: statSync(file).size,
    hash: `sha256:${sha256(file)}`,
  }
  writeFileSync(descriptor, JSON.stringify({ ...about, resources: [...others, days] }))
  const sums = join(folder, 'SHA256SUMS')
  const lines = readFileSync(sums, 'utf8').replaceAll(/^.*(?:app_daily|datapackage).*\n/gm, '')
  writeFileSync(sums, `${lines}${sha256(file)}  app_daily.parquet\n${sha256(descriptor)}  datapackage.json\n`)
  rmSync(join(dataDir, 'snapshots/records', `${OLD}.json`))
}

it('the first run after an earlier version writes every month, and removes its extra tables and folders', async () => {
  const report = await runAt(dataDir, '2026-01-08T02:00:00Z')
  expect(report).toMatchObject({ outcome: 'published', snapshot: NEW })
  expect([fact(report, 'load', 'days_loaded'), fact(report, 'bundle', 'months_reused')]).toEqual([1, 0])
  const files = `FROM '${join(currentSnapshot(dataDir), 'app_daily/*.parquet')}'`
  expect(await queryCurrent(dataDir, files)).toEqual(await queryCurrent(dataDir, 'FROM app_daily'))
  expect(await queryCurrent(dataDir, 'FROM restatements')).toEqual([])
  expect(readdirSync(join(dataDir, 'snapshots/records')).toSorted()).toEqual([`${OLD}.json`, `${NEW}.json`])
  expect(existsSync(join(dataDir, 'kept'))).toBe(false)
  const tables = await queryWarehouse(
    dataDir,
    "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'kept%'",
  )
  expect(tables).toEqual([])
})

it('the old snapshot is served beside the new one, under its own file names', async () => {
  const api = await startApi(dataDir)
  try {
    const list = z
      .object({ data: z.array(z.object({ id: z.string(), rows: z.looseObject({ app_daily: z.int() }) })) })
      .parse(await (await api.get(LIST)).json())
    expect(list.data.map(({ id, rows }) => [id, rows.app_daily])).toEqual([
      [NEW, 3],
      [OLD, 2],
    ])
    const statuses = async (id: string) => {
      const names = ['app_daily.parquet', 'app_daily/month=2025-12.parquet']
      return Promise.all(names.map(async (name) => (await api.get(`${LIST}/${id}/${name}`)).status))
    }
    expect(await statuses(OLD)).toEqual([200, 404])
    expect(await statuses(NEW)).toEqual([404, 200])
    const page = await (await fetch(`${api.origin}/?as_of=2026-01-07T02:00:00Z`)).text()
    expect(page).toContain(`/${OLD}/app_daily.parquet`)
    const key = await api.makeKey('inference')
    const pinned = await api.get('/datasets/app-rankings?as_of=2026-01-07T02:00:00Z', key)
    expect(await pinned.json()).toMatchObject({ data: [{ app_id: 1, total_tokens: '30' }] })
  } finally {
    await api.close()
  }
})
