/** CONTRACT 3, 4.6 and 8: the served snapshot follows the pointer; what cannot be opened leaves the one before; limits of queries. */
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { Catalogue } from '../../../../api/datasets/snapshots/catalogue.ts'
import { Snapshots } from '../../../../api/datasets/snapshots/current.ts'
import { memoryLog, served, startApi, statusOf, until, type Api } from '../../../support/api.ts'
import { copyFolder, makeFolder } from '../../../support/folders.ts'
import { FIRST, publishTwice, SECOND } from '../../../support/pipeline/published-twice.ts'
import { oneApp, openSnapshot, pointAt, publishSnapshot } from '../../../support/pipeline/snapshot.ts'

const RANKINGS = '/datasets/app-rankings'
const SNAPSHOTS = `${RANKINGS}/snapshots`
const REMEDY = 'npm run nightly publishes the first, and /api/v1/status lists faults'

const published = makeFolder()
beforeAll(() => publishTwice(published))
afterEach(() => void vi.useRealTimers())

/** What /readyz and /metrics say about the snapshot. */
async function health({ origin }: Api): Promise<unknown[]> {
  const ready = await fetch(`${origin}/readyz`)
  const metrics = await (await fetch(`${origin}/metrics`)).text()
  return [ready.status, await ready.json(), /^dataset_degraded (\S+)$/m.exec(metrics)?.[1]]
}

const faultsIn = (api: Api) => api.messages().filter(({ msg }) => msg === 'snapshot cannot be opened')

describe('at a start', () => {
  const file = (dataDir: string) => join(dataDir, 'snapshots', SECOND, 'app-rankings.duckdb')

  it.each([
    ['cannot be opened', file, (path: string) => writeFileSync(path, '-'.repeat(readFileSync(path).length))],
    ['is cut', file, (path: string) => truncateSync(path, 100)],
    ['is longer than was published', file, (path: string) => appendFileSync(path, 'x')],
    [
      'has a record that cannot be read',
      (dataDir: string) => join(dataDir, 'snapshots', 'records', `${SECOND}.json`),
      // Any error of reading will do: descriptors cannot run out in a test alone.
      (path: string) => {
        rmSync(path)
        mkdirSync(path)
      },
    ],
  ])(
    'the newest snapshot that opens is served, as degraded, if the newest %s, until it is repaired',
    async (_how, pathIn, damage) => {
      const dataDir = copyFolder(published)
      const path = pathIn(dataDir)
      const whole = readFileSync(path)
      damage(path)
      await using api = await startApi(dataDir)
      const { headers } = await api.getAsNewAccount(RANKINGS)
      expect(headers.get('Last-Modified')).toBe('Wed, 07 Jan 2026 02:00:00 GMT')
      const message = `cannot be opened, and ${FIRST} is served instead`
      const reasons = [`snapshots/${SECOND} ${message}`]
      expect(await health(api)).toEqual([200, { status: 'degraded', reasons }, '1'])
      expect((await statusOf(api)).faults).toContainEqual({ thing: `snapshots/${SECOND}`, message })
      expect(faultsIn(api)).toMatchObject([{ level: 'error', snapshot: SECOND }])

      if (path.endsWith('.json')) rmdirSync(path)
      writeFileSync(path, whole)
      await served(api, '2026-01-08T02:00:00Z')
      expect((await statusOf(api)).faults).toEqual([])
      expect(await health(api)).toEqual([200, { status: 'ready' }, '0'])
    },
  )

  it('without a pointer the newest is served', async () => {
    const dataDir = copyFolder(published)
    rmSync(join(dataDir, 'current'))
    await using api = await startApi(dataDir)
    expect(await statusOf(api)).toMatchObject({ as_of: '2026-01-08T02:00:00Z', faults: [] })
  })

  const id = '20260115T020000Z'
  it.each([
    ['a snapshot that is gone', () => undefined],
    [
      'a copy under another name',
      (snapshots: string) => cpSync(join(snapshots, SECOND), join(snapshots, id), { recursive: true }),
    ],
  ])('the newest is served, as degraded, if the pointer leads to %s', async (_where, prepare) => {
    const dataDir = copyFolder(published)
    prepare(join(dataDir, 'snapshots'))
    pointAt(dataDir, id)
    await using api = await startApi(dataDir)
    const message = `cannot be opened, and ${SECOND} is served instead`
    expect((await statusOf(api)).faults).toEqual([{ thing: `snapshots/${id}`, message }])
    expect((await health(api))[2]).toBe('1')
  })

  it('of which none opens, the reply is 503 and says so, /readyz too', async () => {
    const dataDir = makeFolder()
    writeFileSync(join(await publishSnapshot(dataDir, oneApp()), 'app-rankings.duckdb'), 'no database')
    await using api = await startApi(dataDir)
    const reply = await api.getAsNewAccount(RANKINGS)
    expect([reply.status, await reply.text()]).toEqual([503, expect.stringContaining(REMEDY)])
    expect((await health(api))[0]).toBe(503)
  })
})

