import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CLUSTER_LOG_LIMITS, openClusterLog } from '../../../api/chat/cluster-log.ts'
import { openSpool } from '../../../api/chat/cluster-spool.ts'
import { LAST_RESORT } from '../../../api/chat/waiting-records.ts'
import { readConfig } from '../../../pipeline/config.ts'
import { clusterOf, type ClickHouseAddress } from '../../../pipeline/contract.ts'
import { runNightly } from '../../../pipeline/run.ts'
import { USUAL_RUN } from '../../../pipeline/run-options.ts'
import { memoryLog, until } from '../../support/api.ts'
import { MESSAGES, startChat } from '../../support/chat.ts'
import { PASSWORD, startCluster, type ClickHouseCluster } from '../../support/clickhouse.ts'
import { fact, queryWarehouse, SILENT } from '../../support/in-process.ts'
import { queryCurrent, REPOSITORY, TemporaryFolders, writeRaw } from '../../support/nightly.ts'
import { findProgram } from '../../support/programs.ts'
import {
  badGateway,
  hangUp,
  loseAnswer,
  refuse,
  scriptClickHouse,
} from '../../support/scripted-clickhouse.ts'
import { failedRecord, usageRecord } from '../../support/usage-records.ts'
import { answers, startUpstream } from '../../support/upstream.ts'

const DAY = '2026-03-10'
const NEXT_DAY = '2026-03-11'
const HINDERED = 'usage records cannot be inserted; they are kept in the spool and tried again'
const AGAIN = 'usage records are inserted again'
const TYPE_MISMATCH = 'Code: 53. DB::Exception: Type mismatch. (TYPE_MISMATCH) (version 26.1)'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let server: Awaited<ReturnType<typeof scriptClickHouse>>
beforeEach(async () => {
  server = await scriptClickHouse()
})
afterEach(() => server.close())

function openLog(
  dataDir: string,
  cluster: ClickHouseAddress = server.address,
  limits: Partial<typeof CLUSTER_LOG_LIMITS> = {},
) {
  const { log, lines, messages } = memoryLog()
  const usage = openClusterLog(dataDir, cluster, {
    log,
    clock: () => new Date(),
    limits: { ...CLUSTER_LOG_LIMITS, gatherMs: 5, longestPauseMs: 20, retryMs: 5, ...limits },
  })
  return { ...usage, lines, told: (text: string) => messages().filter(({ msg }) => msg === text) }
}

/** A pause that no test outlasts: nothing is inserted before close(). */
const NEVER = { gatherMs: 1_000_000, longestPauseMs: 1_000_000 }

const spoolFolder = (dataDir: string, day: string) => join(dataDir, 'spool', 'usage', `date=${day}`)
const spoolFiles = (dataDir: string) => globSync(join(dataDir, 'spool', 'usage', '*', 'chat-*'))

/** Ids in the spool; each file must end with a whole line. */
function spooled(dataDir: string): string[] {
  const texts = spoolFiles(dataDir).map((path) => readFileSync(path, 'utf8'))
  return texts.flatMap((text) =>
    [...text.matchAll(/"request_id":"([^"]*)".*\n/g)].map(([, id]) => String(id)),
  )
}

/** Makes files look as those of a process that died long ago. */
function age(paths: readonly string[]): void {
  for (const path of paths) utimesSync(path, new Date(0), new Date(0))
}

const ids = (records: readonly { request_id: string }[]) => records.map(({ request_id }) => request_id)
const numbered = (count: number, day = DAY) =>
  Array.from({ length: count }, (_, index) =>
    usageRecord({ ts: `${day}T12:00:00.000Z`, request_id: `${day} ${index}` }),
  )

