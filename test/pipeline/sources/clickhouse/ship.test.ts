/** Usage records of chat reach the cluster at least once and in order, despite faults of the cluster or a process. */
import { globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { UsageError } from '../../../../pipeline/program/program.ts'
import { DataError } from '../../../../pipeline/errors.ts'
import { ship } from '../../../../pipeline/commands/ship.ts'
import { readConfig } from '../../../../pipeline/config.ts'
import { shipRecords } from '../../../../pipeline/sources/clickhouse/ship.ts'
import { openLog } from '../../../support/chat/usage-log.ts'
import { SILENT } from '../../../support/pipeline/in-process.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import {
  badGateway,
  hangUp,
  loseAnswer,
  refuse,
  scriptClickHouse,
} from '../../../support/clickhouse/scripted-clickhouse.ts'
import { failedRecord, requestIds, usageRecord } from '../../../support/chat/usage-records.ts'

const DAY = '2026-03-10'
const NEXT_DAY = '2026-03-11'
const TYPE_MISMATCH = 'Code: 53. DB::Exception: Type mismatch. (TYPE_MISMATCH) (version 26.1)'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let server: Awaited<ReturnType<typeof scriptClickHouse>>
beforeEach(async () => {
  server = await scriptClickHouse()
  await server.listen()
})
afterEach(() => server.close())

/** Records of a day, with numbered ids. */
const numbered = (count: number, day = DAY) =>
  Array.from({ length: count }, (_, index) =>
    usageRecord({ ts: `${day}T12:00:00.000Z`, request_id: `${day} ${index}` }),
  )

/** Writes a file of chat below DATA_DIR: a JSON line per record, then `tail`. */
function writeFile(dataDir: string, path: string, records: readonly object[], tail = ''): string {
  const target = join(dataDir, path)
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, records.map((record) => `${JSON.stringify(record)}\n`).join('') + tail)
  return target
}

const rawFile = (name: string, day = DAY) => `raw/usage/date=${day}/chat-20260310T000000Z-1-${name}.ndjson`

/** Names of all usage files below DATA_DIR, without the process id. */
const namesIn = (dataDir: string) =>
  globSync('{raw,spool}/usage/*/*', { cwd: dataDir })
    .map((path) => basename(path).replace('chat-20260310T000000Z-1-', ''))
    .toSorted()

const shipFrom = (dataDir: string) => shipRecords(dataDir, server.address)

