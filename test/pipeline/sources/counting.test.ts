/** Parquet files with footers that prove every row valid take the shortest way, and are counted exactly. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../../pipeline/config.ts'
import { withMemoryDatabase } from '../../../pipeline/duckdb/memory-database.ts'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { runNightly } from '../../../pipeline/run.ts'
import type { Report } from '../../../pipeline/run-end.ts'
import { fact, queryWarehouse, runAt, SILENT } from '../../support/pipeline/in-process.ts'
import { queryCurrent, TemporaryFolders, writeRaw } from '../../support/pipeline/nightly.ts'

const DAY = '2026-01-05'
const AS_OF = '2026-01-06T02:00:00Z'

/** More than four rows per app and thread on most machines, so that the counts are kept in an array. */
const ROWS = 400_000
const APPS = 5000

const folders = new TemporaryFolders()

afterAll(() => folders.removeAll())

/** A folder with a day of these files, each a query for the columns beside ts. */
function dayOf(...queries: readonly string[]) {
  return wholeDay(...queries.map((sql) => `SELECT TIMESTAMP '${DAY}' AS ts, * FROM (${sql})`))
}

/** A folder with a day of these files, each a query for all columns. */
async function wholeDay(...queries: readonly string[]) {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  return { dataDir, files: await writeParquet(dataDir, DAY, queries) }
}

/** Writes a Parquet file of the day for each query; resolves to their paths. */
async function writeParquet(dataDir: string, day: string, queries: readonly string[]): Promise<string[]> {
  const files = queries.map((_, number) => join(dataDir, 'raw', 'usage', `date=${day}`, `${number}.parquet`))
  await withMemoryDatabase({ memory: '1GB', dataDir }, async (connection) => {
    for (const [number, file] of files.entries()) {
      mkdirSync(dirname(file), { recursive: true })
      await connection.run(`COPY (${queries[number]}) TO '${file}' (FORMAT parquet)`)
    }
  })
  return files
}

/** A counted day: apps, figures, and a digest of all rows. */
const DIGEST =
  'SELECT count(*) AS apps, CAST(sum(requests) AS BIGINT) AS requests, CAST(sum(prompt_tokens) AS HUGEINT) AS prompt, ' +
  'bit_xor(hash(app_id, CAST(requests AS BIGINT), CAST(prompt_tokens AS BIGINT), CAST(completion_tokens AS BIGINT))) AS digest'

function summed(files: readonly string[]): string {
  const list = files.map((file) => `'${file}'`).join(', ')
  return (
    'SELECT app_id, count(*) AS requests, sum(prompt_tokens) AS prompt_tokens, ' +
    `sum(completion_tokens) AS completion_tokens FROM read_parquet([${list}]) GROUP BY app_id`
  )
}

it('dense ids (also around 0 and at the ends of 64 bits) and sparse ids are counted as by one GROUP BY', async () => {
  const { dataDir } = await dayOf()
  const ids = [
    'i * 7919 % 5000 + 1',
    'i * 7919 % 5000 - 2500',
    '9223372036854775807 - i * 7919 % 5000',
    'i * 7919 % 5000 * 1000000000000',
  ].map((id, index) => ({ id, day: addDays(DAY, -index) }))
  const filesOf = new Map<string, readonly string[]>()
  for (const { id, day } of ids) {
    const rows = (from: number, to: number) =>
      `SELECT TIMESTAMP '${day}' AS ts, ${id} AS app_id, i % 1009 AS prompt_tokens, 1 AS completion_tokens
       FROM range(${from}, ${to}) AS t (i)`
    filesOf.set(day, await writeParquet(dataDir, day, [rows(0, ROWS / 4), rows(ROWS / 4, ROWS)]))
  }
  await runAt(dataDir, AS_OF)
  for (const { id, day } of ids) {
    const [expected] = await queryWarehouse(dataDir, `${DIGEST} FROM (${summed(filesOf.get(day) ?? [])})`)
    expect(expected, id).toMatchObject({ apps: String(APPS), requests: String(ROWS) })
    expect(await queryWarehouse(dataDir, `${DIGEST} FROM usage_daily WHERE day = '${day}'`), id).toEqual([
      expected,
    ])
  }
})

it('a sum just below 2^53, past it, and just below 2^63 keeps every token', async () => {
  const { dataDir } = await dayOf()
  const sums = [
    ['9007199254740990', '9007199254740992'],
    ['9007199254740992', '9007199254740994'],
    ['9223372036854775805', '9223372036854775807'],
  ] as const
  for (const [index, [large]] of sums.entries()) {
    const day = addDays(DAY, -index)
    const row = (tokens: string) =>
      `SELECT TIMESTAMP '${day}' AS ts, 1 AS app_id, ${tokens}::BIGINT AS prompt_tokens,
        ${tokens}::BIGINT AS completion_tokens, 3 AS requests`
    await writeParquet(dataDir, day, [row(large), row('1'), row('1')])
  }
  await runAt(dataDir, AS_OF)
  expect(await queryWarehouse(dataDir, 'FROM usage_daily ORDER BY day DESC')).toMatchObject(
    sums.map(([, sum]) => ({ requests: '9', prompt_tokens: sum, completion_tokens: sum })),
  )
})

