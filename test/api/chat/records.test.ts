/** CONTRACT 6: every acknowledged request leaves one usage record, over kills and full disks too. */
import { spawnSync } from 'node:child_process'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { NOT_WRITTEN } from '../../../api/chat/records.ts'
import { makeKey, startServer, until } from '../../support/api.ts'
import { MESSAGES, startScriptedChat, writeModels } from '../../support/chat/chat.ts'
import { answers, startUpstream } from '../../support/chat/upstream.ts'
import {
  openRecords,
  readRecords,
  requestIds,
  usageFiles,
  usageRecord,
} from '../../support/chat/usage-records.ts'
import { TemporaryFolders, writeRaw } from '../../support/pipeline/nightly.ts'
import { oneApp, publishSnapshot } from '../../support/pipeline/snapshot.ts'
import { hasProgram } from '../../support/programs.ts'

const DAY = '2026-03-10'
const NEXT_DAY = '2026-03-11'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** A folder where the day's folder cannot be created, since a file has its name. */
function blockDay(dataDir: string, day: string): string {
  writeRaw(dataDir, `usage/date=${day}`, '')
  return join(dataDir, 'raw', 'usage', `date=${day}`)
}

describe('a record', () => {
  it('is in its file as soon as it is acknowledged, whole, once and in order, however many come at once', async () => {
    const dataDir = folders.make()
    const { records } = openRecords(dataDir)
    const all = Array.from({ length: 5000 }, (_, index) =>
      usageRecord({ request_id: `r${index}`, usage_missing: 'x'.repeat(index % 997) }),
    )
    const written = all.map((record) => records.write(record))
    await written[0]
    const late = usageRecord({ request_id: 'late' })
    await Promise.all([...written, records.write(late)])
    expect(readRecords(dataDir, DAY)).toEqual([...all, late])
    expect(usageFiles(dataDir, DAY)).toHaveLength(1)
    await records.close()
  })

  it('is in the folder of the day and the file of the hour in which the request arrived', async () => {
    const dataDir = folders.make()
    const { records } = openRecords(dataDir)
    const times = [`${DAY}T22:59:59`, `${DAY}T23:00:00`, `${NEXT_DAY}T00:00:00`, `${NEXT_DAY}T05:00:00`]
    for (const time of [...times, ...times]) await records.write(usageRecord({ ts: `${time}.000Z` }))
    await records.close()
    for (const day of [DAY, NEXT_DAY]) {
      expect(readRecords(dataDir, day)).toHaveLength(4)
      expect(usageFiles(dataDir, day)).toHaveLength(2)
    }
    expect(usageFiles(dataDir, DAY)[0]).toMatch(/^chat-20260310T22Z-\d+-[\da-f]{8}\.ndjson$/)
  })

  it('of another process is in a file of its own', async () => {
    const dataDir = folders.make()
    const [one, two] = [openRecords(dataDir).records, openRecords(dataDir).records]
    await Promise.all([one.write(usageRecord()), two.write(usageRecord())])
    await Promise.all([one.close(), two.close()])
    expect(usageFiles(dataDir, DAY)).toHaveLength(2)
  })

  it('is found though the folder was removed or moved away', async () => {
    const dataDir = folders.make()
    const { records } = openRecords(dataDir)
    await records.write(usageRecord({ request_id: 'first' }))
    const moved = folders.make()
    renameSync(join(dataDir, 'raw'), join(moved, 'raw'))
    await records.write(usageRecord({ request_id: 'second' }))
    rmSync(join(dataDir, 'raw'), { recursive: true })
    await records.write(usageRecord({ request_id: 'third' }))
    await records.close()
    expect(requestIds(readRecords(moved, DAY))).toEqual(['first'])
    expect(requestIds(readRecords(dataDir, DAY))).toEqual(['third'])
  })

  it('is not lost if another file takes the place of its own, as in log rotation', async () => {
    const dataDir = folders.make()
    const { records } = openRecords(dataDir)
    await records.write(usageRecord({ request_id: 'first' }))
    const path = join(dataDir, 'raw', 'usage', `date=${DAY}`, usageFiles(dataDir, DAY)[0] ?? '')
    const rotated = join(folders.make(), 'rotated')
    renameSync(path, rotated)
    writeFileSync(path, '')
    await records.write(usageRecord({ request_id: 'second' }))
    await records.close()
    expect(readFileSync(rotated, 'utf8')).toContain('"first"')
    expect(requestIds(readRecords(dataDir, DAY))).toEqual(['second'])
  })
})

