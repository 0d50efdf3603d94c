/** A real cluster of two shards gives the same snapshot as the same rows in files. */
import * as fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../../../../pipeline/config.ts'
import { plan } from '../../../../../pipeline/commands/plan.ts'
import { runNightly } from '../../../../../pipeline/run.ts'
import { USUAL_RUN, type RunOptions } from '../../../../../pipeline/run-options.ts'
import { PASSWORD, startCluster, type ClickHouseCluster } from '../../../../support/clickhouse/clickhouse.ts'
import { fact, queryWarehouse, SILENT } from '../../../../support/pipeline/in-process.ts'
import {
  currentSnapshot,
  runCommand,
  TemporaryFolders,
  writeRaw,
} from '../../../../support/pipeline/nightly.ts'
import { findProgram } from '../../../../support/programs.ts'

const DAYS = ['2026-01-04', '2026-01-05', '2026-01-06']
const ROWS = 2_000
const SEED = 7

const count = fc.option(
  fc.oneof(
    { weight: 30, arbitrary: fc.bigInt(0n, 5_000n) },
    { weight: 1, arbitrary: fc.constantFrom(9_007_199_254_740_993n, 9_223_372_036_854_775_807n) },
  ),
  { freq: 40 },
)
const usageRow = fc.record({
  second: fc.integer({ min: 0, max: 86_399 }),
  app: fc.integer({ min: 1, max: 40 }),
  tokens: fc.option(fc.tuple(count, count), { freq: 20 }),
  requests: fc.option(fc.bigInt(0n, 9n), { freq: 5 }),
  // Few enough to repeat, often on different shards and in different apps.
  id: fc.oneof(
    fc.constant(''),
    fc.integer({ min: 1, max: 900 }).map((number) => `request-${number}`),
  ),
})
type UsageRow = typeof usageRow extends fc.Arbitrary<infer Row> ? Row : never

/** The values of a row, as text; null where there is none. */
type Values = readonly (string | null)[]

function valuesOf(day: string, { second, app, tokens, requests, id }: UsageRow): Values {
  const time = new Date(Date.parse(`${day}T00:00:00Z`) + second * 1000).toISOString().slice(0, 19)
  // A single unknown token count is a violation; too many would fail the run, so here both are unknown or none.
  const [prompt, completion] = tokens?.every((value) => value !== null) === true ? tokens : [null, null]
  return [
    time.replace('T', ' '),
    String(app),
    ...[prompt, completion, requests].map((value) => value?.toString() ?? null),
    id,
  ]
}

/** A valid row; its request_id is shared with rejected rows only, and so is not repeated. */
function spared(day: string): Values {
  return [`${day} 09:00:00`, '1', '7', '7', null, 'r1']
}

/** Invalid rows, few enough to be allowed. */
function rejects(day: string): Values[] {
  return [
    [`${day} 10:00:00`, null, '5', '5', null, 'r1'],
    [`${day} 10:00:01`, '1', '-5', '5', null, ''],
    [`${day} 10:00:02`, '1', null, '5', '1', ''],
    [`${day} 10:00:02`, '1', '5', null, '1', ''],
    [`${day} 10:00:03`, '1', '5', '5', '-1', 'r1'],
    [`${day} 10:00:04`, '1', '5', '5', '1000000000001', ''],
  ]
}

const COLUMNS = 'ts,app_id,prompt_tokens,completion_tokens,requests,request_id'

function toCsv(rows: readonly Values[]): string {
  return `${COLUMNS}\n${rows.map((row) => row.map((value) => value ?? '').join(',')).join('\n')}\n`
}

function toInsert(rows: readonly Values[], table = 'usage'): string {
  const tuples = rows.map(
    (row) => `(${row.map((value) => (value === null ? 'NULL' : `'${value}'`)).join(',')})`,
  )
  return `INSERT INTO ${table} (${COLUMNS}) VALUES ${tuples.join(',').replaceAll(/'(-?\d+)'/g, '$1')}`
}

