/** The records of chat, counted by the pipeline. */
import { afterAll, expect, it } from 'vitest'
import { fact, queryWarehouse, runAt } from '../../../support/pipeline/in-process.ts'
import { queryCurrent, TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'
import { openLog, REGISTRY } from '../../../support/chat/usage-log.ts'
import { failedRecord, usageRecord } from '../../../support/chat/usage-records.ts'

const DAY = '2026-03-10'
const NEXT_RUN = '2026-03-12T02:00:00Z'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it('counts records of unserved requests, of unknown tokens and without an app', async () => {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
  writeRaw(
    dataDir,
    `usage/date=${DAY}/other.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${DAY},8,1,2\n`,
  )
  // The rest of a file with one torn line.
  writeRaw(dataDir, `usage/date=${DAY}/chat-20260310T000000Z-1-0123abcd.ndjson`, '')
  const usage = await openLog(dataDir)
  const repeated = usageRecord()
  const records = [
    repeated,
    repeated,
    usageRecord({ prompt_tokens: null, completion_tokens: null, usage_missing: 'left by the caller' }),
    failedRecord(),
    failedRecord({ app_id: 8 }),
    usageRecord({ app_id: 0, prompt_tokens: 1000, completion_tokens: 1 }),
    usageRecord({ provider: '"quoted", with\ttabs and \u0001', usage_missing: 'line\nbreak \u2028 😀' }),
  ]
  await Promise.all(records.map((record) => usage.record(record)))
  await usage.close()

  const report = await runAt(dataDir, NEXT_RUN)
  expect(await queryWarehouse(dataDir, 'SELECT file, row, reason FROM quarantine')).toEqual([])
  expect(fact(report, 'load', 'rows_without_tokens')).toBe(3)
  expect(fact(report, 'load', 'rows_failed_without_tokens')).toBe(2)
  expect(fact(report, 'load', 'rows_duplicate')).toBe(1)
  expect(
    await queryCurrent(
      dataDir,
      'SELECT app_id, requests, prompt_tokens, completion_tokens FROM app_daily ORDER BY 1',
    ),
  ).toEqual([
    { app_id: '7', requests: '3', prompt_tokens: '20', completion_tokens: '10' },
    { app_id: '8', requests: '1', prompt_tokens: '1', completion_tokens: '2' },
  ])
})

it('lists no app without a served request', async () => {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
  const usage = await openLog(dataDir)
  await Promise.all([usage.record(failedRecord({ app_id: 8 })), usage.record(usageRecord())])
  await usage.close()
  await runAt(dataDir, NEXT_RUN)
  const ranked = await queryCurrent(dataDir, `SELECT app_id FROM popular('${DAY}', '${DAY}')`)
  expect(ranked).toEqual([{ app_id: '7' }])
})

it('counts a day again when a late record arrives', async () => {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
  const usage = await openLog(dataDir)
  await usage.record(usageRecord())
  await runAt(dataDir, NEXT_RUN)
  await usage.record(usageRecord())
  await usage.close()
  await runAt(dataDir, '2026-03-12T03:00:00Z')
  expect(await queryCurrent(dataDir, 'SELECT requests FROM app_daily')).toEqual([{ requests: '2' }])
})

it('reports the share of served requests with unknown tokens, by provider', async () => {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
  const usage = await openLog(dataDir)
  const unknown = {
    prompt_tokens: null,
    completion_tokens: null,
    usage_missing: 'the provider reported none',
  }
  const repeated = usageRecord(unknown)
  const records = [
    repeated,
    repeated,
    usageRecord(),
    usageRecord({ provider: 'silent', ...unknown }),
    failedRecord(),
  ]
  await Promise.all(records.map((record) => usage.record(record)))
  await usage.close()
  await runAt(dataDir, NEXT_RUN)
  const rows = await queryWarehouse(
    dataDir,
    "SELECT report->'not_published'->'providers' AS providers FROM runs",
  )
  expect(JSON.parse(String(rows[0]?.['providers']))).toEqual([
    { provider: 'acme', requests: 2, requests_without_tokens: 1 },
    { provider: 'silent', requests: 1, requests_without_tokens: 1 },
  ])
})
