/** Usage records are inserted into a cluster in batches, in order and none lost, whatever the cluster does. */
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LAST_RESORT } from '../../../../api/chat/records/waiting-records.ts'
import { until } from '../../../support/api.ts'
import { MESSAGES, startChat } from '../../../support/chat.ts'
import {
  age,
  AGAIN,
  DAY,
  HINDERED,
  NEVER,
  NEXT_DAY,
  numbered,
  openLog,
  spooled,
  spoolFiles,
  spoolFolder,
} from '../../../support/cluster-log.ts'
import { TemporaryFolders } from '../../../support/nightly.ts'
import {
  badGateway,
  hangUp,
  loseAnswer,
  refuse,
  scriptClickHouse,
} from '../../../support/scripted-clickhouse.ts'
import { failedRecord, requestIds, usageRecord } from '../../../support/usage-records.ts'
import { answers, startUpstream } from '../../../support/upstream.ts'

const TYPE_MISMATCH = 'Code: 53. DB::Exception: Type mismatch. (TYPE_MISMATCH) (version 26.1)'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let server: Awaited<ReturnType<typeof scriptClickHouse>>
beforeEach(async () => {
  server = await scriptClickHouse()
})
afterEach(() => server.close())

describe('openClusterLog', () => {
  it('has every record in the spool by the time record() resolves, and none in the drop folder', async () => {
    const dataDir = folders.make()
    const usage = openLog(dataDir, server.address, NEVER)
    const records = numbered(3)
    for (const record of records) await usage.record(record)
    expect(spooled(dataDir)).toEqual(requestIds(records))
    const [path = ''] = spoolFiles(dataDir)
    expect(JSON.parse(readFileSync(path, 'utf8').split('\n')[0] ?? '')).toEqual(records[0])
    expect(existsSync(join(dataDir, 'raw'))).toBe(false)
    await usage.close()
  })

  it('inserts the columns of the table and nothing else, and leaves the spool empty', async () => {
    await server.listen()
    const dataDir = folders.make()
    const usage = openLog(dataDir, server.address)
    await Promise.all([
      usage.record(usageRecord({ request_id: 'served' })),
      usage.record(failedRecord({ request_id: 'failed', ts: `${DAY}T23:59:59.999Z` })),
    ])
    await until(() => server.ids().length === 2 && usage.waiting() === 0)
    expect(server.inserts[0]?.query).toBe(
      'INSERT INTO default.usage (ts, app_id, prompt_tokens, completion_tokens, requests, request_id, ' +
        'model, provider, account_id) FORMAT JSONEachRow',
    )
    const common = { app_id: 7, account_id: 'account' }
    expect(server.inserts[0]?.rows).toEqual([
      {
        ...common,
        ts: `${DAY} 12:00:00`,
        prompt_tokens: 10,
        completion_tokens: 5,
        requests: 1,
        request_id: 'served',
        model: 'author/slug',
        provider: 'acme',
      },
      {
        ...common,
        ts: `${DAY} 23:59:59`,
        prompt_tokens: null,
        completion_tokens: null,
        requests: 0,
        request_id: 'failed',
        model: '',
        provider: '',
      },
    ])
    expect(spoolFiles(dataDir)).toEqual([])
    await usage.close()
    expect(usage.lines).toEqual([])
  })

  it('inserts thousands of records in order, in batches, each of one day', async () => {
    await server.listen()
    const dataDir = folders.make()
    const usage = openLog(dataDir, server.address)
    const records = numbered(3000)
    const other = numbered(10, NEXT_DAY)
    await Promise.all([...records, ...other].map((record) => usage.record(record)))
    await until(() => usage.waiting() === 0 && server.ids().length === 3010)
    expect(server.ids().filter((id) => id.startsWith(DAY))).toEqual(requestIds(records))
    expect(server.inserts.length).toBeLessThan(100)
    for (const { rows } of server.inserts) {
      expect(new Set(rows.map((row) => String(row['ts']).slice(0, 10))).size).toBe(1)
    }
    await usage.close()
  })

  it('close() inserts what was handed in', async () => {
    await server.listen()
    const dataDir = folders.make()
    const usage = openLog(dataDir, server.address, NEVER)
    const records = numbered(500)
    const written = records.map((record) => usage.record(record))
    await usage.close()
    await Promise.all(written)
    expect(server.ids()).toEqual(requestIds(records))
    expect(spoolFiles(dataDir)).toEqual([])
  })
})