describe('in a running service', () => {
  it('a newest snapshot that cannot be opened leaves the one before, and is logged once', async () => {
    const dataDir = makeFolder()
    await publishSnapshot(dataDir, oneApp(2, 10))
    await using api = await startApi(dataDir)
    const broken = join(dataDir, 'snapshots', '20261120T040000Z')
    mkdirSync(broken)
    writeFileSync(join(broken, 'app-rankings.duckdb'), 'not a database')
    pointAt(dataDir, '20261120T040000Z')
    await until(() => faultsIn(api).length > 0)
    expect((await statusOf(api)).as_of).toBe('2026-11-20T02:00:00Z')

    await publishSnapshot(dataDir, oneApp(5, 30))
    await served(api, '2026-11-20T05:00:00Z')
    expect(faultsIn(api)).toHaveLength(1)
  })

  it('all open snapshots share one limit of memory, and spill nothing to disk', async () => {
    const dataDir = makeFolder()
    for (const hour of [2, 3]) await publishSnapshot(dataDir, oneApp(hour, 10))
    const snapshots = new Snapshots(dataDir, '1GB', memoryLog().log)
    await snapshots.follow()
    const settings = `SELECT current_setting('memory_limit') AS memory, current_setting('temp_directory') AS folder,
      count(*) AS files FROM duckdb_databases() WHERE NOT internal AND path IS NOT NULL`
    using held = new DisposableStack()
    held.use(await snapshots.take('20261120T020000Z', 'clients'))
    using snapshot = await snapshots.take(undefined, 'clients')
    expect(await snapshot.query(settings, {})).toEqual([{ memory: '953.6 MiB', folder: '', files: 2n }])
    await snapshots.close()
  })
})

it('of the snapshots that requests named, the last four stay attached, unless they are removed', async () => {
  const dataDir = makeFolder()
  const idOf = (hour: number) => `20261120T0${hour}0000Z`
  for (const hour of [0, 1, 2, 3, 4, 6]) await publishSnapshot(dataDir, oneApp(hour, 10))
  const snapshots = new Snapshots(dataDir, '1GB', memoryLog().log)
  await snapshots.follow()
  for (const hour of [0, 1, 2, 3, 0, 4]) (await snapshots.take(idOf(hour), 'clients'))[Symbol.dispose]()
  const attached = async () => {
    using current = await snapshots.take(undefined, 'clients')
    const names = `SELECT database_name AS id FROM duckdb_databases() WHERE database_name LIKE '2026%' ORDER BY id`
    return (await current.query(names, {})).map(({ id }) => id)
  }
  await expect.poll(attached).toEqual([0, 2, 3, 4, 6].map(idOf))
  rmSync(join(dataDir, 'snapshots', idOf(3)), { recursive: true })
  await expect.poll(attached).toEqual([0, 2, 4, 6].map(idOf))
  await snapshots.close()
})

