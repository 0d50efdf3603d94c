/** CONTRACT 7: what a day's files hold is counted exactly, whatever their footers say. */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { withMemoryDatabase } from '../../../pipeline/duckdb/memory-database.ts'
import { queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { TemporaryFolders, writeRaw } from '../../support/pipeline/nightly.ts'

const DAY = '2026-01-05'
const AS_OF = '2026-01-06T02:00:00Z'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** A folder with a day of these Parquet files, each a query for the columns beside ts. */
function dayOf(...queries: readonly string[]) {
  return dayWith(`TIMESTAMP '${DAY}'`, ...queries)
}

async function dayWith(ts: string, ...queries: readonly string[]) {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  const files = queries.map((_, number) => join(dataDir, 'raw', 'usage', `date=${DAY}`, `${number}.parquet`))
  await withMemoryDatabase({ memory: '1GB', dataDir }, async (connection) => {
    for (const [number, file] of files.entries()) {
      mkdirSync(dirname(file), { recursive: true })
      await connection.run(
        `COPY (SELECT ${ts} AS ts, * FROM (${queries[number]})) TO '${file}' (FORMAT parquet)`,
      )
    }
  })
  return { dataDir, files }
}

it('dense and sparse ids are counted as by one GROUP BY', async () => {
  const { dataDir, files } = await dayOf(
    `SELECT hash(i) % 5000 AS app_id, hash(i * 3) % 1000 AS prompt_tokens, 1 AS completion_tokens FROM range(100000) AS t (i)`,
    `SELECT (hash(i) % 7) * 1317624576693539401 AS app_id, 5 AS prompt_tokens, 1 AS completion_tokens FROM range(1000) AS t (i)`,
  )
  await runAt(dataDir, AS_OF)
  const list = files.map((file) => `'${file}'`).join(', ')
  const digest = (from: string) =>
    `SELECT count(*) AS apps, bit_xor(hash(CAST(app_id AS BIGINT), CAST(requests AS BIGINT), CAST(prompt AS HUGEINT))) AS digest FROM (${from})`
  const counted = await queryWarehouse(
    dataDir,
    digest('SELECT app_id, requests, prompt_tokens AS prompt FROM usage_daily'),
  )
  const expected = await queryWarehouse(
    dataDir,
    digest(
      `SELECT app_id, count(*) AS requests, sum(prompt_tokens) AS prompt FROM read_parquet([${list}]) GROUP BY app_id`,
    ),
  )
  expect(counted).toEqual(expected)
})

it('a footer that says there is no negative number and no other day is not believed', async () => {
  const rows = `SELECT 1 AS app_id, CASE WHEN i = 3 THEN -5 ELSE i * 10 END AS prompt_tokens, 1 AS completion_tokens FROM range(200) AS t (i)`
  const { dataDir, files } = await dayOf(
    `SELECT app_id, CAST(prompt_tokens AS BIGINT) AS prompt_tokens, completion_tokens FROM (${rows})`,
  )
  for (const file of files) writeFileSync(file, withFooterMinimum(readFileSync(file), -5n, 0n))
  await runAt(dataDir, AS_OF)
  expect(await queryWarehouse(dataDir, 'SELECT q.row, reason FROM quarantine AS q')).toEqual([
    { row: '4', reason: 'prompt_tokens is not an integer, 0 or more' },
  ])
})

/** Replaces a value in the footer alone. */
function withFooterMinimum(bytes: Buffer, value: bigint, other: bigint): Buffer {
  const [found, replacement] = [Buffer.alloc(8), Buffer.alloc(8)]
  found.writeBigInt64LE(value)
  replacement.writeBigInt64LE(other)
  const footer = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8)
  for (let at = bytes.indexOf(found, footer); at >= 0; at = bytes.indexOf(found, at + 1))
    replacement.copy(bytes, at)
  return bytes
}

it('a day of an app past 2^63 tokens fails the run and is named', async () => {
  const half = 2n ** 62n
  const { dataDir } = await dayOf(
    `SELECT 1 AS app_id, ${half} AS prompt_tokens, 0 AS completion_tokens FROM range(2)`,
  )
  await expect(runAt(dataDir, AS_OF)).rejects.toThrow(`Day ${DAY}: app 1 has 9223372036854775808`)
})

it('a copied file fails the run, which names both', async () => {
  const { dataDir } = await dayOf('SELECT 1 AS app_id, 5 AS prompt_tokens, 1 AS completion_tokens')
  const content = readFileSync(join(dataDir, 'raw', 'usage', `date=${DAY}`, '0.parquet'))
  writeRaw(dataDir, `usage/date=${DAY}/copy.parquet`, content)
  await expect(runAt(dataDir, AS_OF)).rejects.toThrow(
    `usage/date=${DAY}/0.parquet and usage/date=${DAY}/copy.parquet hold the same bytes`,
  )
})