it.each(['it', 'the sum of its rows'])(
  'a day of an app past 2^63 fails the run and is named: %s',
  async (which) => {
    const rows = which === 'it' ? ['9223372036854775808'] : ['9223372036854775807', '1']
    const { dataDir } = await dayOf(
      ...rows.map(
        (count) =>
          `SELECT 1 AS app_id, ${count}::HUGEINT::DECIMAL(38, 0) AS prompt_tokens, 0 AS completion_tokens`,
      ),
    )
    await expect(runAt(dataDir, AS_OF)).rejects.toThrow(
      `Day ${DAY}: app 1 has 9223372036854775808 tokens of one kind, more than 9223372036854775807`,
    )
  },
)

it('two counts of a day that each fit into 64 bits may together be more', async () => {
  const count = '9223372036854775807::BIGINT'
  const { dataDir } = await dayOf(
    `SELECT 1 AS app_id, ${count} AS prompt_tokens, ${count} AS completion_tokens`,
  )
  await runAt(dataDir, AS_OF)
  expect(await queryCurrent(dataDir, `SELECT total_tokens FROM popular('${DAY}', '${DAY}')`)).toEqual([
    { total_tokens: '18446744073709551614' },
  ])
})

/** Columns of valid rows, proved by footers; `{day}` stands for the day. */
const GOOD = {
  ts: "TIMESTAMP '{day}'",
  app_id: '1::BIGINT',
  prompt_tokens: '2',
  completion_tokens: '3',
  requests: '4::BIGINT',
}

/** 200 rows; one has other values. */
function withOne(values: Partial<typeof GOOD>): string {
  const columns = Object.entries({ ...GOOD, ...values }).map(([column, value]) => {
    const usual = Object.entries(GOOD).find(([name]) => name === column)?.[1]
    return `CASE WHEN i = 7 THEN ${value} ELSE ${usual} END AS ${column}`
  })
  return `SELECT ${columns.join(', ')} FROM range(200) AS t (i)`
}

const REJECTED = [
  ['ts', "TIMESTAMP '{day}' + INTERVAL 1 DAY", 'ts is not on the day of its folder'],
  ['ts', "TIMESTAMP '{day}' - INTERVAL 1 MICROSECOND", 'ts is not on the day of its folder'],
  ['ts', 'NULL', 'ts is not a UTC timestamp such as 2026-01-05T10:00:00Z'],
  ['app_id', 'NULL', 'app_id is not an integer'],
  ['app_id', '1.5', 'app_id is not an integer'],
  ['prompt_tokens', '-1', 'prompt_tokens is not an integer, 0 or more'],
  ['prompt_tokens', 'NULL', 'prompt_tokens is not an integer, 0 or more'],
  ['prompt_tokens', '1.5', 'prompt_tokens is not an integer, 0 or more'],
  ['prompt_tokens', '1.01e27::DOUBLE', 'prompt_tokens is not an integer, 0 or more'],
  ['requests', '-1', 'requests is not an integer from 0 to 10^12'],
  ['requests', '1000000000001', 'requests is not an integer from 0 to 10^12'],
] as const

const COUNTED = [
  ['unknown requests are one', { requests: 'NULL' }, '797', '400'],
  ['tokens may be unknown', { prompt_tokens: 'NULL', completion_tokens: 'NULL' }, '800', '398'],
  ['a row stands for 10^12 requests at most', { requests: '1000000000000' }, '1000000000796', '400'],
  [
    'also where its footer proves nothing',
    { requests: '1000000000000', prompt_tokens: '2::DOUBLE' },
    '1000000000796',
    '400',
  ],
  ['the day ends with its last microsecond', { ts: "TIMESTAMP '{day} 23:59:59.999999'" }, '800', '400'],
] as const

const FURTHER = ['filename', 'file_row_number', 'path', 'row'] as const

/** Two halves of a valid day with a further column. */
function withFurther(name: string): string[] {
  return [0, 400].map(
    (
      from,
    ) => `SELECT TIMESTAMP '{day}' AS ts, 1 AS app_id, CASE WHEN i = 7 THEN -1 ELSE 2 END AS prompt_tokens,
      0 AS completion_tokens, 'x' AS ${name} FROM range(${from}, ${from} + 400) AS t (i)`,
  )
}

