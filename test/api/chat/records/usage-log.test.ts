import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, describe, expect, it } from 'vitest'
import { WRITER_LIMITS } from '../../../../api/chat/records/record-writer.ts'
import { openUsageLog } from '../../../../api/chat/records/usage-log.ts'
import { LAST_RESORT } from '../../../../api/chat/records/waiting-records.ts'
import { memoryLog, until } from '../../../support/api.ts'
import { fact, queryWarehouse, runAt } from '../../../support/in-process.ts'
import { queryCurrent, REPOSITORY, TemporaryFolders, writeRaw } from '../../../support/nightly.ts'
import { hasProgram } from '../../../support/programs.ts'
import { failedRecord, readRecords, usageFiles, usageRecord } from '../../../support/usage-records.ts'

const DAY = '2026-03-10'
const NEXT_DAY = '2026-03-11'
const NEXT_RUN = '2026-03-12T02:00:00Z'
const REGISTRY = `app_id,app_name,visibility,subcategories,alias_of,updated_at
7,Seven,public,,,2025-01-01T00:00:00Z
8,Eight,public,,,2025-01-01T00:00:00Z
`

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

async function openLog(dataDir: string, limits: Partial<typeof WRITER_LIMITS> = {}, now = new Date()) {
  const { log, lines, messages } = memoryLog()
  const usage = await openUsageLog(dataDir, {
    log,
    clock: () => now,
    limits: { ...WRITER_LIMITS, retryMs: 5, ...limits },
  })
  return { ...usage, lines, messages, told: (text: string) => messages().filter(({ msg }) => msg === text) }
}

/** A folder where the day's folder cannot be made, since a file has its name. */
function blockDay(dataDir: string, day: string): string {
  writeRaw(dataDir, `usage/date=${day}`, '')
  return join(dataDir, 'raw', 'usage', `date=${day}`)
}

const ids = (records: readonly { request_id: string }[]) => records.map(({ request_id }) => request_id)

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

  it('puts each record into the folder of its own ts, whatever the clock says', async () => {
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
    expect(ids(readRecords(dataDir, DAY))).toEqual([before.request_id, 'c'])
    expect(ids(readRecords(dataDir, NEXT_DAY))).toEqual([after.request_id, 'b'])
    await usage.close()
  })

  it('goes through many days with one file each', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    const days = ['2026-03-10', '2026-03-11', '2026-03-12', '2026-03-13', '2026-03-10', '2026-03-13']
    for (const day of days) await usage.record(usageRecord({ ts: `${day}T01:00:00.000Z` }))
    await usage.close()
    expect(days.slice(0, 4).map((day) => readRecords(dataDir, day).length)).toEqual([2, 1, 1, 2])
    expect(days.slice(0, 4).map((day) => usageFiles(dataDir, day).length)).toEqual([1, 1, 1, 1])
  })

  it('of two processes (here: two writers) has a file each', async () => {
    const dataDir = folders.make()
    const [one, two] = [await openLog(dataDir), await openLog(dataDir)]
    await Promise.all([one.record(usageRecord()), two.record(usageRecord())])
    await Promise.all([one.close(), two.close()])
    expect(usageFiles(dataDir, DAY)).toHaveLength(2)
    expect(readRecords(dataDir, DAY)).toHaveLength(2)
  })

  it('writes what was handed in when close() was called', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    const written = Array.from({ length: 500 }, () => usage.record(usageRecord()))
    await usage.close()
    expect(readRecords(dataDir, DAY)).toHaveLength(500)
    await Promise.all(written)
  })
})

describe('when a record cannot be written', () => {
  it('nobody waits for it, it is told once, and all is written as soon as that is possible', async () => {
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
    await until(() => usage.told('usage records are written again').length === 1)
    expect(ids(readRecords(dataDir, DAY)).toSorted()).toEqual(ids(records).toSorted())
    expect(usage.messages().filter(({ level }) => level === 'error')).toHaveLength(1)
    await usage.close()
    expect(usage.told(LAST_RESORT)).toEqual([])
  })

  it('a folder that was removed is made again, with what was not acknowledged', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    await usage.record(usageRecord({ request_id: 'gone with the folder' }))
    rmSync(join(dataDir, 'raw'), { recursive: true })
    await usage.record(usageRecord({ request_id: 'next' }))
    await until(() => usage.waiting() === 0)
    expect(ids(readRecords(dataDir, DAY))).toEqual(['next'])
    await usage.close()
  })

  it('a folder that was moved away takes no further records', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    await usage.record(usageRecord({ request_id: 'first' }))
    const moved = folders.make()
    renameSync(join(dataDir, 'raw'), join(moved, 'raw'))
    await usage.record(usageRecord({ request_id: 'second' }))
    await until(() => usage.waiting() === 0)
    await usage.close()
    expect(ids(readRecords(dataDir, DAY))).toEqual(['second'])
    expect(ids(readRecords(moved, DAY))).toEqual(['first'])
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
    expect(usage.told(LAST_RESORT).map((line) => line['usage_record'])).toEqual(lost)
    rmSync(obstacle)
  })

  it('what memory may not hold goes into the log at once', async () => {
    const dataDir = folders.make()
    const size = Buffer.byteLength(`${JSON.stringify(usageRecord())}\n`)
    const usage = await openLog(dataDir, { waitingBytes: 2 * size })
    const obstacle = blockDay(dataDir, DAY)
    const records = Array.from({ length: 5 }, () => usageRecord())
    for (const record of records) await usage.record(record)
    expect(usage.told(LAST_RESORT).map((line) => line['usage_record'])).toEqual(records.slice(2))
    rmSync(obstacle)
    await until(() => usage.waiting() === 0)
    await usage.close()
    expect(readRecords(dataDir, DAY)).toEqual(records.slice(0, 2))
  })
})

