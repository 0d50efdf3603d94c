/** A real cluster of two shards receives every usage record, counts each once, and never stores half an insert. */
import { globSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../../../../pipeline/config.ts'
import { runNightly } from '../../../../../pipeline/run.ts'
import { USUAL_RUN } from '../../../../../pipeline/run-options.ts'
import { clusterOf } from '../../../../../pipeline/sources/clickhouse/address.ts'
import { shipRecords } from '../../../../../pipeline/sources/clickhouse/ship.ts'
import { PASSWORD, startCluster, type ClickHouseCluster } from '../../../../support/clickhouse/clickhouse.ts'
import { fact, queryWarehouse, SILENT } from '../../../../support/pipeline/in-process.ts'
import { queryCurrent, TemporaryFolders, writeRaw } from '../../../../support/pipeline/nightly.ts'
import { findProgram } from '../../../../support/programs.ts'
import { failedRecord, usageRecord } from '../../../../support/chat/usage-records.ts'

const DAY = '2026-03-10'
const NEXT_DAY = '2026-03-11'
const FILE = 'chat-20260310T000000Z-1-0123abcd.ndjson'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

function writeRecords(dataDir: string, day: string, records: readonly object[]): void {
  const folder = join(dataDir, 'raw', 'usage', `date=${day}`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, FILE), records.map((record) => `${JSON.stringify(record)}\n`).join(''))
}

/** Ships to the cluster in USAGE_SOURCE. */
async function ship(dataDir: string, source: string): Promise<unknown> {
  const address = clusterOf({ USAGE_SOURCE: source })
  if (address === undefined) throw new TypeError(`${source} names no cluster`)
  return await shipRecords(dataDir, address)
}

const program = findProgram('clickhouse-server')

describe.runIf(program !== undefined)('a real cluster of two shards', () => {
  let cluster: ClickHouseCluster

  beforeAll(async () => {
    cluster = await startCluster(program ?? '')
  })
  afterAll(() => cluster.remove())

  it('receives every record in the first step of a run, which counts each once', async () => {
    const dataDir = folders.make()
    writeRaw(
      dataDir,
      'apps/registry.csv',
      'app_id,app_name,visibility,subcategories,alias_of,updated_at\n7,Seven,public,,,2025-01-01T00:00:00Z\n',
    )
    const records = [
      ...Array.from({ length: 499 }, () => usageRecord()),
      usageRecord({ reasoning_tokens: 3, cached_tokens: 4 }),
      usageRecord({ prompt_tokens: null, completion_tokens: null, usage_missing: 'left by the caller' }),
      failedRecord(),
      usageRecord({ app_id: 0, prompt_tokens: 1000, completion_tokens: 1 }),
      usageRecord({ provider: '"quoted", with\ttabs and \u0001', model: 'line\nbreak \u2028 😀' }),
    ]
    writeRecords(dataDir, DAY, records)
    await ship(dataDir, cluster.address)
    // As after a lost answer, this time shipped by the run itself.
    for (const path of globSync(join(dataDir, 'raw/usage/*/_shipped-*'))) {
      renameSync(path, path.replace('_shipped-', '_shipping-'))
    }
    const config = readConfig({ DATA_DIR: dataDir, USAGE_SOURCE: cluster.address })
    const dependencies = { now: () => new Date('2026-03-12T02:00:00Z'), progress: SILENT }
    const report = await runNightly(config, dependencies, USUAL_RUN)
    expect(fact(report, 'load', 'records_shipped')).toBe(504)
    expect(await cluster.run('SELECT count() FROM usage')).toBe('1008\n')
    expect(
      await queryWarehouse(dataDir, 'SELECT rows_read, rows_duplicate, rows_rejected FROM days'),
    ).toEqual([{ rows_read: '1008', rows_duplicate: '504', rows_rejected: '0' }])
    expect(
      await queryCurrent(dataDir, 'SELECT app_id, requests, prompt_tokens, completion_tokens FROM app_daily'),
    ).toEqual([{ app_id: '7', requests: '502', prompt_tokens: '5010', completion_tokens: '2505' }])
    const parts =
      'SELECT sum(reasoning_tokens) AS reasoning, sum(cached_tokens) AS cached FROM usage_by_model'
    expect(await queryWarehouse(dataDir, parts)).toEqual([{ reasoning: '3', cached: '4' }])
  })

  const wrong: readonly (readonly [string, (source: string) => string, RegExp])[] = [
    ['table', (source) => source.replace('=usage', '=nothing'), /default\.nothing.*clickhouse\.sql/],
    ['password', (source) => source.replace(PASSWORD, 'wrong-pass'), /correct the user and the password/],
  ]

  it.each(wrong)(
    'reports a wrong %s with the remedy, and the records stay',
    async (_what, change, reason) => {
      const dataDir = folders.make()
      writeRecords(dataDir, DAY, [usageRecord()])
      const fault = String(await ship(dataDir, change(cluster.address)).catch((error: unknown) => error))
      expect(fault).toMatch(reason)
      expect(fault).not.toMatch(new RegExp(`${PASSWORD}|wrong-pass`))
      expect(globSync('raw/usage/*/_shipping-*', { cwd: dataDir })).toHaveLength(1)
    },
  )

  it('stores nothing while a shard is gone, not even on the other one', async () => {
    const dataDir = folders.make()
    await cluster.killSecondShard()
    const before = await cluster.run('SELECT count() FROM usage_rows')
    writeRecords(
      dataDir,
      NEXT_DAY,
      Array.from({ length: 50 }, () => usageRecord({ ts: `${NEXT_DAY}T12:00:00.000Z` })),
    )
    await expect(ship(dataDir, cluster.address)).rejects.toThrow(/Connection refused/)
    expect(await cluster.run('SELECT count() FROM usage_rows')).toBe(before)
  })
})
