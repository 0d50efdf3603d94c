/** CONTRACT 6: every acknowledged request leaves one usage record, over kills and full disks too. */
import { spawnSync } from 'node:child_process'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { UsageRecords } from '../../../api/chat/records.ts'
import { makeKey, memoryLog, startServer, until } from '../../support/api.ts'
import {
  CHAT_DAY,
  ONE,
  readRecords,
  startScriptedChat,
  usageFiles,
  writeModels,
  type ScriptedChat,
} from '../../support/chat/chat.ts'
import { answers, startUpstream } from '../../support/chat/upstream.ts'
import { makeFolder } from '../../support/folders.ts'
import { writeRaw } from '../../support/pipeline/nightly.ts'
import { oneApp, publishSnapshot } from '../../support/pipeline/snapshot.ts'
import { hasProgram } from '../../support/programs.ts'

const NEXT_DAY = '2026-03-11'

let now: Date
let dataDir: string
let chat: ScriptedChat
beforeEach(async () => {
  now = new Date(`${CHAT_DAY}T12:00:00Z`)
  dataDir = makeFolder()
  chat = await startScriptedChat({ dataDir, clock: () => now })
})
afterEach(() => chat[Symbol.asyncDispose]())

/** Sends a request at this time; returns its id once it is answered. */
async function ask(time = `${CHAT_DAY}T12:00:00`): Promise<string> {
  now = new Date(`${time}Z`)
  const response = await chat.api.ask()
  expect(response.status).toBe(200)
  await response.text()
  return response.headers.get('X-Request-Id') ?? ''
}

const askOften = (times: number) => Promise.all(Array.from({ length: times }, () => ask()))
const idsOn = (day: string, folder = dataDir) => readRecords(folder, day).map(({ request_id }) => request_id)

/** Puts a file in the place of the day's folder: no record of that day can be written. */
function blockDay(): string {
  writeRaw(dataDir, `usage/date=${CHAT_DAY}`, '')
  return join(dataDir, 'raw', 'usage', `date=${CHAT_DAY}`)
}

/** Log lines with a record that could not be written. */
const notWritten = () => chat.api.messages().filter((line) => line['usage_record'] !== undefined)

describe('a record', () => {
  it('is in its file once its request is answered, and once, however many come at once', async () => {
    const known = new Set<string>()
    const all = Array.from({ length: 200 }, async () => {
      const id = await ask()
      expect(readRecords(dataDir, CHAT_DAY, id)).toHaveLength(1)
      known.add(id)
    })
    await Promise.all(all)
    expect(known.size).toBe(200)
    expect(idsOn(CHAT_DAY).toSorted()).toEqual([...known].toSorted())
    expect(usageFiles(dataDir)).toHaveLength(1)
  })

  it('is in the folder of the day and the file of the hour in which the request arrived', async () => {
    const times = [
      `${CHAT_DAY}T22:59:59`,
      `${CHAT_DAY}T23:00:00`,
      `${NEXT_DAY}T00:00:00`,
      `${NEXT_DAY}T05:00:00`,
    ]
    for (const time of [...times, ...times]) await ask(time)
    for (const day of [CHAT_DAY, NEXT_DAY]) {
      expect(idsOn(day)).toHaveLength(4)
      expect(usageFiles(dataDir, day)).toHaveLength(2)
    }
    expect(basename(usageFiles(dataDir)[0] ?? '')).toMatch(/^chat-20260310T22Z-\d+-[\da-f]{8}\.ndjson$/)
  })

  it('of another process is in a file of its own', async () => {
    await using other = await startScriptedChat({ dataDir, clock: () => now })
    await Promise.all([ask(), other.api.ask().then((response) => response.text())])
    expect(usageFiles(dataDir)).toHaveLength(2)
  })

  it('is found though the folder was moved away or removed', async () => {
    const first = await ask()
    const moved = makeFolder()
    renameSync(join(dataDir, 'raw'), join(moved, 'raw'))
    await ask()
    rmSync(join(dataDir, 'raw'), { recursive: true })
    const third = await ask()
    expect(idsOn(CHAT_DAY, moved)).toEqual([first])
    expect(idsOn(CHAT_DAY)).toEqual([third])
  })

  it('is not lost if another file takes the place of its own, as in log rotation', async () => {
    const first = await ask()
    const [path = ''] = usageFiles(dataDir)
    const rotated = join(makeFolder(), 'rotated')
    renameSync(path, rotated)
    writeFileSync(path, '')
    const second = await ask()
    expect(readFileSync(rotated, 'utf8')).toContain(first)
    expect(idsOn(CHAT_DAY)).toEqual([second])
  })
})