describe('a damaged published file', () => {
  it.each<readonly [string, (path: string) => void]>([
    ['cut', (path) => truncateSync(path, 10)],
    ['longer', (path) => appendFileSync(path, 'x')],
    ['gone', (path) => rmSync(path)],
  ])('%s: 500 with a message in the log, and never its bytes', async (_how, damage) => {
    const dataDir = copyFolder(published)
    await using api = await startApi(dataDir)
    for (const name of ['README.md', 'app_daily/month=2026-01.parquet']) {
      damage(join(dataDir, 'snapshots', SECOND, name))
      for (const headers of [{}, { Range: 'bytes=0-3' }]) {
        const reply = await api.get(`${SNAPSHOTS}/${SECOND}/${name}`, undefined, { headers })
        expect(reply.status).toBe(500)
        expect([reply.headers.get('ETag'), reply.headers.get('Cache-Control')]).toEqual([null, 'no-store'])
        expect(await reply.text()).not.toContain('snapshots/')
      }
    }
    expect(JSON.stringify(api.messages())).toContain(`npm run nightly -- verify ${SECOND}`)
    // Everything else works.
    expect((await api.get(`${SNAPSHOTS}/${SECOND}/rankings.csv`)).status).toBe(200)
    expect(await health(api)).toEqual([200, { status: 'ready' }, '0'])
  })
})

it.each([
  [`snapshots/records/${FIRST}.json`, [SECOND]],
  ['last-run.json', [SECOND, FIRST]],
])('an unreadable %s is one entry less, and is listed as a fault', async (path, listed) => {
  const dataDir = copyFolder(published)
  writeFileSync(join(dataDir, path), '{"half": ')
  await using api = await startApi(dataDir)
  const list = z.object({ data: z.array(z.object({ id: z.string() })) })
  for (const search of ['', '?state=all']) {
    const reply = await api.get(`${SNAPSHOTS}${search}`)
    expect(list.parse(await reply.json()).data.map(({ id }) => id)).toEqual(listed)
  }
  for (const page of ['/', '/feed.xml']) expect((await fetch(`${api.origin}${page}`)).status).toBe(200)
  // The links of an earlier reply lead on, and an existing snapshot is not called unknown.
  for (const id of [SECOND, FIRST]) {
    const statuses = listed.includes(id) ? [200, 200] : [500, 500]
    const found = await Promise.all([
      api.getAsNewAccount(`${RANKINGS}?as_of=${id}`),
      api.get(`${SNAPSHOTS}/${id}`),
    ])
    expect(found.map(({ status }) => status)).toEqual(statuses)
  }
  const message = 'cannot be read and is left out'
  expect((await statusOf(api)).faults).toContainEqual({ thing: path, message })
})

it('an unreadable record is read again after a second, and not with each request', () => {
  const dataDir = copyFolder(published)
  const path = join(dataDir, 'snapshots', 'records', `${FIRST}.json`)
  const whole = readFileSync(path)
  writeFileSync(path, '{')
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_000 })
  const catalogue = new Catalogue(join(dataDir, 'snapshots'), memoryLog().log)
  const contents = catalogue.read()
  expect(contents.faults).toHaveLength(1)
  expect(catalogue.read()).toBe(contents)
  writeFileSync(path, whole)
  vi.advanceTimersByTime(1000)
  expect(catalogue.read().faults).toEqual([])
})

describe('queries of a snapshot', () => {
  /** Never ends. */
  const SLOW = 'SELECT count(*) FROM range(100000000000) AS a (n), range(1000) AS b (m) WHERE n * m % 7 = 8'

  it('are 503 if 200 others wait, and all end with the service', async () => {
    const snapshot = await openSnapshot(await publishSnapshot(makeFolder(), oneApp()))
    const queries = Array.from({ length: 4 + 200 }, () => snapshot.query(SLOW, {}).catch(String))
    await expect(snapshot.query('SELECT 1 AS one', {})).rejects.toMatchObject({ status: 503 })
    await snapshot.close()
    expect(new Set(await Promise.all(queries))).toEqual(new Set(['Error: The service is stopping']))
  })

  it('are 503 after 20 seconds, their wait included', async () => {
    // Their interruption is repeated by a timer too.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true })
    const snapshot = await openSnapshot(await publishSnapshot(makeFolder(), oneApp()))
    let ended = 0
    // The last one waits, and may still begin while the others end.
    const asked = Array.from({ length: 5 }, () =>
      snapshot
        .query(SLOW, {})
        .catch((error: unknown) => error)
        .finally(() => (ended += 1)),
    )
    await vi.advanceTimersByTimeAsync(15_000)
    expect(ended).toBe(0)
    await vi.advanceTimersByTimeAsync(5000)
    for (const failure of await Promise.all(asked)) expect(failure).toMatchObject({ status: 503 })
    await snapshot.close()
  })
})
