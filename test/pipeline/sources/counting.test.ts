/** CONTRACT 7: which files of the drop folder make a day, and what stops it as a whole. */
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { makeFolder } from '../../support/folders.ts'
import { fact, queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { writeParquet, writeRaw, withApps } from '../../support/pipeline/nightly.ts'
import { rawFile } from '../../support/pipeline/raw-files.ts'

const DAY = '2026-01-05'
const FOLDER = `usage/date=${DAY}`
const AS_OF = '2026-01-06T02:00:00Z'
const CSV = `ts,app_id,prompt_tokens,completion_tokens\n${DAY}T10:00:00Z,1,5,1\n`

/** A DATA_DIR with files of the day. */
function folderOf(files: Readonly<Record<string, string | Uint8Array>>): string {
  const dataDir = withApps('One')
  for (const [name, content] of Object.entries(files)) writeRaw(dataDir, `${FOLDER}/${name}`, content)
  return dataDir
}

/** A DATA_DIR with a Parquet file of the day: a query for the columns beside ts. */
async function parquetOf(columns: string, ts = `TIMESTAMP '${DAY}'`) {
  const dataDir = folderOf({})
  const path = join(dataDir, 'raw', FOLDER, '0.parquet')
  await writeParquet(path, `SELECT ${ts} AS ts, * FROM (SELECT ${columns})`)
  return { dataDir, path }
}

function totals(dataDir: string) {
  return queryWarehouse(dataDir, 'SELECT rows_read, rows_rejected FROM days')
}

describe('names in the drop folder', () => {
  it('may be links and in capitals; those of unfinished and foreign files are skipped', async () => {
    // DuckDB puts tmp_ before the name of a file that it is writing.
    const unfinished = { _SUCCESS: '', '.rows.csv.part': 'half', 'tmp_.import-0123.parquet': 'PAR1' }
    const dataDir = folderOf({ 'A.CSV.GZ': gzipSync(CSV), ...unfinished })
    const elsewhere = join(makeFolder(), 'b.csv')
    writeFileSync(elsewhere, CSV)
    symlinkSync(elsewhere, join(dataDir, 'raw', FOLDER, 'link.csv'))
    await runAt(dataDir, AS_OF)
    expect(await totals(dataDir)).toEqual([{ rows_read: '2', rows_rejected: '0' }])
  })

  const notReadable = 'is not a readable file. Expected .parquet, .arrow'
  const noDay =
    'is not a day: expected a folder date=YYYY-MM-DD. Move it away or rename it; npm run nightly -- import FILE sorts'
  type Odd = readonly [kind: string, name: string, make: (path: string) => unknown, words: string]
  it.each<Odd>([
    ['a file of an unknown kind', `${FOLDER}/b.xlsx`, (path) => writeFileSync(path, 'x'), notReadable],
    ['a folder', `${FOLDER}/b.csv`, (path) => mkdirSync(path), notReadable],
    // Opening a named pipe waits for a writer, possibly for ever.
    ['a named pipe', `${FOLDER}/b.csv`, (path) => execFileSync('mkfifo', [path]), notReadable],
    ['a broken link', `${FOLDER}/b.csv`, (path) => symlinkSync('gone', path), 'does not exist'],
    ['a file beside the days', 'usage/new.csv', (path) => writeFileSync(path, CSV), noDay],
    ['a folder without a valid day', 'usage/date=2026-02-30', (path) => mkdirSync(path), noDay],
  ])('%s fails the run and is named', async (_, name, make, words) => {
    const dataDir = folderOf({ 'a.csv': CSV })
    make(join(dataDir, 'raw', name))
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow(`${name} ${words}`)
  })
})

it('a replaced file is counted again, even with the same size and modification time', async () => {
  const dataDir = folderOf({ 'a.csv': CSV })
  const path = join(dataDir, 'raw', FOLDER, 'a.csv')
  const other = join(dataDir, 'other.csv')
  utimesSync(path, 1_770_000_000, 1_770_000_000)
  await runAt(dataDir, AS_OF)
  const { ctimeNs } = statSync(path, { bigint: true })
  // The file system's clock advances in steps.
  do {
    writeFileSync(other, CSV.replace(',5,', ',7,'))
    utimesSync(other, 1_770_000_000, 1_770_000_000)
  } while (statSync(other, { bigint: true }).ctimeNs === ctimeNs)
  renameSync(other, path)
  const report = await runAt(dataDir, '2026-01-06T03:00:00Z')
  expect(fact(report, 'load', 'days_loaded')).toBe(1)
  expect(await queryWarehouse(dataDir, 'SELECT prompt_tokens FROM usage_daily')).toEqual([
    { prompt_tokens: '7' },
  ])
})

it('a footer that says there is no negative number and no other day is not believed', async () => {
  const { dataDir, path } = await parquetOf(
    '1 AS app_id, CAST(CASE WHEN i = 3 THEN -5 ELSE i * 10 END AS BIGINT) AS prompt_tokens, 1 AS completion_tokens FROM range(200) AS t (i)',
  )
  writeFileSync(path, withoutMinimum(readFileSync(path)))
  await runAt(dataDir, AS_OF)
  expect(await queryWarehouse(dataDir, 'SELECT q.row, reason FROM quarantine AS q')).toEqual([
    { row: '4', reason: 'prompt_tokens is not an integer, 0 or more' },
  ])
})

/** Replaces -5 by 0 in the footer alone. */
function withoutMinimum(bytes: Buffer): Buffer {
  const minimum = Buffer.from(BigInt64Array.of(-5n).buffer)
  const footer = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8)
  for (let at = bytes.indexOf(minimum, footer); at >= 0; at = bytes.indexOf(minimum, at))
    bytes.fill(0, at, at + 8)
  return bytes
}

