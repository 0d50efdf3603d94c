/** Repeated request_ids in a file of many row groups: each one is found, wherever its twin is, and no other. */
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { withMemoryDatabase } from '../../../pipeline/duckdb/memory-database.ts'
import { fact, runAt } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, queryCurrent, writeRaw } from '../../support/pipeline/nightly.ts'

const ROWS = 300_000
const DAY = '2026-01-05'

const folders = new TemporaryFolders()

afterAll(() => folders.removeAll())

/** A day with unique request_ids, except that every `step`-th repeats a distant one. */
async function runOver(step: number) {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  const path = join(dataDir, 'raw', 'usage', `date=${DAY}`, 'rows.parquet')
  mkdirSync(dirname(path), { recursive: true })
  await withMemoryDatabase({ memory: '1GB', dataDir }, (connection) =>
    connection.run(`COPY (
    SELECT TIMESTAMP '${DAY}' AS ts, 1 AS app_id, 1 AS prompt_tokens, 0 AS completion_tokens,
      'id-' || CASE WHEN i % ${step} = 0 THEN (i + ${ROWS / 2}) % ${ROWS} + 1 ELSE i END AS request_id
    FROM range(${ROWS}) AS t (i)
  ) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 20000)`),
  )
  const report = await runAt(dataDir, '2026-01-06T02:00:00Z')
  const [total] = await queryCurrent(dataDir, 'SELECT sum(requests) AS requests FROM app_daily')
  return { duplicates: fact(report, 'load', 'rows_duplicate'), requests: Number(total?.['requests']) }
}

it('a single repeated request_id is found', async () => {
  expect(await runOver(ROWS * 2)).toEqual({ duplicates: 1, requests: ROWS - 1 })
})

it('a few repeated request_ids are subtracted', async () => {
  expect(await runOver(50_000)).toEqual({ duplicates: 6, requests: ROWS - 6 })
})

it('very many repeated request_ids are subtracted', async () => {
  expect(await runOver(4)).toEqual({ duplicates: ROWS / 4, requests: (ROWS * 3) / 4 })
})

it('an unknown count ranks below 0, and a duplicate without tokens reduces their number', async () => {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  const rows = ['a,,,5', 'a,0,0,1', 'b,,,1', 'b,,,2'].map((row) => `${DAY},1,${row}`)
  writeRaw(
    dataDir,
    `usage/date=${DAY}/rows.csv`,
    `ts,app_id,request_id,prompt_tokens,completion_tokens,requests\n${rows.join('\n')}\n`,
  )
  const report = await runAt(dataDir, '2026-01-06T02:00:00Z')
  expect(await queryCurrent(dataDir, 'SELECT requests FROM app_daily')).toEqual([{ requests: '3' }])
  expect(fact(report, 'load', 'rows_duplicate')).toBe(2)
  expect(fact(report, 'load', 'rows_without_tokens')).toBe(1)
})
