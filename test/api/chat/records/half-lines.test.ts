/** Lines cut in half by a killed process or a full disk: no acknowledged record is lost with them. */
import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { sealTornTails } from '../../../../api/chat/records/torn-tails.ts'
import { memoryLog, until } from '../../../support/api.ts'
import { fact, runAt } from '../../../support/pipeline/in-process.ts'
import { queryCurrent, TemporaryFolders, writeRaw } from '../../../support/pipeline/nightly.ts'
import { hasProgram } from '../../../support/programs.ts'
import { startRecording } from '../../../support/chat/recording.ts'
import { openLog, REGISTRY } from '../../../support/chat/usage-log.ts'
import { readRecords, requestIds, usageFiles } from '../../../support/chat/usage-records.ts'

const DAY = '2026-03-10'
const NEXT_RUN = '2026-03-12T02:00:00Z'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

describe('a process that was killed', () => {
  it('loses no acknowledged record, and its half line stops no run', async () => {
    const dataDir = folders.make()
    writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
    const { child, acknowledged, ended } = startRecording(dataDir)
    await until(() => acknowledged.length >= 300)
    child.kill('SIGKILL')
    await ended
    const [name = ''] = usageFiles(dataDir, DAY)
    const folder = join(dataDir, 'raw', 'usage', `date=${DAY}`)
    const half = '{"ts":"2026-03-10T09:00:00.000Z","request_id":"ha'
    appendFileSync(join(folder, name), half)

    const usage = await openLog(dataDir, {}, new Date(Date.now() + 120_000))
    expect(readFileSync(join(folder, `_torn-${name}`), 'utf8')).toBe(half)
    expect(usage.logged('half a usage record moved aside')).toHaveLength(1)
    await usage.close()

    const written = requestIds(readRecords(dataDir, DAY))
    expect(written).toEqual(expect.arrayContaining(acknowledged))
    const report = await runAt(dataDir, NEXT_RUN)
    expect(fact(report, 'load', 'rows_rejected')).toBe(0)
    expect(await queryCurrent(dataDir, 'SELECT requests, prompt_tokens FROM app_daily')).toEqual([
      { requests: String(written.length), prompt_tokens: String(10 * written.length) },
    ])
  })

  it.each([
    { content: '', whole: '', aside: undefined },
    { content: '{"a":1}\n', whole: '{"a":1}\n', aside: undefined },
    { content: '{"a"', whole: '', aside: '{"a"' },
    { content: '{"a":1}\n{"b', whole: '{"a":1}\n', aside: '{"b' },
    { content: '{"a":1}\n\0\0\0', whole: '{"a":1}\n', aside: '\0\0\0' },
    { content: `{"a":1}\n${'x'.repeat(200_000)}`, whole: '{"a":1}\n', aside: 'x'.repeat(200_000) },
  ])('leaves whole lines: $whole', async ({ content, whole, aside }) => {
    const dataDir = folders.make()
    const name = 'chat-20260310T000000Z-4711-0123abcd.ndjson'
    writeRaw(dataDir, `usage/date=${DAY}/${name}`, content)
    const usage = await openLog(dataDir, {}, new Date(Date.now() + 120_000))
    await usage.close()
    const folder = join(dataDir, 'raw', 'usage', `date=${DAY}`)
    expect(readFileSync(join(folder, name), 'utf8')).toBe(whole)
    if (aside !== undefined) expect(readFileSync(join(folder, `_torn-${name}`), 'utf8')).toBe(aside)
  })

  it('that lives after all keeps its half line and completes it', async () => {
    const dataDir = folders.make()
    const name = 'chat-20260310T000000Z-4711-0123abcd.ndjson'
    writeRaw(dataDir, `usage/date=${DAY}/${name}`, '{"a":1}\n{"b":"')
    const folder = join(dataDir, 'raw', 'usage')
    const path = join(folder, `date=${DAY}`, name)
    const quiet = new Date(Date.now() + 120_000)
    const { log, messages } = memoryLog()
    const over = new AbortController()
    const sealing = sealTornTails(folder, quiet, log).finally(() => over.abort())
    // In each turn of the event loop, since the sealing takes several between its first look and its last.
    let length = 0
    for (; !over.signal.aborted; length++) {
      appendFileSync(path, 'x')
      await setImmediate()
    }
    expect(await sealing).toBe(true)
    appendFileSync(path, '"}\n')
    expect(readFileSync(path, 'utf8')).toBe(`{"a":1}\n{"b":"${'x'.repeat(length)}"}\n`)
    expect(await sealTornTails(folder, quiet, log)).toBe(false)
    expect(messages()).toEqual([])
  })

  it('is sealed though files beside it are unreadable or gone', async () => {
    const dataDir = folders.make()
    const nameOf = (process: number) => `chat-20260310T000000Z-${process}-0123abcd.ndjson`
    const folder = join(dataDir, 'raw', 'usage', `date=${DAY}`)
    mkdirSync(join(folder, nameOf(1)), { recursive: true })
    symlinkSync(join(folder, 'nowhere'), join(folder, nameOf(2)))
    writeFileSync(join(folder, nameOf(3)), '{"a":1}\n{"b')
    const usage = await openLog(dataDir, {}, new Date(Date.now() + 120_000))
    expect(readFileSync(join(folder, nameOf(3)), 'utf8')).toBe('{"a":1}\n')
    expect(usage.logged('a usage file cannot be checked')).toMatchObject([{ file: join(folder, nameOf(1)) }])
    await usage.close()
  })

  it('leaves recent files and files of others alone', async () => {
    const dataDir = folders.make()
    const young = `usage/date=${DAY}/chat-20260310T000000Z-1-0123abcd.ndjson`
    const foreign = `usage/date=${DAY}/chat.ndjson`
    for (const path of [young, foreign]) writeRaw(dataDir, path, '{"a')
    writeRaw(dataDir, 'usage/notes.txt', 'not a day')
    const { mtime } = statSync(join(dataDir, 'raw', young))
    await (await openLog(dataDir, {}, mtime)).close()
    for (const path of [young, foreign]) expect(readFileSync(join(dataDir, 'raw', path), 'utf8')).toBe('{"a')
    await (await openLog(dataDir, {}, new Date(Date.now() + 120_000))).close()
    expect(readFileSync(join(dataDir, 'raw', young), 'utf8')).toBe('')
    expect(readFileSync(join(dataDir, 'raw', foreign), 'utf8')).toBe('{"a')
  })
})

describe.runIf(hasProgram('prlimit'))('a disk that is full in the middle of a line', () => {
  it('leaves no half line, and every record is written once there is space', async () => {
    const dataDir = folders.make()
    // A larger file is refused, as on a full disk: the write that meets the limit is short.
    const { child, acknowledged, ended } = startRecording(dataDir, {
      behind: ['prlimit', '--fsize=100001:unlimited'],
    })
    const size = () =>
      statSync(join(dataDir, 'raw', 'usage', `date=${DAY}`, usageFiles(dataDir, DAY)[0] ?? '')).size
    await until(() => acknowledged.length > 1000)
    expect(size()).toBeLessThan(100_002)
    const lift = ['--pid', String(child.pid), '--fsize=unlimited:unlimited']
    expect(spawnSync('prlimit', lift).status).toBe(0)
    await until(() => size() > 1_000_000)
    child.stdin.end()
    await ended
    expect(requestIds(readRecords(dataDir, DAY)).toSorted()).toEqual(acknowledged.toSorted())
  })
})
