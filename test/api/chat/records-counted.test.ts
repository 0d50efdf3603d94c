/** CONTRACT 6 and 7: the records of chat, counted by the pipeline. */
import { afterAll, expect, it } from 'vitest'
import { fact, queryWarehouse, runAt } from '../../support/pipeline/in-process.ts'
import { queryCurrent, TemporaryFolders, writeRaw } from '../../support/pipeline/nightly.ts'
import { openRecords, usageRecord } from '../../support/chat/usage-records.ts'

const DAY = '2026-03-10'
const NEXT_RUN = '2026-03-12T02:00:00Z'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it('counts records of unserved requests, of unknown tokens and without an app', async () => {
  const dataDir = folders.make()
  const registry = '7,Seven,public,2025-01-01\n8,Eight,public,2025-01-01\n'
  writeRaw(dataDir, 'apps/registry.csv', `app_id,app_name,visibility,updated_at\n${registry}`)
  writeRaw(
    dataDir,
    `usage/date=${DAY}/other.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${DAY},8,1,2\n`,
  )
  const { records: usage } = openRecords(dataDir)
  const unserved = {
    prompt_tokens: null,
    completion_tokens: null,
    requests: 0,
    usage_missing: 'not served',
  } as const
  const repeated = usageRecord()
  const records = [
    repeated,
    repeated,
    usageRecord({ prompt_tokens: null, completion_tokens: null, usage_missing: 'left by the caller' }),
    usageRecord(unserved),
    usageRecord({ ...unserved, app_id: 8 }),
    usageRecord({ app_id: 0, prompt_tokens: 1000, completion_tokens: 1 }),
    usageRecord({ provider: '"quoted", with\ttabs and \u0001', usage_missing: 'line\nbreak \u2028 😀' }),
  ]
  await Promise.all(records.map((record) => usage.write(record)))
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