describe('a shipping', () => {
  it('a shipping inserts the columns of the table only, and renames the file', async () => {
    const dataDir = folders.make()
    writeFile(dataDir, rawFile('a'), [
      usageRecord({ request_id: 'served', model: 'line\nbreak \u2028 😀' }),
      failedRecord({ request_id: 'failed', ts: `${DAY}T23:59:59.999Z` }),
    ])
    expect(await shipFrom(dataDir)).toEqual({ files: 1, records: 2, torn: 0 })
    expect(server.inserts[0]?.query).toBe(
      'INSERT INTO default.usage (ts, app_id, prompt_tokens, completion_tokens, requests, request_id, ' +
        'model, provider, account_id) FORMAT JSONEachRow',
    )
    const common = { app_id: 7, account_id: 'account' }
    const served = { requests: 1, prompt_tokens: 10, completion_tokens: 5, provider: 'acme' }
    const failed = { requests: 0, prompt_tokens: null, completion_tokens: null, provider: '' }
    expect(server.inserts[0]?.rows).toEqual([
      { ...common, ...served, ts: `${DAY} 12:00:00`, request_id: 'served', model: 'line\nbreak \u2028 😀' },
      { ...common, ...failed, ts: `${DAY} 23:59:59`, request_id: 'failed', model: '' },
    ])
    expect(namesIn(dataDir)).toEqual([`_shipped-a.ndjson`])
    expect(await shipFrom(dataDir)).toEqual({ files: 0, records: 0, torn: 0 })
    expect(server.inserts).toHaveLength(1)
  })

  it('a shipping takes files of every day, of an older version and of a killed shipping, a block per day', async () => {
    const dataDir = folders.make()
    const first = numbered(10_500)
    writeFile(dataDir, rawFile('a'), first)
    writeFile(dataDir, rawFile('b', NEXT_DAY), numbered(3, NEXT_DAY))
    writeFile(dataDir, `raw/usage/date=${NEXT_DAY}/_shipping-chat-20260310T000000Z-1-c.ndjson`, [
      usageRecord({ request_id: 'of a killed shipping' }),
    ])
    writeFile(dataDir, `spool/usage/date=${DAY}/chat-20260310T000000Z-1-d.ndjson`, [
      usageRecord({ request_id: 'of an older version' }),
    ])
    writeFile(dataDir, `raw/usage/date=${DAY}/other.ndjson`, [usageRecord({ request_id: 'of others' })])
    expect(await shipFrom(dataDir)).toEqual({ files: 4, records: 10_505, torn: 0 })
    expect(server.inserts.map(({ rows }) => rows.length)).toEqual([10_000, 500, 1, 3, 1])
    expect(server.ids().slice(0, 10_500)).toEqual(requestIds(first))
    expect(server.ids()).toEqual(expect.arrayContaining(['of a killed shipping', 'of an older version']))
    const aside = ['a', 'b', 'c', 'd'].map((name) => `_shipped-${name}.ndjson`)
    expect(namesIn(dataDir)).toEqual([...aside, 'other.ndjson'])
  })

  it('a shipping keeps lines without a record beside the file, and inserts the rest', async () => {
    const dataDir = folders.make()
    const tail = 'not JSON\n{"ts":"2026-03-10T12:00:00Z"}\n{"ts":"2026'
    writeFile(dataDir, rawFile('a'), [usageRecord({ request_id: 'good' })], tail)
    expect(await shipFrom(dataDir)).toEqual({ files: 1, records: 1, torn: 3 })
    expect(server.ids()).toEqual(['good'])
    const [aside = ''] = globSync(join(dataDir, 'raw/usage/*/_torn-*'))
    expect(readFileSync(aside, 'utf8')).toBe(tail)
  })
})

describe('while the cluster is away', () => {
  const manners = [
    { manner: 'does not listen', behaviour: undefined },
    { manner: 'hangs up', behaviour: hangUp },
    { manner: 'stores the rows and closes the connection', behaviour: loseAnswer },
    { manner: 'is hidden behind a proxy', behaviour: badGateway },
  ]

  it.each(manners)(
    '($manner) a shipping fails without the password, and the next inserts the same rows',
    async ({ behaviour }) => {
      const dataDir = folders.make()
      writeFile(dataDir, rawFile('a'), numbered(30))
      writeFile(dataDir, rawFile('b', NEXT_DAY), numbered(2, NEXT_DAY))
      server.script.behaviour = behaviour
      if (behaviour === undefined) await server.close()
      const fault = await shipFrom(dataDir).catch((error: unknown) => error)
      expect(fault).toBeInstanceOf(DataError)
      expect(String(fault)).toContain('does not take usage records')
      expect(String(fault)).not.toContain(server.address.password)
      // The insert fails for every file then, so the others are not tried.
      expect(server.inserts.length).toBeLessThan(2)
      const [lost] = server.inserts.splice(0)

      if (behaviour === undefined) server = Object.assign(server, await restart())
      server.script.behaviour = undefined
      expect(await shipFrom(dataDir)).toMatchObject({ files: 2, records: 32 })
      expect(server.ids()).toEqual(requestIds([...numbered(30), ...numbered(2, NEXT_DAY)]))
      if (lost !== undefined) expect(server.inserts[0]?.body).toBe(lost.body)
    },
  )

  async function restart() {
    const other = await scriptClickHouse()
    await other.listen()
    return other
  }
})