describe('while the cluster is away', () => {
  const manners = [
    { manner: 'does not listen', behaviour: undefined },
    { manner: 'hangs up', behaviour: hangUp },
    { manner: 'is hidden behind a proxy', behaviour: badGateway },
  ]

  it.each(manners)(
    '($manner) nothing is lost, the order stays, and it is told once',
    async ({ behaviour }) => {
      server.script.behaviour = behaviour
      if (behaviour !== undefined) await server.listen()
      const dataDir = folders.make()
      const usage = openLog(dataDir, server.address)
      const records = numbered(60)
      for (const [index, record] of records.entries()) {
        await usage.record(record)
        // Several files, and several rounds that fail.
        if (index % 20 === 0)
          await until(() => spoolFiles(dataDir).length > index / 20 && usage.waiting() > index)
      }
      await until(() => usage.waiting() === 60)
      expect(spooled(dataDir).toSorted()).toEqual(requestIds(records).toSorted())
      await until(() => usage.told(HINDERED).length > 0)

      server.script.behaviour = undefined
      if (behaviour === undefined) await server.listen()
      await until(() => usage.told(AGAIN).length === 1)
      expect(server.ids()).toEqual(requestIds(records))
      expect(spoolFiles(dataDir)).toEqual([])
      expect(usage.waiting()).toBe(0)
      expect(usage.told(HINDERED)).toHaveLength(1)
      await usage.close()
      expect(usage.lines.join('')).not.toContain(server.address.password)
    },
  )

  it('close() leaves the records in the spool, where the next process finds them', async () => {
    const dataDir = folders.make()
    const records = numbered(20)
    const first = openLog(dataDir, server.address)
    for (const record of records) await first.record(record)
    await first.close()
    expect(spooled(dataDir).toSorted()).toEqual(requestIds(records).toSorted())
    expect(first.told(LAST_RESORT)).toEqual([])

    await server.listen()
    age(spoolFiles(dataDir))
    const second = openLog(dataDir, server.address)
    await until(() => server.ids().length === 20 && spoolFiles(dataDir).length === 0)
    expect(server.ids().toSorted()).toEqual(requestIds(records).toSorted())
    await second.close()
  })

  it('close() does not wait for a cluster that never answers', async () => {
    await server.listen()
    server.script.behaviour = () => true
    const dataDir = folders.make()
    const usage = openLog(dataDir, server.address, { closeMs: 20 })
    await usage.record(usageRecord())
    await until(() => server.inserts.length > 0)
    await usage.close()
    expect(spooled(dataDir)).toHaveLength(1)
  })

  it('does not tell the password, even where the cluster does', async () => {
    await server.listen()
    server.script.behaviour = refuse(
      'a',
      `Code: 516. DB::Exception: ${server.address.password} is wrong. (AUTHENTICATION_FAILED)`,
    )
    const usage = openLog(folders.make(), server.address)
    await usage.record(usageRecord({ request_id: 'a' }))
    const [line] = await until(() => usage.told(HINDERED).length > 0 && usage.told(HINDERED))
    expect(line?.['reason']).toBe('Code: 516, *** is wrong. ')
    await usage.close()
    expect(usage.lines.join('')).not.toContain(server.address.password)
  })
})

describe('an insert whose answer is lost', () => {
  it('is repeated with the very same rows', async () => {
    await server.listen()
    server.script.behaviour = loseAnswer
    const dataDir = folders.make()
    const usage = openLog(dataDir, server.address)
    await Promise.all(numbered(30).map((record) => usage.record(record)))
    // What comes meanwhile must not slip in.
    await until(() => server.inserts.length >= 2)
    await usage.record(usageRecord({ request_id: 'later' }))
    await until(() => server.inserts.length >= 4)
    server.script.behaviour = undefined
    await until(() => server.ids().includes('later') && usage.waiting() === 0)
    const [first, ...others] = server.inserts.filter(({ rows }) => rows[0]?.request_id !== 'later')
    expect(first?.rows).toHaveLength(30)
    expect(others.length).toBeGreaterThan(2)
    for (const { query, body } of others)
      expect({ query, body }).toEqual({ query: first?.query, body: first?.body })
    await usage.close()
  })
})