/** A process that writes records until its stdin ends and prints the id of each that was acknowledged. */
const WRITER = `
  import { setTimeout as sleep } from 'node:timers/promises'
  const [modules, dataDir, day] = process.argv.slice(1)
  const { openUsageLog } = await import(modules + '/api/chat/records/usage-log.ts')
  const { createLog } = await import(modules + '/api/log.ts')
  const { usageRecord } = await import(modules + '/test/support/usage-records.ts')
  const usage = await openUsageLog(dataDir, { log: createLog('silent'), clock: () => new Date() })
  let ended = false
  process.stdin.resume().once('end', () => (ended = true))
  while (!ended) {
    await Promise.all(Array.from({ length: 20 }, async () => {
      const record = usageRecord({ ts: day + 'T08:00:00.000Z' })
      await usage.record(record)
      process.stdout.write(record.request_id + '\\n')
    }))
    await sleep(5)
  }
  await usage.close()`

/** Starts it, behind the words of another program where there are any. */
function startWriter(dataDir: string, ...behind: readonly string[]) {
  const node = [process.execPath, '--input-type=module', '--eval', WRITER, REPOSITORY, dataDir, DAY]
  const [program = '', ...args] = [...behind, ...node]
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const acknowledged: string[] = []
  const lines = createInterface({ input: child.stdout }).on('line', (line) => void acknowledged.push(line))
  return { child, acknowledged, ended: once(lines, 'close') }
}

describe('a process that was killed', () => {
  it('has lost nothing that it acknowledged, and its half line stops no run', async () => {
    const dataDir = folders.make()
    writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
    const { child, acknowledged, ended } = startWriter(dataDir)
    await until(() => acknowledged.length >= 300)
    child.kill('SIGKILL')
    await ended
    const [name = ''] = usageFiles(dataDir, DAY)
    const folder = join(dataDir, 'raw', 'usage', `date=${DAY}`)
    const half = '{"ts":"2026-03-10T09:00:00.000Z","request_id":"ha'
    appendFileSync(join(folder, name), half)

    const usage = await openLog(dataDir, {}, new Date(Date.now() + 120_000))
    expect(readFileSync(join(folder, `_torn-${name}`), 'utf8')).toBe(half)
    expect(usage.told('half a usage record moved aside')).toHaveLength(1)
    await usage.close()

    const written = ids(readRecords(dataDir, DAY))
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

  it('leaves alone what is young and what is not ours', async () => {
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

describe('the pipeline', () => {
  it('takes the records as they are: unserved requests, unknown tokens, requests that name no app', async () => {
    const dataDir = folders.make()
    writeRaw(dataDir, 'apps/registry.csv', REGISTRY)
    writeRaw(
      dataDir,
      `usage/date=${DAY}/other.csv`,
      `ts,app_id,prompt_tokens,completion_tokens\n${DAY},8,1,2\n`,
    )
    // What is left of a file whose only line was torn.
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

  it('lists no app whose requests were never served', async () => {
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
})

describe.runIf(hasProgram('prlimit'))('a disk that is full in the middle of a line', () => {
  it('leaves no half line, and every record is written once there is room', async () => {
    const dataDir = folders.make()
    // A larger file is refused, as on a full disk: the write that meets the limit comes back short.
    const { child, acknowledged, ended } = startWriter(dataDir, 'prlimit', '--fsize=100001:unlimited')
    const size = () =>
      statSync(join(dataDir, 'raw', 'usage', `date=${DAY}`, usageFiles(dataDir, DAY)[0] ?? '')).size
    await until(() => acknowledged.length > 1000)
    expect(size()).toBeLessThan(100_002)
    const lift = ['--pid', String(child.pid), '--fsize=unlimited:unlimited']
    expect(spawnSync('prlimit', lift).status).toBe(0)
    await until(() => size() > 1_000_000)
    child.stdin.end()
    await ended
    expect(ids(readRecords(dataDir, DAY)).toSorted()).toEqual(acknowledged.toSorted())
  })
})