describe('a day with one odd row', () => {
  const days = [
    ...REJECTED.map(([column, value]) => [withOne({ [column]: value })]),
    ...COUNTED.map(([, values]) => [withOne(values)]),
    ...FURTHER.map(withFurther),
  ].map((queries, index) => ({ day: addDays('2025-12-01', index), queries }))
  const dayOfCase = (index: number) => days[index]?.day ?? ''
  const dataDir = folders.make()
  let report: Report

  beforeAll(async () => {
    writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
    for (const { day, queries } of days)
      await writeParquet(
        dataDir,
        day,
        queries.map((sql) => sql.replaceAll('{day}', day)),
      )
    report = await runAt(dataDir, AS_OF)
  })

  const counted = (day: string) =>
    queryWarehouse(dataDir, `SELECT requests, prompt_tokens FROM usage_daily WHERE day = '${day}'`)
  const rejected = (day: string) =>
    queryWarehouse(
      dataDir,
      `SELECT file, "row", reason FROM quarantine WHERE contains(file, '${day}') ORDER BY ALL`,
    )

  it.each(REJECTED.map((row, index) => [...row, dayOfCase(index)] as const))(
    'whose %s is %s rejects that row: %s',
    async (_column, _value, reason, day) => {
      expect(await rejected(day)).toEqual([{ file: `usage/date=${day}/0.parquet`, row: '8', reason }])
      expect(await counted(day)).toEqual([{ requests: '796', prompt_tokens: '398' }])
    },
  )

  it.each(
    COUNTED.map(([name, , requests, prompt_tokens], index) => ({
      name,
      figures: { requests, prompt_tokens },
      day: dayOfCase(REJECTED.length + index),
    })),
  )('counts it: $name', async ({ figures, day }) => {
    expect(await rejected(day)).toEqual([])
    expect(await counted(day)).toEqual([figures])
  })

  it.each(FURTHER.map((name, index) => [name, dayOfCase(REJECTED.length + COUNTED.length + index)] as const))(
    'a further column %s is ignored',
    async (_name, day) => {
      expect(await counted(day)).toMatchObject([{ requests: '799' }])
      expect(await rejected(day)).toMatchObject([{ file: `usage/date=${day}/0.parquet`, row: '8' }])
    },
  )

  it('the report counts rows without tokens', () =>
    expect(fact(report, 'load', 'rows_without_tokens')).toBe(1))
})

it('a footer with a wrong range of ids fails the day with a message', async () => {
  const { dataDir, files } = await dayOf(
    `SELECT i % ${APPS} AS app_id, 1 AS prompt_tokens, 1 AS completion_tokens FROM range(${ROWS}) AS t (i)`,
  )
  const [file = ''] = files
  const bytes = readFileSync(file)
  const footer = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8)
  const greatest = bytesOf(APPS - 1)
  for (let at = bytes.indexOf(greatest, footer); at !== -1; at = bytes.indexOf(greatest, at)) {
    bytesOf(1000).copy(bytes, at)
  }
  writeFileSync(file, bytes)
  await expect(runAt(dataDir, AS_OF)).rejects.toThrow(
    /usage\/date=2026-01-05\/0\.parquet: a footer states .* Write the file again/,
  )
})

it('a file with nonsense bytes is named', async () => {
  const rows = 'SELECT i AS app_id, i AS prompt_tokens, i AS completion_tokens FROM range(20000) AS t (i)'
  const { dataDir, files } = await dayOf(rows, rows, rows)
  const [, damaged = ''] = files
  const bytes = readFileSync(damaged)
  writeFileSync(damaged, bytes.fill(0, 1000, bytes.length - 2000))
  await expect(runAt(dataDir, AS_OF)).rejects.toThrow(
    /^usage\/date=2026-01-05\/1\.parquet cannot be read as Parquet: .* Deliver the file again, whole$/,
  )
})

it('the smallest possible app_id may appear in a ranking', async () => {
  const least = -(2n ** 63n)
  const { dataDir } = await dayOf(
    `SELECT (${least})::BIGINT AS app_id, 5 AS prompt_tokens, 0 AS completion_tokens FROM range(3)`,
  )
  writeRaw(
    dataDir,
    'apps/more.csv',
    `app_id,app_name,visibility,updated_at\n${least},Least,public,2025-01-01\n`,
  )
  await runAt(dataDir, AS_OF)
  expect(await queryCurrent(dataDir, 'SELECT DISTINCT app_id FROM rankings')).toEqual([
    { app_id: String(least) },
  ])
})

it('too little memory is not reported as a fault of a file', async () => {
  const { dataDir } = await dayOf('SELECT 1 AS app_id, 5 AS prompt_tokens, 0 AS completion_tokens')
  const lines = Array.from({ length: 20_000 }, (_, index) => `${DAY},${index},1,1`)
  writeRaw(
    dataDir,
    `usage/date=${DAY}/rows.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${lines.join('\n')}\n`,
  )
  // Far below the setting's minimum, so that few rows are too many.
  const config = { ...readConfig({ DATA_DIR: dataDir }), memory: '11.2MB' }
  const run = runNightly(config, { now: () => new Date(AS_OF), progress: SILENT })
  await expect(run).rejects.toThrow(/^The run takes more memory than PIPELINE_MEMORY gives it/)
})

function bytesOf(integer: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(BigInt(integer))
  return bytes
}