describe('a record that cannot be written', () => {
  it('is in the log at once, holds nobody up, and is written as soon as that is possible', async () => {
    const obstacle = blockDay()
    const lost = await askOften(50)
    expect(notWritten().map((line) => line['usage_record'])).toEqual(
      expect.arrayContaining(lost.map((id) => expect.objectContaining({ request_id: id }))),
    )
    const other = await ask(`${NEXT_DAY}T00:00:00`)
    expect(idsOn(NEXT_DAY)).toEqual([other])
    rmSync(obstacle)
    await until(() => chat.api.lines.some((line) => line.includes('usage records are written again')))
    expect(idsOn(CHAT_DAY).toSorted()).toEqual(lost.toSorted())
    expect(notWritten()).toHaveLength(50)
  })

  it('does not wait in memory beyond 64 MiB: the log has it', async () => {
    const { log, lines } = memoryLog()
    const records = new UsageRecords(dataDir, log)
    const obstacle = blockDay()
    const [most, more] = [63 * 2 ** 20, 2 * 2 ** 20]
    for (const length of [most, more]) {
      const record = { ts: `${CHAT_DAY}T12:00:00Z`, request_id: 'x'.repeat(length) }
      await records.write(record)
    }
    expect(lines.filter((line) => line.includes('"usage_record"'))).toHaveLength(2)
    rmSync(obstacle)
    await records.close()
    expect(idsOn(CHAT_DAY).map((id) => id.length)).toEqual([most])
  })

  it('is tried once more when the service stops', async () => {
    const obstacle = blockDay()
    const id = await ask()
    rmSync(obstacle)
    await chat.api.close()
    expect(idsOn(CHAT_DAY)).toEqual([id])
  })

  it('shows in /readyz as degraded, and in /metrics', async () => {
    await publishSnapshot(dataDir, oneApp())
    const obstacle = blockDay()
    await ask()
    expect(await chat.api.metrics()).toMatch(/^usage_records_waiting 1$/m)
    const ready = '{"status":"degraded","reasons":["1 usage records cannot be written"]}'
    await until(async () => (await (await fetch(`${chat.api.origin}/readyz`)).text()).includes(ready))
    rmSync(obstacle)
  })
})

it.runIf(hasProgram('prlimit'))('a kill on a full disk loses no acknowledged request', async () => {
  await using upstream = await startUpstream({ 'a/one': answers() })
  const began = new Date()
  const MODELS_FILE = writeModels(dataDir, { 'a/one': [{ base_url: upstream.url }] })
  const { get, child, output, stop } = await startServer({ DATA_DIR: dataDir, MODELS_FILE })
  const key = await makeKey({ DATA_DIR: dataDir })
  // A larger file is refused, as on a full disk: the write that meets the limit is short.
  const full = ['--pid', String(child.pid), '--fsize=2000:unlimited']
  expect(spawnSync('prlimit', full).status).toBe(0)
  const acknowledged: string[] = []
  for (let request = 0; request < 20; request += 1) {
    const response = await get('/chat/completions', key, { method: 'POST', body: JSON.stringify(ONE) })
    if (response.ok) acknowledged.push(response.headers.get('X-Request-Id') ?? '')
  }
  await stop('SIGKILL')
  expect(acknowledged).toHaveLength(20)
  const days = new Set([began, new Date()].map((time) => time.toISOString().slice(0, 10)))
  const kept = [...days].flatMap((day) => idsOn(day))
  expect(kept.length).toBeGreaterThan(0)
  const logged = output.stderr.split('\n').filter((line) => line.includes('"usage_record"'))
  expect(
    acknowledged.filter((id) => !kept.includes(id) && !logged.some((line) => line.includes(id))),
  ).toEqual([])
})