it.each([TYPE_MISMATCH, 'Code: 27, e.displayText() = DB::Exception: Cannot parse input'])(
  'a file that the cluster rejects does not stop the others (%s)',
  async (words) => {
    const dataDir = folders.make()
    writeFile(dataDir, rawFile('a'), [usageRecord({ request_id: 'bad' })])
    writeFile(dataDir, rawFile('b', NEXT_DAY), numbered(2, NEXT_DAY))
    server.script.behaviour = refuse('bad', words)
    await expect(shipFrom(dataDir)).rejects.toThrow(/^date=2026-03-10\/chat-.*Code: |Type mismatch/)
    expect(server.ids()).toEqual(requestIds(numbered(2, NEXT_DAY)))
    server.script.behaviour = undefined
    expect(await shipFrom(dataDir)).toMatchObject({ records: 1 })
  },
)

it('an error message has no password, even if the message of the cluster has it', async () => {
  const dataDir = folders.make()
  writeFile(dataDir, rawFile('a'), [usageRecord({ request_id: 'a' })])
  const words = `Code: 516. DB::Exception: ${server.address.password} is wrong. (AUTHENTICATION_FAILED)`
  server.script.behaviour = refuse('a', words)
  await expect(shipFrom(dataDir)).rejects.toThrow('*** is wrong')
})

describe('while the API writes', () => {
  it('repeated shippings lose no acknowledged record', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    const records = numbered(2000)
    const over = new AbortController()
    const writing = (async () => {
      for (const record of records) await usage.record(record)
      over.abort()
    })()
    while (!over.signal.aborted) {
      await shipFrom(dataDir)
      await sleep(5)
    }
    await writing
    await usage.close()
    await shipFrom(dataDir)
    expect([...new Set(server.ids())].toSorted()).toEqual(requestIds(records).toSorted())
    // A line that is read while it is written counts as torn, and is complete in the next file.
    expect(namesIn(dataDir).filter((name) => !/^_(shipped|torn)-/.test(name))).toEqual([])
  })

  it('chat continues a shipped file in a new one, without a log entry', async () => {
    const dataDir = folders.make()
    const usage = await openLog(dataDir)
    for (const record of numbered(3)) {
      await usage.record(record)
      await shipFrom(dataDir)
    }
    await usage.close()
    expect(server.ids()).toEqual(requestIds(numbered(3)))
    expect(usage.lines).toEqual([])
  })

  it('two shippings at once insert each file once', async () => {
    const dataDir = folders.make()
    for (const name of ['a', 'b', 'c', 'd'])
      writeFile(dataDir, rawFile(name), [usageRecord({ request_id: name })])
    const shipped = await Promise.all([shipFrom(dataDir), shipFrom(dataDir)])
    expect(shipped.map(({ files }) => files).toSorted((a, b) => a - b)).toEqual([0, 4])
    expect(server.ids()).toEqual(['a', 'b', 'c', 'd'])
  })
})

describe('npm run nightly -- ship', () => {
  const worldOf = (environment: Record<string, string>, printed: string[]) => ({
    config: readConfig(environment),
    progress: SILENT,
    now: () => new Date(),
    send: async () => undefined,
    print: (text: string) => void printed.push(text),
  })

  it('ship prints the number of shipped records', async () => {
    const dataDir = folders.make()
    writeFile(dataDir, rawFile('a'), numbered(2))
    const printed: string[] = []
    const source = server.address.url.replace('http:', 'clickhouse:')
    const environment = { DATA_DIR: dataDir, USAGE_SOURCE: `${source}/default?table=usage` }
    await ship.prepare([])(worldOf(environment, printed))
    expect(printed).toEqual(['2 usage records of 1 file shipped'])
  })

  it('ship without a cluster explains that runs read the files', async () => {
    const work = ship.prepare([])(worldOf({ DATA_DIR: folders.make() }, []))
    await expect(work).rejects.toThrow(UsageError)
  })
})

it('a file that an operator puts back is shipped again', async () => {
  const dataDir = folders.make()
  const path = writeFile(dataDir, rawFile('a'), [usageRecord({ request_id: 'again' })])
  await shipFrom(dataDir)
  renameSync(join(dirname(path), `_shipped-${basename(path)}`), path)
  await shipFrom(dataDir)
  expect(server.ids()).toEqual(['again', 'again'])
})