describe('openClusterLog', () => {
  it('has every record in the spool by the time record() resolves, and none in the drop folder', async () => {
    const dataDir = folders.make()
    const usage = openLog(dataDir, server.address, NEVER)
    const records = numbered(3)
    for (const record of records) await usage.record(record)
    expect(spooled(dataDir)).toEqual(ids(records))
    const [path = ''] = spoolFiles(dataDir)
    expect(JSON.parse(readFileSync(path, 'utf8').split('\n')[0] ?? '')).toEqual(records[0])
    expect(existsSync(join(dataDir, 'raw'))).toBe(false)
    await usage.close()
  })

  it('inserts the columns of the table and nothing else, and leaves the spool empty', async () => {
    await server.listen()
    const dataDir = folders.make()
    const usage = openLog(dataDir)
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
    const usage = openLog(dataDir)
    const records = numbered(3000)
    const other = numbered(10, NEXT_DAY)
    await Promise.all([...records, ...other].map((record) => usage.record(record)))
    await until(() => usage.waiting() === 0 && server.ids().length === 3010)
    expect(server.ids().filter((id) => id.startsWith(DAY))).toEqual(ids(records))
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
    expect(server.ids()).toEqual(ids(records))
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
      const usage = openLog(dataDir)
      const records = numbered(60)
      for (const [index, record] of records.entries()) {
        await usage.record(record)
        // Several files, and several rounds that fail.
        if (index % 20 === 0)
          await until(() => spoolFiles(dataDir).length > index / 20 && usage.waiting() > index)
      }
      await until(() => usage.waiting() === 60)
      expect(spooled(dataDir).toSorted()).toEqual(ids(records).toSorted())
      await until(() => usage.told(HINDERED).length > 0)

      server.script.behaviour = undefined
      if (behaviour === undefined) await server.listen()
      await until(() => usage.told(AGAIN).length === 1)
      expect(server.ids()).toEqual(ids(records))
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
    const first = openLog(dataDir)
    for (const record of records) await first.record(record)
    await first.close()
    expect(spooled(dataDir).toSorted()).toEqual(ids(records).toSorted())
    expect(first.told(LAST_RESORT)).toEqual([])

    await server.listen()
    age(spoolFiles(dataDir))
    const second = openLog(dataDir)
    await until(() => server.ids().length === 20 && spoolFiles(dataDir).length === 0)
    expect(server.ids().toSorted()).toEqual(ids(records).toSorted())
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
    const usage = openLog(folders.make())
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
    const usage = openLog(dataDir)
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
      const usage = openLog(dataDir)
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
      expect(server.ids()).toEqual([...ids(records), 'bad'])
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
    const usage = openLog(dataDir)
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

/** A process that records until it is killed, and prints the id of each record that was acknowledged. */
const WRITER = `
  import { setTimeout as sleep } from 'node:timers/promises'
  const [modules, dataDir, cluster] = process.argv.slice(1)
  const { openClusterLog } = await import(modules + '/api/chat/cluster-log.ts')
  const { createLog } = await import(modules + '/api/log.ts')
  const { usageRecord } = await import(modules + '/test/support/usage-records.ts')
  const usage = openClusterLog(dataDir, JSON.parse(cluster), { log: createLog('silent'), clock: () => new Date() })
  for (;;) {
    await Promise.all(Array.from({ length: 20 }, async () => {
      const record = usageRecord()
      await usage.record(record)
      process.stdout.write(record.request_id + '\\n')
    }))
    await sleep(5)
  }`

describe('processes that share a spool', () => {
  it.each(['away', 'there'])('one that is killed while the cluster is %s loses nothing', async (cluster) => {
    if (cluster === 'there') await server.listen()
    const dataDir = folders.make()
    const child = spawn(
      process.execPath,
      ['--input-type=module', '--eval', WRITER, REPOSITORY, dataDir, JSON.stringify(server.address)],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const acknowledged: string[] = []
    const lines = createInterface({ input: child.stdout }).on('line', (line) => void acknowledged.push(line))
    await until(() => acknowledged.length >= 300 && spoolFiles(dataDir).length > 0)
    if (cluster === 'there') await until(() => server.ids().length > 0)
    child.kill('SIGKILL')
    await once(lines, 'close')

    if (cluster === 'away') await server.listen()
    age(spoolFiles(dataDir))
    const usage = openLog(dataDir)
    await until(() => spoolFiles(dataDir).length === 0)
    await usage.close()
    // A batch that was taken when the process died comes once more, which the pipeline counts once.
    expect(server.ids()).toEqual(expect.arrayContaining(acknowledged))
  })

  it('leave the files of one another alone while these live', async () => {
    const dataDir = folders.make()
    const one = openLog(dataDir)
    await one.record(usageRecord({ request_id: 'one' }))
    await until(() => one.waiting() === 1)
    const [path] = spoolFiles(dataDir)
    const other = await scriptClickHouse()
    await other.listen()
    const two = openLog(dataDir, other.address)
    await two.record(usageRecord({ request_id: 'two' }))
    await until(() => other.ids().length === 1)
    await two.record(usageRecord({ request_id: 'three' }))
    await until(() => other.ids().length === 2)
    await two.close()
    await other.close()
    expect(other.ids()).toEqual(['two', 'three'])
    expect(spoolFiles(dataDir)).toEqual([path])
    await one.close()
  })

  it('share out what a dead one left: each file is taken over by one', async () => {
    const dataDir = folders.make()
    const folder = spoolFolder(dataDir, DAY)
    mkdirSync(folder, { recursive: true })
    for (let file = 0; file < 40; file += 1) {
      const name = `chat-20260310T000000Z-4711-${String(file).padStart(8, '0')}.ndjson`
      writeFileSync(join(folder, name), `${JSON.stringify(usageRecord())}\n`)
    }
    age(spoolFiles(dataDir))
    const spools = Array.from({ length: 4 }, () =>
      openSpool(join(dataDir, 'spool', 'usage'), () => new Date()),
    )
    await Promise.all(spools.map((spool) => spool.takeOver()))
    const held = spools.flatMap((spool) => spool.files())
    expect(held.toSorted()).toEqual(spoolFiles(dataDir).toSorted())
    expect(held).toHaveLength(40)
    expect(spools.reduce((sum, spool) => sum + spool.records(), 0)).toBe(40)
  })

  it('show by a touch that they live, and notice when they were thought dead', async () => {
    const dataDir = folders.make()
    const folder = spoolFolder(dataDir, DAY)
    mkdirSync(folder, { recursive: true })
    const paths = ['a', 'b'].map((name) => join(folder, `chat-20260310T000000Z-4711-0000000${name}.ndjson`))
    for (const path of paths) writeFileSync(path, `${JSON.stringify(usageRecord())}\n`)
    age(paths)
    const [owner, other] = ['owner', 'other'].map(() =>
      openSpool(join(dataDir, 'spool', 'usage'), () => new Date()),
    )
    owner?.add(paths.map((path) => ({ path, lines: 1 })))
    await owner?.keepAlive()
    await other?.takeOver()
    expect(other?.files()).toEqual([])
    age(paths.slice(1))
    await other?.takeOver()
    expect(other?.records()).toBe(1)
    await owner?.keepAlive()
    expect(owner?.files()).toEqual(paths.slice(0, 1))
  })

  it('a file that is taken over while its owner still writes takes no further record', async () => {
    await server.listen()
    const dataDir = folders.make()
    const usage = openLog(dataDir, server.address, NEVER)
    await usage.record(usageRecord({ request_id: 'first' }))
    const [path = ''] = spoolFiles(dataDir)
    const taken = join(dirname(path), basename(path).replace('chat-', 'taken-'))
    renameSync(path, taken)
    await usage.record(usageRecord({ request_id: 'second' }))
    await usage.close()
    expect(server.ids()).toEqual(['second'])
  })

  it('remove the folders of former days when they are empty', async () => {
    await server.listen()
    const dataDir = folders.make()
    const usage = openLog(dataDir)
    const today = new Date().toISOString()
    await Promise.all([usage.record(usageRecord()), usage.record(usageRecord({ ts: today }))])
    await until(() => server.ids().length === 2 && !existsSync(spoolFolder(dataDir, DAY)))
    expect(existsSync(spoolFolder(dataDir, today.slice(0, 10)))).toBe(true)
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

const program = findProgram('clickhouse-server')

describe.runIf(program !== undefined)('a real cluster of two shards', () => {
  let cluster: ClickHouseCluster

  beforeAll(async () => {
    cluster = await startCluster(program ?? '')
  })
  afterAll(() => cluster.remove())

  const addressOf = (source: string) => clusterOf({ USAGE_SOURCE: source }) ?? server.address

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