it('a row that is rejected in a Parquet file with nanoseconds and ids is quarantined alone', async () => {
  const { dataDir } = await parquetOf(
    "1 AS app_id, 5 AS prompt_tokens, 1 AS completion_tokens, 'id-' || i AS request_id FROM range(150) AS t (i)",
    `CAST(CASE WHEN request_id = 'id-7' THEN TIMESTAMP '2026-01-06' ELSE TIMESTAMP '${DAY}' END AS TIMESTAMP_NS)`,
  )
  await runAt(dataDir, AS_OF)
  expect(await totals(dataDir)).toEqual([{ rows_read: '150', rows_rejected: '1' }])
})

describe('the run fails and names', () => {
  it.each([
    [
      'a day past 2^63 tokens, and its largest app',
      `2 - i // 2 AS app_id, ${2n ** 62n} // (1 + i // 2) AS prompt_tokens, 0 AS completion_tokens FROM range(3) AS t (i)`,
      /^Day \d{4}-\d\d-\d\d: all apps together have 11529215046068469760 tokens .*; app 2 has the most\./,
    ],
    [
      'a request_id that more than half of a day shares',
      "1 AS app_id, 5 AS prompt_tokens, i AS completion_tokens, CASE WHEN i < 11 THEN 'none' END AS request_id FROM range(20) AS t (i)",
      'have the request_id "none"',
    ],
  ])('%s', async (_, columns, words) => {
    const { dataDir } = await parquetOf(columns)
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow(words)
  })

  it('a copied file and its original', async () => {
    await expect(runAt(folderOf({ 'a.csv': CSV, 'copy.csv': CSV }), AS_OF)).rejects.toThrow(
      `${FOLDER}/a.csv and ${FOLDER}/copy.csv hold the same bytes`,
    )
  })
})

it('a word that means null is no request_id, no app and no number in text', async () => {
  const words = ['\\N', 'NULL', 'null', 'NA']
  const rows = Array.from({ length: 40 }, (_, index) => `${DAY}T10:00:00Z,1,5,1,${words[index % 4]}\n`)
  const unknown = words.map((word) => `${DAY},1,${word},${word},\n`)
  const named = words.map((app) =>
    JSON.stringify({ ts: `${DAY}T10:00:00Z`, app, prompt_tokens: 5, completion_tokens: 1 }),
  )
  const dataDir = folderOf({
    'ids.csv': `ts,app_id,prompt_tokens,completion_tokens,request_id\n${rows.join('')}${unknown.join('')}`,
    'apps.ndjson': named.join('\n'),
  })
  await runAt(dataDir, AS_OF)
  expect(
    await queryWarehouse(dataDir, 'SELECT app_id, requests, prompt_tokens FROM usage_daily ORDER BY app_id'),
  ).toEqual([
    { app_id: '0', requests: '4', prompt_tokens: '20' },
    { app_id: '1', requests: '44', prompt_tokens: '200' },
  ])
})