function writeRegistry(dataDir: string): void {
  const apps = Array.from({ length: 35 }, (_, index) => {
    const visibility = index % 9 === 8 ? 'hidden' : 'public'
    return `${index + 1},App ${index + 1},${visibility},cli-agent,${index % 7 === 6 ? index : ''},2025-01-01`
  })
  writeRaw(
    dataDir,
    'apps/registry.csv',
    `app_id,app_name,visibility,subcategories,alias_of,updated_at\n${apps.join('\n')}\n`,
  )
}

const program = findProgram('clickhouse-server')

describe.runIf(program !== undefined)('a cluster of two shards', () => {
  const folders = new TemporaryFolders()
  const asFiles = folders.make()
  const asCluster = folders.make()
  let cluster: ClickHouseCluster

  beforeAll(async () => {
    cluster = await startCluster(program ?? '')
    for (const [index, day] of DAYS.entries()) {
      const sample = fc.sample(usageRow, { numRuns: ROWS - 1, seed: SEED + index })
      const rows = [...sample.map((row) => valuesOf(day, row)), ...rejects(day), spared(day)]
      writeRaw(asFiles, `usage/date=${day}/rows.csv`, toCsv(rows))
      await cluster.run(toInsert(rows))
    }
    for (const dataDir of [asFiles, asCluster]) writeRegistry(dataDir)
  })

  afterAll(async () => {
    await cluster.remove()
    folders.removeAll()
  })

  const runAt = (dataDir: string, asOf: string, source?: string, options = USUAL_RUN) =>
    runNightly(
      readConfig({ DATA_DIR: dataDir, USAGE_SOURCE: source }),
      { now: () => new Date(asOf), progress: SILENT },
      options,
    )

  /** Where the rows of a cluster's table were counted, and the rows of a file for the first day. */
  async function countBoth(table: string, csv: string) {
    const [fromFiles, fromCluster] = [folders.make(), folders.make()]
    for (const dataDir of [fromFiles, fromCluster]) writeRegistry(dataDir)
    writeRaw(fromFiles, `usage/date=${DAYS[0]}/rows.csv`, csv)
    await runAt(fromFiles, '2026-01-07T02:00:00Z')
    await runAt(fromCluster, '2026-01-07T02:00:00Z', cluster.address.replace('=usage', `=${table}`))
    return { fromFiles, fromCluster }
  }

  it('gives the same snapshot as the same rows in files, byte for byte', async () => {
    await runAt(asFiles, '2026-01-07T02:00:00Z')
    await runAt(asCluster, '2026-01-07T02:00:00Z', cluster.address)
    for (const name of [
      'rankings.parquet',
      'app_daily/month=2026-01.parquet',
      'apps.parquet',
      'coverage.csv',
    ]) {
      const [fromFiles, fromCluster] = [asFiles, asCluster].map((dataDir) =>
        readFileSync(join(currentSnapshot(dataDir), name)),
      )
      expect(fromCluster?.equals(fromFiles ?? Buffer.of()), name).toBe(true)
    }
  })

  it('finds the same violations and duplicates', async () => {
    const ledger = `SELECT day, content_hash, rows_read, rows_rejected, rows_duplicate, rows_conflicting, rows_without_tokens,
      tokens_read, tokens_rejected, tokens_duplicate FROM days ORDER BY day`
    const days = await queryWarehouse(asCluster, ledger)
    expect(days).toEqual(await queryWarehouse(asFiles, ledger))
    for (const day of days) {
      expect(day['rows_rejected']).toBe('6')
      expect(Number(day['rows_duplicate'])).toBeGreaterThan(100)
      expect(Number(day['rows_conflicting'])).toBeGreaterThan(100)
    }
    const reasons = 'SELECT day, reason, count(*) AS rows FROM quarantine GROUP BY ALL ORDER BY ALL'
    expect(await queryWarehouse(asCluster, reasons)).toEqual(await queryWarehouse(asFiles, reasons))
    const [first] = await queryWarehouse(
      asCluster,
      'SELECT file, payload FROM quarantine ORDER BY day, row LIMIT 1',
    )
    expect(first).toEqual({
      file: 'clickhouse:default.usage',
      payload:
        '{"ts":"2026-01-04 10:00:00","app_id":null,"prompt_tokens":"5","completion_tokens":"5","requests":null,"request_id":"r1"}',
    })
  })

  it('does not count an unchanged day again, and publishes nothing if only the source changes', async () => {
    const again = await runAt(asCluster, '2026-01-07T03:00:00Z', cluster.address)
    expect(fact(again, 'load', 'days_loaded')).toBe(0)
    const moved = await runAt(asFiles, '2026-01-07T03:00:00Z', cluster.address)
    expect(fact(moved, 'load', 'days_loaded')).toBe(DAYS.length)
    expect(moved.outcome).toBe('unchanged')
  })

  it('counts a day again after a new row, and forgets a day after its partition is dropped', async () => {
    await cluster.run(toInsert([['2026-01-05 12:00:00', '1', '1', '1', '1', 'late']]))
    await cluster.runOnShards('ALTER TABLE usage_rows DROP PARTITION 20260104')
    const accepted: RunOptions = { ...USUAL_RUN, accepted: ['rows'] }
    const report = await runAt(asCluster, '2026-01-07T04:00:00Z', cluster.address, accepted)
    expect(fact(report, 'load', 'days_loaded')).toBe(1)
    expect(fact(report, 'load', 'days_removed')).toBe(1)
    expect(await queryWarehouse(asCluster, 'SELECT day, rows_read FROM days ORDER BY day')).toEqual([
      { day: '2026-01-05', rows_read: String(ROWS + 7) },
      { day: '2026-01-06', rows_read: String(ROWS + 6) },
    ])
  })

  it('is queried by plan too', async () => {
    const lines: string[] = []
    await plan(
      {
        config: readConfig({ DATA_DIR: folders.make(), USAGE_SOURCE: cluster.address }),
        progress: SILENT,
        now: () => new Date('2026-01-07T02:00:00Z'),
        send: async () => undefined,
        print: (text) => lines.push(text),
      },
      undefined,
      false,
    )
    expect(lines.join('\n')).toMatch(/read {4}2026-01-05: \d+ parts/)
  })

  it('may be addressed shard by shard, with credentials in separate variables', async () => {
    const dataDir = folders.make()
    writeRegistry(dataDir)
    const config = readConfig({
      DATA_DIR: dataDir,
      USAGE_SOURCE: `clickhouse://${cluster.host}/default?table=usage_rows&cluster=production`,
      USAGE_SOURCE_USER: 'pipeline',
      USAGE_SOURCE_PASSWORD: PASSWORD,
    })
    const report = await runNightly(config, { now: () => new Date('2026-01-07T02:00:00Z'), progress: SILENT })
    expect(report.not_published).toMatchObject({ rows_read: 2 * ROWS + 13 })
  })

  it('validates unsigned values above 2^63 as in files', async () => {
    const [day = ''] = DAYS
    const past = '9223372036854775808'
    const largest = '18446744073709551615'
    const rows: Values[] = [
      ...Array.from({ length: 250 }, (): Values => [`${day} 09:00:00`, '1', '1', '1', '1', '']),
      [`${day} 10:00:00`, '2', largest, past, '1', ''],
      [`${day} 10:00:00`, '2', largest, past, '1', 'twice'],
      [`${day} 10:00:00`, '2', '5', '6', '1', 'twice'],
      [`${day} 10:00:00`, '3', '0', '0', '1', 'unknown first'],
      [`${day} 10:00:00`, '3', null, null, '1', 'unknown first'],
      [`${day} 11:00:00`, '4', null, null, '1', 'unknown last'],
      [`${day} 10:00:00`, '4', largest, past, '1', 'unknown last'],
      [`${day} 10:00:00`, '9223372036854775807', '7', '7', '0', ''],
      [`${day} 10:00:00`, '1', '7', '7', '1000000000000', ''],
      [`${day} 10:00:00`, past, '7', '7', '1', ''],
      [`${day} 10:00:00`, '1', '7', '7', past, ''],
    ]
    await cluster.run(
      'CREATE TABLE unsigned (ts DateTime, app_id UInt64, prompt_tokens Nullable(UInt64), ' +
        'completion_tokens Nullable(UInt64), requests UInt64, request_id String) ' +
        'ENGINE = MergeTree() PARTITION BY toYYYYMMDD(ts) ORDER BY ts',
    )
    await cluster.run(toInsert(rows, 'unsigned'))
    const { fromFiles, fromCluster } = await countBoth('unsigned', toCsv(rows))
    for (const sql of [
      'SELECT * EXCLUDE (fingerprint, counted_at) FROM days',
      'FROM usage_daily ORDER BY app_id',
      'SELECT reason FROM quarantine ORDER BY reason',
    ]) {
      expect(await queryWarehouse(fromCluster, sql)).toEqual(await queryWarehouse(fromFiles, sql))
    }
    expect(await queryWarehouse(fromCluster, 'FROM usage_daily WHERE app_id = 2')).toMatchObject([
      { prompt_tokens: String(2n * BigInt(largest)), completion_tokens: String(2n * BigInt(past)) },
    ])
    expect(await queryWarehouse(fromCluster, 'SELECT rows_rejected FROM days')).toEqual([
      { rows_rejected: '2' },
    ])
  })

  it.each([
    ['beside app_id', 'app_id Nullable(Int64), app Nullable(String)', ['app_id', 'app']],
    ['instead of app_id', 'app String', ['app']],
  ])('counts rows that name their app %s as in files', async (_what, columns, names) => {
    const table = `named_${names.length}`
    const figures = 'prompt_tokens,completion_tokens,request_id'
    await cluster.run(
      `CREATE TABLE ${table} (ts DateTime, ${columns}, prompt_tokens Nullable(Int64), completion_tokens Nullable(Int64), ` +
        'request_id String) ENGINE = MergeTree() PARTITION BY toYYYYMMDD(ts) ORDER BY ts',
    )
    const rows = [
      ['10:00:00', '1', 'One', '1', '1', ''],
      ['10:00:01', '', 'https://www.b.example/', '2', '2', ''],
      ['10:00:02', '', 'cline', '4', '4', ''],
      ['10:00:03', '', 'Cline', '8', '8', 'again'],
      ['10:00:04', '', 'CLINE', '8', '8', 'again'],
      ['10:00:05', '', 'Cline', '16', '16', 'other tokens'],
      ['10:00:06', '', 'Cline', '17', '16', 'other tokens'],
      ['10:00:06', '', 'cline', '17', '16', 'other tokens'],
      ['10:00:07', '', 'Cline', '32', '32', 'other app'],
      ['10:00:08', '', 'http://b.example', '32', '32', 'other app'],
      ['10:00:09', '', '', '64', '64', 'no app'],
      ['10:00:10', '', 'http://127.0.0.1/', '128', '128', 'none to tell'],
    ].map(([time = '', id = '', ...rest]) => [
      `${DAYS[0]} ${time}`,
      ...(names.includes('app_id') ? [id] : []),
      ...rest,
    ])
    const header = ['ts', ...names, figures].join(',')
    const tuples = rows.map(
      (row) =>
        `(${row.map((value, index) => (value === '' && index === 1 && names.length === 2 ? 'NULL' : `'${value}'`)).join(',')})`,
    )
    await cluster.run(
      `INSERT INTO ${table} (${header}) VALUES ${tuples.join(',').replaceAll(/'(\d+)'/g, '$1')}`,
    )
    const csv = `${header}\n${rows.map((row) => row.join(',')).join('\n')}\n`
    const { fromFiles, fromCluster } = await countBoth(table, csv)
    for (const sql of [
      'SELECT * EXCLUDE (fingerprint, counted_at) FROM days',
      'FROM usage_daily ORDER BY app_id',
      'FROM app_names ORDER BY app_id',
    ]) {
      expect(await queryWarehouse(fromCluster, sql)).toEqual(await queryWarehouse(fromFiles, sql))
    }
    expect(await queryWarehouse(fromCluster, 'SELECT rows_duplicate, rows_conflicting FROM days')).toEqual([
      { rows_duplicate: '4', rows_conflicting: '2' },
    ])
  })

  it('counts models and token parts as in files, also for duplicates', async () => {
    const [day = ''] = DAYS
    const columns =
      'ts,app_id,prompt_tokens,completion_tokens,request_id,model,reasoning_tokens,cached_tokens'
    const rows = [
      "1,10,5,'','acme/large',2,4",
      "1,1,1,'','acme/large:free',1,1",
      "1,3,0,'','Acme/Large-2.5',0,0",
      "2,100,50,'','acme/large',51,100",
      "2,7,7,'','large',3,-1",
      "2,9,9,'','acme/large/too',0,0",
      "3,4,4,'r1','acme/small',1,1",
      "3,4,4,'r1','acme/large',1,1",
      "3,4,4,'r2','acme/small',2,0",
      "3,4,4,'r2','acme/small',1,3",
    ].map((row) => `'${day} 09:00:00',${row}`)
    await cluster.run(
      'CREATE TABLE described (ts DateTime, app_id Int64, prompt_tokens Int64, completion_tokens Int64, ' +
        'request_id String, model Nullable(String), reasoning_tokens Int32, cached_tokens Nullable(Int64)) ' +
        'ENGINE = MergeTree() PARTITION BY toYYYYMMDD(ts) ORDER BY ts',
    )
    await cluster.run(`INSERT INTO described (${columns}) VALUES ${rows.map((row) => `(${row})`).join(',')}`)
    const csv = `${[columns, ...rows].join('\n').replaceAll("'", '')}\n`
    const { fromFiles, fromCluster } = await countBoth('described', csv)
    const models = 'FROM usage_by_model ORDER BY ALL'
    const counted = await queryWarehouse(fromFiles, models)
    expect(counted).toHaveLength(5)
    expect(await queryWarehouse(fromCluster, models)).toEqual(counted)
  })

  it('accepts a table partitioned by date, without optional columns', async () => {
    await cluster.run(
      'CREATE TABLE plain (ts DateTime, app_id Int64, prompt_tokens Int64, completion_tokens Int64) ' +
        'ENGINE = MergeTree() PARTITION BY toDate(ts) ORDER BY ts',
    )
    const rows = DAYS.flatMap((day) => [1, 2].map((tokens) => `('${day} 09:00:00',1,${tokens},5)`))
    await cluster.run(`INSERT INTO plain VALUES ${rows.join(',')}`)
    const dataDir = folders.make()
    writeRegistry(dataDir)
    await runAt(dataDir, '2026-01-07T02:00:00Z', cluster.address.replace('=usage', '=plain'))
    const figures = 'SELECT day, requests, prompt_tokens FROM usage_daily ORDER BY day'
    expect(await queryWarehouse(dataDir, figures)).toEqual(
      DAYS.map((day) => ({ day, requests: '2', prompt_tokens: '3' })),
    )
  })

  const wrong: readonly (readonly [string, (address: string) => string, string])[] = [
    [
      'password',
      (address) => address.replace(PASSWORD, 'wrong-pass'),
      'Nothing is published; correct the user and the password',
    ],
    ['table', (address) => address.replace('usage', 'nothing'), 'There is no table default.nothing'],
    ['database', (address) => address.replace('/default', '/nowhere'), 'There is no table nowhere.usage'],
    ['port', (address) => address.replace(/:\d+\//, ':1/'), '; USAGE_SOURCE must name host and port'],
    [
      'cluster',
      (address) => `${address.replace('=usage', '=usage_rows')}&cluster=nowhere`,
      "Requested cluster 'nowhere' not found. Nothing is published; correct the cluster",
    ],
    ['kind of table', (address) => address.replace('=usage', '=seen'), 'default.seen is a View: expected'],
    ['partitioning', (address) => address.replace('=usage', '=monthly'), 'it must be by UTC day'],
    [
      'columns',
      (address) => address.replace('=usage', '=narrow'),
      'no column completion_tokens; see data/cl',
    ],
    ['column type', (address) => address.replace('=usage', '=floating'), 'prompt_tokens is of type Float64'],
    ['type of ts', (address) => address.replace('=usage', '=dated'), 'ts is of type Date'],
    ['time zone', (address) => address.replace('=usage', '=local'), 'ts is in the time zone Asia/Tokyo'],
  ]

  it.each(wrong)('reports a wrong %s in a sentence, without the password', async (_what, change, message) => {
    const columns = 'ts DateTime, app_id Int64, prompt_tokens'
    await cluster.runOnShards(
      `CREATE TABLE IF NOT EXISTS monthly (${columns} Int64, completion_tokens Int64) ENGINE = MergeTree() PARTITION BY toYYYYMM(ts) ORDER BY ts`,
    )
    await cluster.runOnShards(
      `CREATE TABLE IF NOT EXISTS narrow (${columns} Int64) ENGINE = MergeTree() PARTITION BY toYYYYMMDD(ts) ORDER BY ts`,
    )
    await cluster.runOnShards(
      `CREATE TABLE IF NOT EXISTS floating (${columns} Float64, completion_tokens Int64) ENGINE = MergeTree() PARTITION BY toYYYYMMDD(ts) ORDER BY ts`,
    )
    await cluster.runOnShards('CREATE VIEW IF NOT EXISTS seen AS SELECT * FROM usage')
    for (const [table, type] of [
      ['dated', 'Date'],
      ['local', "DateTime('Asia/Tokyo')"],
    ]) {
      await cluster.runOnShards(
        `CREATE TABLE IF NOT EXISTS ${table} (ts ${type}, app_id Int64, prompt_tokens Int64, completion_tokens Int64) ENGINE = MergeTree() PARTITION BY toYYYYMMDD(ts) ORDER BY ts`,
      )
    }
    const error = await runAt(asCluster, '2026-01-07T05:00:00Z', change(cluster.address)).catch(
      (thrown: unknown) => thrown,
    )
    expect(String(error)).toContain(message)
    expect(String(error)).toMatch(/^DataError: /)
    expect(String(error)).not.toContain(PASSWORD)
    expect(String(error)).not.toContain('wrong-pass')
  })

  it('counts requests with unknown tokens by provider, and failed requests separately', async () => {
    const dataDir = folders.make()
    writeRegistry(dataDir)
    const row = (provider: string, tokens: string, requests: number) =>
      `('2026-01-06 13:00:00', 1, ${tokens}, ${tokens}, ${requests}, '', '${provider}')`
    const rows = [row('acme', '5', 1), row('acme', 'NULL', 3), row('', 'NULL', 0), row('', 'NULL', 0)]
    await cluster.run(`INSERT INTO usage (${COLUMNS}, provider) VALUES ${rows.join(', ')}`)
    await runAt(dataDir, '2026-01-07T02:00:00Z', cluster.address)
    const known = `SELECT provider, requests, requests_without_tokens FROM usage_by_provider
      WHERE provider IS NOT NULL`
    expect(await queryWarehouse(dataDir, known)).toEqual([
      { provider: 'acme', requests: '4', requests_without_tokens: '3' },
    ])
    const failed = 'SELECT CAST(sum(rows_failed) AS BIGINT) >= 2 AS known FROM usage_by_provider'
    expect(await queryWarehouse(dataDir, failed)).toEqual([{ known: 'true' }])
  })

  it('publishes nothing without a shard, and names the cluster', async () => {
    const before = currentSnapshot(asCluster)
    await cluster.run(toInsert([['2026-01-06 13:00:00', '1', '1', '1', '1', 'later']]))
    await cluster.killSecondShard()
    process.env['USAGE_SOURCE'] = cluster.address
    const run = await runCommand(asCluster, 'run', '--as-of', '2026-01-08T02:00:00Z')
    delete process.env['USAGE_SOURCE']
    expect(run.code).toBe(1)
    expect(run.stderr).toContain(`The ClickHouse cluster at ${cluster.host} cannot be counted: `)
    expect(run.stderr + run.stdout).not.toContain(PASSWORD)
    expect(currentSnapshot(asCluster)).toBe(before)
    const reports = await queryWarehouse(asCluster, 'SELECT report FROM runs')
    expect(JSON.stringify(reports)).not.toContain(PASSWORD)
  })
})