it('a request_id that more than half of a day shares fails the run and is named', async () => {
  const { dataDir } = await dayOf(
    "SELECT 1 AS app_id, 5 AS prompt_tokens, i AS completion_tokens, CASE WHEN i < 11 THEN 'none' END AS request_id FROM range(20) AS t (i)",
  )
  await expect(runAt(dataDir, AS_OF)).rejects.toThrow('have the request_id "none"')
})

it('a word that means null is no request_id and no app in text', async () => {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  const words = ['\\N', 'NULL', 'null', 'NA']
  const rows = Array.from({ length: 40 }, (_, index) => `${DAY}T10:00:00Z,1,5,1,${words[index % 4]}\n`)
  const header = 'ts,app_id,prompt_tokens,completion_tokens,request_id\n'
  writeRaw(dataDir, `usage/date=${DAY}/ids.csv`, header + rows.join(''))
  const named = words.map((app) =>
    JSON.stringify({ ts: `${DAY}T10:00:00Z`, app, prompt_tokens: 5, completion_tokens: 1 }),
  )
  writeRaw(dataDir, `usage/date=${DAY}/apps.ndjson`, named.join('\n'))
  await runAt(dataDir, AS_OF)
  expect(await queryWarehouse(dataDir, 'SELECT app_id, requests FROM usage_daily ORDER BY app_id')).toEqual([
    { app_id: '0', requests: '4' },
    { app_id: '1', requests: '40' },
  ])
})

it('a row that is rejected in a Parquet file with nanoseconds and ids is quarantined alone', async () => {
  const { dataDir } = await dayWith(
    `CAST(CASE WHEN request_id = 'id-7' THEN TIMESTAMP '2026-01-06' ELSE TIMESTAMP '${DAY}' END AS TIMESTAMP_NS)`,
    "SELECT 1 AS app_id, 5 AS prompt_tokens, 1 AS completion_tokens, 'id-' || i AS request_id FROM range(150) AS t (i)",
  )
  await runAt(dataDir, AS_OF)
  expect(await queryWarehouse(dataDir, 'SELECT rows_read, rows_rejected FROM days')).toEqual([
    { rows_read: '150', rows_rejected: '1' },
  ])
})

it('two CSV files of one day, with app_id and with app at the same place, count for their own apps', async () => {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  for (const [column, value] of [
    ['app', 'https://two.example'],
    ['app_id', '1'],
  ]) {
    const text = `ts,${column},prompt_tokens,completion_tokens\n${DAY}T10:00:00Z,${value},5,2\n`
    writeRaw(dataDir, `usage/date=${DAY}/${column}.csv`, text)
  }
  await runAt(dataDir, AS_OF)
  expect(await queryWarehouse(dataDir, 'SELECT count(*) AS apps FROM usage_daily WHERE app_id = 1')).toEqual([
    { apps: '1' },
  ])
})

it.each(['csv', 'ndjson'] as const)(
  'a .%s file that grows while it is read counts whole rows, and the rest in the next run',
  async (ending) => {
    const dataDir = folders.make()
    writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
    const name = `usage/date=${DAY}/rows.${ending}`
    const row =
      ending === 'csv'
        ? `${DAY}T10:00:00Z,1,5,1\n`
        : `{"ts":"${DAY}T10:00:00Z","app_id":1,"prompt_tokens":5,"completion_tokens":1}\n`
    const header = ending === 'csv' ? 'ts,app_id,prompt_tokens,completion_tokens\n' : ''
    writeRaw(dataDir, name, header + row.repeat(20_000))
    const path = join(dataDir, 'raw', name)
    let appended = 0
    // Half a line at a time.
    const writer = setInterval(() => {
      const half = row.length / 2
      appendFileSync(path, appended % 2 === 0 ? row.slice(0, half) : row.slice(half))
      appended += 1
    }, 1)
    await runAt(dataDir, AS_OF)
    clearInterval(writer)
    const days = () => queryWarehouse(dataDir, 'SELECT rows_read, rows_rejected, tokens_read FROM days')
    const [first] = await days()
    const rows = Number(first?.['rows_read'])
    expect(rows).toBeGreaterThanOrEqual(20_000)
    expect(first).toMatchObject({ rows_rejected: '0', tokens_read: String(6 * rows) })
    if (appended % 2 === 1) appendFileSync(path, row.slice(row.length / 2))
    await runAt(dataDir, '2026-01-06T03:00:00Z')
    const all = 20_000 + Math.ceil(appended / 2)
    expect(await days()).toMatchObject([{ rows_read: String(all), rows_rejected: '0' }])
  },
)
