/** A real cluster of two shards has every record, which the pipeline counts once, and never half an insert. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../../../../pipeline/config.ts'
import { clusterOf, type ClickHouseAddress } from '../../../../../pipeline/contract/clickhouse-address.ts'
import { runNightly } from '../../../../../pipeline/run.ts'
import { USUAL_RUN } from '../../../../../pipeline/run-options.ts'
import { until } from '../../../../support/api.ts'
import { PASSWORD, startCluster, type ClickHouseCluster } from '../../../../support/clickhouse.ts'
import {
  HINDERED,
  NEXT_DAY,
  numbered,
  openLog,
  spooled,
  spoolFiles,
} from '../../../../support/cluster-log.ts'
import { fact, queryWarehouse, SILENT } from '../../../../support/in-process.ts'
import { queryCurrent, TemporaryFolders, writeRaw } from '../../../../support/nightly.ts'
import { findProgram } from '../../../../support/programs.ts'
import { failedRecord, usageRecord } from '../../../../support/usage-records.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** The address in a USAGE_SOURCE, as the service reads it. */
function addressOf(source: string): ClickHouseAddress {
  const address = clusterOf({ USAGE_SOURCE: source })
  if (address === undefined) throw new TypeError(`${source} names no cluster`)
  return address
}

const program = findProgram('clickhouse-server')

describe.runIf(program !== undefined)('a real cluster of two shards', () => {
  let cluster: ClickHouseCluster

  beforeAll(async () => {
    cluster = await startCluster(program ?? '')
  })
  afterAll(() => cluster.remove())

  it('has every record, and the next night counts each once', async () => {
    const dataDir = folders.make()
    writeRaw(
      dataDir,
      'apps/registry.csv',
      'app_id,app_name,visibility,subcategories,alias_of,updated_at\n7,Seven,public,,,2025-01-01T00:00:00Z\n',
    )
    const usage = openLog(dataDir, addressOf(cluster.address))
    const records = [
      ...numbered(500),
      usageRecord({ prompt_tokens: null, completion_tokens: null, usage_missing: 'left by the caller' }),
      failedRecord(),
      usageRecord({ app_id: 0, prompt_tokens: 1000, completion_tokens: 1 }),
      usageRecord({ provider: '"quoted", with\ttabs and \u0001', model: 'line\nbreak \u2028 😀' }),
    ]
    await Promise.all(records.map((record) => usage.record(record)))
    await until(() => spoolFiles(dataDir).length === 0)
    // As after an answer that was lost.
    for (const record of records.slice(0, 100)) await usage.record(record)
    await until(() => spoolFiles(dataDir).length === 0)
    await usage.close()
    expect(usage.lines).toEqual([])
    expect(await cluster.run('SELECT count(), uniqExact(request_id) FROM usage')).toBe('604\t504\n')
    expect(await cluster.run("SELECT count() FROM usage WHERE model = 'line\\nbreak \u2028 😀'")).toBe('1\n')

    const report = await runNightly(
      readConfig({ DATA_DIR: dataDir, USAGE_SOURCE: cluster.address }),
      { now: () => new Date('2026-03-12T02:00:00Z'), progress: SILENT },
      USUAL_RUN,
    )
    expect(fact(report, 'load', 'rows_duplicate')).toBe(100)
    expect(fact(report, 'load', 'rows_without_tokens')).toBe(2)
    expect(await queryWarehouse(dataDir, 'SELECT file, row, reason FROM quarantine')).toEqual([])
    expect(
      await queryCurrent(dataDir, 'SELECT app_id, requests, prompt_tokens, completion_tokens FROM app_daily'),
    ).toEqual([{ app_id: '7', requests: '502', prompt_tokens: '5010', completion_tokens: '2505' }])
  })

  const wrong: readonly (readonly [string, (source: string) => string, RegExp])[] = [
    ['table', (source) => source.replace('=usage', '=nothing'), /^Code: 60, .*default\.nothing/],
    ['password', (source) => source.replace(PASSWORD, 'wrong-pass'), /^Code: 193, /],
  ]

  it.each(wrong)('a wrong %s is told in its words, and the records stay', async (_what, change, reason) => {
    const dataDir = folders.make()
    const usage = openLog(dataDir, addressOf(change(cluster.address)))
    await usage.record(usageRecord({ request_id: 'kept' }))
    const [line] = await until(() => usage.told(HINDERED).length > 0 && usage.told(HINDERED))
    await usage.close()
    expect(line?.['reason']).toMatch(reason)
    expect(spooled(dataDir)).toEqual(['kept'])
    expect(usage.lines.join('')).not.toMatch(new RegExp(`${PASSWORD}|wrong-pass`))
  })

  it('waits for a shard that is gone, without writing into the others meanwhile', async () => {
    const dataDir = folders.make()
    await cluster.killSecondShard()
    const before = await cluster.run('SELECT count() FROM usage_rows')
    const usage = openLog(dataDir, addressOf(cluster.address))
    await Promise.all(numbered(50, NEXT_DAY).map((record) => usage.record(record)))
    const [line] = await until(() => usage.told(HINDERED).length > 0 && usage.told(HINDERED))
    expect(line?.['reason']).toMatch(/^Code: \d+, .*Connection refused/)
    await usage.close()
    expect(await cluster.run('SELECT count() FROM usage_rows')).toBe(before)
    expect(spooled(dataDir)).toHaveLength(50)
  })
})