describe('what the cluster refuses', () => {
  it.each([TYPE_MISMATCH, 'Code: 27, e.displayText() = DB::Exception: Cannot parse input'])(
    'stays in the spool, told once, and holds up nothing else (%s)',
    async (words) => {
      await server.listen()
      server.script.behaviour = refuse('bad', words)
      const dataDir = folders.make()
      const usage = openLog(dataDir, server.address)
      await usage.record(usageRecord({ request_id: 'bad' }))
      await until(() => usage.told(HINDERED).length === 1)
      const records = numbered(20, NEXT_DAY)
      for (const record of records) await usage.record(record)
      await until(() => server.ids().length === 20)
      await until(() => usage.waiting() === 1)
      const before = server.inserts.length
      await until(() => server.inserts.length > before + 2)
      expect(spooled(dataDir)).toEqual(['bad'])
      expect(usage.told(HINDERED)).toHaveLength(1)

      server.script.behaviour = undefined
      await until(() => usage.told(AGAIN).length === 1)
      expect(server.ids()).toEqual([...requestIds(records), 'bad'])
      expect(spoolFiles(dataDir)).toEqual([])
      await usage.close()
    },
  )

  it('a line that is no record is moved aside, and the others are inserted', async () => {
    await server.listen()
    const dataDir = folders.make()
    const folder = spoolFolder(dataDir, DAY)
    mkdirSync(folder, { recursive: true })
    const name = 'chat-20260310T000000Z-4711-0123abcd.ndjson'
    const good = usageRecord({ request_id: 'good' })
    writeFileSync(
      join(folder, name),
      `not JSON\n${JSON.stringify(good)}\n{"ts":"2026-03-10T12:00:00Z"}\n{"ts":"2026`,
    )
    age([join(folder, name)])
    const usage = openLog(dataDir, server.address)
    await until(() => server.ids().length === 1 && usage.waiting() === 0)
    await until(() => spoolFiles(dataDir).length === 0)
    const aside = globSync(join(folder, '_torn-*'))
    expect(aside.map((path) => readFileSync(path, 'utf8'))).toEqual([
      'not JSON\n{"ts":"2026-03-10T12:00:00Z"}\n{"ts":"2026',
    ])
    expect(usage.told('what is no usage record moved aside')).toHaveLength(1)
    await usage.close()
  })
})

describe('the service with USAGE_SOURCE', () => {
  it('inserts the record of a chat request into the cluster, and tells how many wait', async () => {
    await using upstream = await startUpstream({ 'their-name': answers() })
    const { port } = new URL(server.address.url)
    await using api = await startChat(
      folders,
      { 'author/slug': [{ base_url: upstream.url, model: 'their-name' }] },
      {
        environment: {
          USAGE_SOURCE: `clickhouse://127.0.0.1:${port}/default?table=usage`,
          USAGE_SOURCE_USER: server.address.user,
          USAGE_SOURCE_PASSWORD: server.address.password,
        },
      },
    )
    const reply = await api.post({ model: 'author/slug', messages: MESSAGES })
    expect(reply.status).toBe(200)
    await reply.text()
    const metrics = async () => await (await fetch(`${api.origin}/metrics`)).text()
    await until(async () => (await metrics()).includes('usage_records_waiting 1'))
    await server.listen()
    await until(() => server.ids().length === 1)
    await until(async () => (await metrics()).includes('usage_records_waiting 0'))
    expect(server.inserts.at(-1)?.rows).toMatchObject([
      { model: 'author/slug', provider: 'acme', requests: 1 },
    ])
    expect(existsSync(join(api.dataDir, 'raw', 'usage'))).toBe(false)
    expect(api.lines.join('')).not.toContain(server.address.password)
  })
})
