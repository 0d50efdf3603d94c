import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createWaitingRecords, LAST_RESORT } from '../../../../api/chat/records/waiting-records.ts'
import { memoryLog, until } from '../../../support/api.ts'
import { TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'
import { openLog } from '../../../support/chat/usage-log.ts'
import {
  failedRecord,
  readRecords,
  requestIds,
  usageFiles,
  usageRecord,
} from '../../../support/chat/usage-records.ts'

const DAY = '2026-03-10'
const NEXT_DAY = '2026-03-11'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** A folder where the day's folder cannot be created, since a file has its name. */
function blockDay(dataDir: string, day: string): string {
  writeRaw(dataDir, `usage/date=${day}`, '')
  return join(dataDir, 'raw', 'usage', `date=${day}`)
}

describe('openUsageLog', () => {
  it('has every record in its file by the time record() resolves', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    const record = usageRecord()
    await usage.record(record)
    expect(readRecords(dataDir, DAY)).toEqual([record])
    await usage.close()
  })

  it('keeps thousands of concurrent records whole, once each and in order, in one file', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    const records = Array.from({ length: 5000 }, (_, index) =>
      usageRecord({ request_id: `r${index}`, usage_missing: 'x'.repeat(index % 997) }),
    )
    const written = records.map((record) => usage.record(record))
    await written[0]
    const late = usageRecord({ request_id: 'late' })
    written.push(usage.record(late))
    await Promise.all(written)
    expect(readRecords(dataDir, DAY)).toEqual([...records, late])
    expect(usageFiles(dataDir, DAY)).toHaveLength(1)
    await usage.close()
  })

  it('writes each record into the folder of its own ts, whatever the clock says', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir, {}, new Date(`${NEXT_DAY}T00:00:05Z`))
    const before = usageRecord({ ts: `${DAY}T23:59:59.999Z` })
    const after = usageRecord({ ts: `${NEXT_DAY}T00:00:00.000Z` })
    await Promise.all([
      usage.record(after),
      usage.record(before),
      usage.record({ ...after, request_id: 'b' }),
    ])
    await usage.record({ ...before, request_id: 'c' })
    expect(requestIds(readRecords(dataDir, DAY))).toEqual([before.request_id, 'c'])
    expect(requestIds(readRecords(dataDir, NEXT_DAY))).toEqual([after.request_id, 'b'])
    await usage.close()
  })

  it('writes one file per day over many days', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    const days = ['2026-03-10', '2026-03-11', '2026-03-12', '2026-03-13', '2026-03-10', '2026-03-13']
    for (const day of days) await usage.record(usageRecord({ ts: `${day}T01:00:00.000Z` }))
    await usage.close()
    expect(days.slice(0, 4).map((day) => readRecords(dataDir, day).length)).toEqual([2, 1, 1, 2])
    expect(days.slice(0, 4).map((day) => usageFiles(dataDir, day).length)).toEqual([1, 1, 1, 1])
  })

  it('of two processes (here: two writers) writes a file each', async () => {
    const dataDir = folders.make()
    const [one, two] = [await openLog(dataDir), await openLog(dataDir)]
    await Promise.all([one.record(usageRecord()), two.record(usageRecord())])
    await Promise.all([one.close(), two.close()])
    expect(usageFiles(dataDir, DAY)).toHaveLength(2)
    expect(readRecords(dataDir, DAY)).toHaveLength(2)
  })

  it('writes the records of the time before close()', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    const written = Array.from({ length: 500 }, () => usage.record(usageRecord()))
    await usage.close()
    expect(readRecords(dataDir, DAY)).toHaveLength(500)
    await Promise.all(written)
  })
})

describe('when a record cannot be written', () => {
  it('no request waits for it, the log has it once, and all is written as soon as possible', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    const obstacle = blockDay(dataDir, DAY)
    const records = Array.from({ length: 50 }, () => usageRecord())
    for (const record of records) await usage.record(record)
    expect(usage.waiting()).toBe(50)
    const other = usageRecord({ ts: `${NEXT_DAY}T00:00:00.000Z` })
    await usage.record(other)
    expect(readRecords(dataDir, NEXT_DAY)).toEqual([other])

    rmSync(obstacle)
    await until(() => usage.waiting() === 0)
    await until(() => usage.logged('usage records are written again').length === 1)
    expect(requestIds(readRecords(dataDir, DAY)).toSorted()).toEqual(requestIds(records).toSorted())
    expect(usage.messages().filter(({ level }) => level === 'error')).toHaveLength(1)
    await usage.close()
    expect(usage.logged(LAST_RESORT)).toEqual([])
  })

  it('a removed folder is created again, with the unacknowledged records', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    await usage.record(usageRecord({ request_id: 'gone with the folder' }))
    rmSync(join(dataDir, 'raw'), { recursive: true })
    await usage.record(usageRecord({ request_id: 'next' }))
    await until(() => usage.waiting() === 0)
    expect(requestIds(readRecords(dataDir, DAY))).toEqual(['next'])
    await usage.close()
  })

  it('a folder that was moved away gets no further records', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    await usage.record(usageRecord({ request_id: 'first' }))
    const moved = folders.make()
    renameSync(join(dataDir, 'raw'), join(moved, 'raw'))
    await usage.record(usageRecord({ request_id: 'second' }))
    await until(() => usage.waiting() === 0)
    await usage.close()
    expect(requestIds(readRecords(dataDir, DAY))).toEqual(['second'])
    expect(requestIds(readRecords(moved, DAY))).toEqual(['first'])
  })

  it('close() tries once more and puts the rest into the log, whole', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir, { retryMs: 1_000_000 })
    const obstacle = blockDay(dataDir, DAY)
    const lost = [usageRecord(), failedRecord()]
    const kept = usageRecord({ ts: `${NEXT_DAY}T00:00:00.000Z` })
    const other = blockDay(dataDir, NEXT_DAY)
    for (const record of [...lost, kept]) await usage.record(record)
    rmSync(other)
    await usage.close()
    expect(readRecords(dataDir, NEXT_DAY)).toEqual([kept])
    expect(usage.logged(LAST_RESORT).map((line) => line['usage_record'])).toEqual(lost)
    rmSync(obstacle)
  })

  it('records beyond the memory limit are logged at once', async () => {
    const dataDir = folders.make()
    const size = Buffer.byteLength(`${JSON.stringify(usageRecord())}\n`)
    const usage = await openLog(dataDir, { waitingBytes: 2 * size })
    const obstacle = blockDay(dataDir, DAY)
    const records = Array.from({ length: 5 }, () => usageRecord())
    for (const record of records) await usage.record(record)
    expect(usage.logged(LAST_RESORT).map((line) => line['usage_record'])).toEqual(records.slice(2))
    rmSync(obstacle)
    await until(() => usage.waiting() === 0)
    await usage.close()
    expect(readRecords(dataDir, DAY)).toEqual(records.slice(0, 2))
  })

  it('a repeated failure starts with an empty memory once all was written', () => {
    const { log, messages } = memoryLog()
    const line = JSON.stringify(usageRecord())
    const waiting = createWaitingRecords(log, Buffer.byteLength(line))
    for (let outage = 0; outage < 3; outage++) {
      waiting.failed(DAY, [line], new Error('The disk is full'))
      expect([waiting.isFailing(DAY), waiting.count()]).toEqual([true, 1])
      waiting.succeeded(DAY, 1)
      expect([waiting.isFailing(DAY), waiting.count()]).toEqual([false, 0])
    }
    expect(messages().filter(({ msg }) => msg === LAST_RESORT)).toEqual([])
  })
})