it.each(['parquet', 'arrow'] as const)('such a word is the name of an app in %s', async (format) => {
  const columns = [
    ['ts', [DAY]],
    ['app', ['NA']],
    ['prompt_tokens', [5n]],
    ['completion_tokens', [1n]],
  ] as const
  const dataDir = folderOf({ [`rows.${format}`]: rawFile(format, columns) })
  await runAt(dataDir, AS_OF)
  expect(await queryWarehouse(dataDir, 'SELECT app_name FROM app_names')).toEqual([{ app_name: 'NA' }])
})

const KEYS = `"ts":"${DAY}T10:00:00Z","app_id":1,"prompt_tokens":5,"completion_tokens":1`
it.each([
  ['in capitals', KEYS.toUpperCase(), '"REQUESTS":7'],
  ['in some capitals', KEYS.replaceAll(/"[a-z]/g, (start) => start.toUpperCase()), '"Requests":7'],
  ['in other letters than those of the first line', KEYS, '"Requests":7'],
])('keys of NDJSON %s count also where the first line lacks them', async (_, keys, further) => {
  const dataDir = folderOf({ 'rows.ndjson': `{${keys}}\n{${keys},${further}}\n` })
  await runAt(dataDir, AS_OF)
  expect(await queryWarehouse(dataDir, 'SELECT requests FROM usage_daily')).toEqual([{ requests: '8' }])
})

it('spaces before a request_id do not count in CSV, whether DuckDB or the lines are read', async () => {
  const rows = ['1, r1', '1," r2"', '1, NA'].map((row) => `${DAY},${row},5,1\n`).join('')
  const header = 'ts,app_id,request_id,prompt_tokens,completion_tokens\n'
  // A space behind a quote is read by lines.
  const dataDir = folderOf({ 'a.csv': header + rows, 'b.csv': header + rows.replace(',5,1\n', ',"5" ,1\n') })
  await runAt(dataDir, AS_OF)
  expect(await queryWarehouse(dataDir, 'SELECT requests FROM usage_daily')).toEqual([{ requests: '4' }])
})

it('two CSV files of one day, with app_id and with app at the same place, count for their own apps', async () => {
  const named = CSV.replace('app_id', 'app').replace(',1,', ',https://two.example,')
  const dataDir = folderOf({ 'app.csv': named, 'id.csv': CSV })
  await runAt(dataDir, AS_OF)
  expect(await queryWarehouse(dataDir, 'SELECT count(*) AS apps FROM usage_daily WHERE app_id = 1')).toEqual([
    { apps: '1' },
  ])
})

it.each([
  ['csv', CSV.split('\n')[0], CSV.split('\n')[1]],
  ['ndjson', '', `{${KEYS}}`],
])(
  'a .%s file that grows while it is read counts whole rows, and the rest in the next run',
  async (ending, header, line) => {
    const row = `${line}\n`
    const dataDir = folderOf({ [`rows.${ending}`]: `${header}\n${row.repeat(20_000)}` })
    const path = join(dataDir, 'raw', FOLDER, `rows.${ending}`)
    let appended = 0
    // Half a line at a time.
    const writer = setInterval(() => {
      const half = row.length / 2
      appendFileSync(path, appended % 2 === 0 ? row.slice(0, half) : row.slice(half))
      appended += 1
    }, 1)
    await runAt(dataDir, AS_OF).finally(() => clearInterval(writer))
    const days = () => queryWarehouse(dataDir, 'SELECT rows_read, rows_rejected, tokens_read FROM days')
    const [first] = await days()
    const rows = Number(first?.['rows_read'])
    expect(rows).toBeGreaterThanOrEqual(20_000)
    expect(first).toMatchObject({ rows_rejected: '0', tokens_read: String(6 * rows) })
    if (appended % 2 === 1) appendFileSync(path, row.slice(row.length / 2))
    await runAt(dataDir, '2026-01-06T03:00:00Z')
    expect(await days()).toMatchObject([
      { rows_read: String(20_000 + Math.ceil(appended / 2)), rows_rejected: '0' },
    ])
  },
)