describe('a record that cannot be written', () => {
  it('is in the log at once, holds nobody up, and is written as soon as that is possible', async () => {
    const dataDir = folders.make()
    const { records, logged } = openRecords(dataDir)
    const obstacle = blockDay(dataDir, DAY)
    const lost = Array.from({ length: 50 }, () => usageRecord())
    for (const [index, record] of lost.entries()) {
      await records.write(record)
      expect(logged(NOT_WRITTEN)[index]).toMatchObject({ usage_record: record })
    }
    expect(records.waiting).toBe(50)
    const other = usageRecord({ ts: `${NEXT_DAY}T00:00:00.000Z` })
    await records.write(other)
    expect(readRecords(dataDir, NEXT_DAY)).toEqual([other])
    rmSync(obstacle)
    await until(() => logged('usage records are written again').length === 1)
    expect(requestIds(readRecords(dataDir, DAY)).toSorted()).toEqual(requestIds(lost).toSorted())
    expect(logged(NOT_WRITTEN)).toHaveLength(50)
    await records.close()
  })

  it('does not wait in memory beyond 64 MiB: the log has it', async () => {
    const dataDir = folders.make()
    const { records, logged } = openRecords(dataDir)
    blockDay(dataDir, DAY)
    const large = 'x'.repeat(40 * 2 ** 20)
    for (let count = 0; count < 2; count += 1) await records.write(usageRecord({ usage_missing: large }))
    expect([records.waiting, logged(NOT_WRITTEN).length]).toEqual([1, 2])
    await records.close()
  })

  it('is tried once more when the service stops', async () => {
    const dataDir = folders.make()
    const { records } = openRecords(dataDir)
    const obstacle = blockDay(dataDir, DAY)
    const record = usageRecord()
    await records.write(record)
    rmSync(obstacle)
    await records.close()
    expect(readRecords(dataDir, DAY)).toEqual([record])
  })

  it('shows in /readyz as degraded, and in /metrics', async () => {
    const dataDir = folders.make()
    await publishSnapshot(dataDir, oneApp())
    await using chat = await startScriptedChat({ dataDir })
    chat.script(answers())
    const obstacle = blockDay(chat.api.dataDir, DAY)
    expect((await chat.api.post({ model: 'a/one', messages: MESSAGES })).status).toBe(200)
    expect(await (await fetch(`${chat.api.origin}/metrics`)).text()).toMatch(/^usage_records_waiting 1$/m)
    expect(await (await fetch(`${chat.api.origin}/readyz`)).text()).toContain(
      '{"status":"degraded","reasons":["1 usage records cannot be written"]}',
    )
    rmSync(obstacle)
  })
})

it.runIf(hasProgram('prlimit'))('a kill on a full disk loses no acknowledged request', async () => {
  await using upstream = await startUpstream({ 'a/one': answers() })
  const dataDir = folders.make()
  const MODELS_FILE = writeModels(dataDir, { 'a/one': [{ base_url: upstream.url }] })
  const { origin, child, output, ended } = await startServer({ DATA_DIR: dataDir, MODELS_FILE })
  const key = await makeKey({ DATA_DIR: dataDir })
  // A larger file is refused, as on a full disk: the write that meets the limit is short.
  const full = ['--pid', String(child.pid), '--fsize=2000:unlimited']
  expect(spawnSync('prlimit', full).status).toBe(0)
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ model: 'a/one', messages: MESSAGES })
  const acknowledged: string[] = []
  for (let request = 0; request < 20; request += 1) {
    const response = await fetch(`${origin}/api/v1/chat/completions`, { method: 'POST', headers, body })
    if (response.ok) acknowledged.push(response.headers.get('X-Request-Id') ?? '')
  }
  child.kill('SIGKILL')
  await ended
  expect(acknowledged).toHaveLength(20)
  const today = new Date().toISOString().slice(0, 10)
  const kept = requestIds(readRecords(dataDir, today))
  expect(kept.length).toBeGreaterThan(0)
  const logged = output.stderr.split('\n').filter((line) => line.includes('"usage_record"'))
  expect(
    acknowledged.filter((id) => !kept.includes(id) && !logged.some((line) => line.includes(id))),
  ).toEqual([])
})
