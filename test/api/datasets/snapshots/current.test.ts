import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  CURRENT_POINTER,
  RECORDS_FOLDER,
  SNAPSHOT_FILE,
  SNAPSHOTS_FOLDER,
} from '../../../../pipeline/contract/files.ts'
import { recordRetraction } from '../../../../pipeline/snapshot/list.ts'
import { followSnapshots, type CurrentSnapshot } from '../../../../api/datasets/snapshots/current.ts'
import { retainSnapshots } from '../../../../api/datasets/snapshots/retained.ts'
import { memoryLog, rankingsSchema, startApi, until } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/nightly.ts'
import { REPOSITORY } from '../../../support/processes.ts'
import { pointAt, publishSnapshot, type SnapshotContent } from '../../../support/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

function content(hour: number, tokens: number): SnapshotContent {
  return {
    asOf: new Date(Date.UTC(2026, 10, 20, hour)),
    dataThrough: '2026-11-19',
    apps: [{ id: 1, name: 'App' }],
    daily: [{ day: '2026-11-19', app: 1, tokens }],
  }
}

const idOf = (hour: number) => `20261120T0${hour}0000Z`
const fileOf = (dataDir: string, hour: number) => join(dataDir, SNAPSHOTS_FOLDER, idOf(hour), SNAPSHOT_FILE)

/** Leaves the record of what was published. */
function describePublished(dataDir: string, hour: number): void {
  const folder = join(dataDir, SNAPSHOTS_FOLDER, RECORDS_FOLDER)
  mkdirSync(folder, { recursive: true })
  const file = { name: SNAPSHOT_FILE, bytes: statSync(fileOf(dataDir, hour)).size, sha256: '0'.repeat(64) }
  const record = {
    id: idOf(hour),
    as_of: `2026-11-20T0${hour}:00:00Z`,
    first_day: '2026-11-19',
    data_through: '2026-11-19',
    version: 'v1',
    days_restated: 0,
    publisher: 'Test',
    attribution: 'Source: Test',
    rows: {},
    files: [file],
  }
  writeFileSync(join(folder, `${idOf(hour)}.json`), JSON.stringify(record))
}

/** Leaves word of a verification that found the DuckDB file changed. */
function leaveBroken(dataDir: string, hour: number): void {
  const broken = [{ snapshot: idOf(hour), file: SNAPSHOT_FILE, fault: 'has other bytes than were published' }]
  writeFileSync(join(dataDir, 'verification.json'), JSON.stringify({ verified_at: null, broken }))
}

function breakPublished(dataDir: string, hour: number): void {
  describePublished(dataDir, hour)
  leaveBroken(dataDir, hour)
}

/** Whether another process can open the file for writing, which DuckDB refuses while anyone reads it. */
function isFree(folder: string): boolean {
  const program = `
    const { DuckDBInstance } = await import('@duckdb/node-api')
    await DuckDBInstance.create(process.argv[1], { access_mode: 'READ_WRITE' })`
  const args = ['--input-type=module', '-e', program, join(folder, SNAPSHOT_FILE)]
  return spawnSync(process.execPath, args, { cwd: REPOSITORY }).status === 0
}

/** Changes the file as an analyst may who opens it as DuckDB does by itself, and leaves without closing it. */
function leaveWritten(folder: string): void {
  const program = `
    const { DuckDBInstance } = await import('@duckdb/node-api')
    const connection = await (await DuckDBInstance.create(process.argv[1])).connect()
    await connection.run("UPDATE apps SET app_name = 'Changed'")
    process.kill(process.pid, 'SIGKILL')`
  const args = ['--input-type=module', '-e', program, join(folder, SNAPSHOT_FILE)]
  spawnSync(process.execPath, args, { cwd: REPOSITORY })
  expect(existsSync(join(folder, `${SNAPSHOT_FILE}.wal`))).toBe(true)
}

type FollowOptions = Parameters<typeof followSnapshots>[1]

const follow = (dataDir: string, options: FollowOptions) =>
  followSnapshots(retainSnapshots(dataDir, options.log), options)

const isFaulty = (snapshots: CurrentSnapshot) => snapshots.fault() !== undefined

describe('followSnapshots', () => {
  it('has no snapshot before the first is published', async () => {
    const { log } = memoryLog()
    const snapshots = await follow(folders.make(), { log, intervalMs: 5 })
    expect(snapshots.facts()).toBeUndefined()
    expect(await snapshots.use(async (snapshot) => snapshot)).toBeUndefined()
    await snapshots.close()
  })

  it('keeps the old snapshot open until its last use is done, then closes it', async () => {
    const dataDir = folders.make()
    const { log } = memoryLog()
    const old = await publishSnapshot(dataDir, content(2, 10))
    const snapshots = await follow(dataDir, { log, intervalMs: 5 })
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const reading = snapshots.use(async (snapshot) => {
      await released
      return await snapshot?.query('SELECT count(*) AS n FROM apps', {})
    })

    await publishSnapshot(dataDir, content(3, 20))
    await until(() => snapshots.facts()?.id === '20261120T030000Z')
    expect(isFree(old)).toBe(false)
    release()
    expect(await reading).toEqual([{ n: 1n }])
    await until(() => isFree(old))
    await snapshots.close()
  })

  it('does not open a snapshot that was written to, until what was written is taken away', async () => {
    const dataDir = folders.make()
    const { log, messages } = memoryLog()
    const folder = await publishSnapshot(dataDir, content(2, 10))
    const written = join(folder, `${SNAPSHOT_FILE}.wal`)
    leaveWritten(folder)
    const snapshots = await follow(dataDir, { log, intervalMs: 5 })
    expect([snapshots.facts(), isFaulty(snapshots)]).toEqual([undefined, true])
    expect(JSON.stringify(messages())).toContain(`Remove ${written}`)

    rmSync(written)
    await until(() => snapshots.facts() !== undefined)
    expect(
      await snapshots.use(async (snapshot) => await snapshot?.query('SELECT app_name FROM apps', {})),
    ).toEqual([{ app_name: 'App' }])
    expect(isFaulty(snapshots)).toBe(false)
    await snapshots.close()
  })

  it('forgets a snapshot that could not be opened when it is taken away', async () => {
    const dataDir = folders.make()
    const { log } = memoryLog()
    const folder = await publishSnapshot(dataDir, content(2, 10))
    leaveWritten(folder)
    const snapshots = await follow(dataDir, { log, intervalMs: 5 })
    expect(isFaulty(snapshots)).toBe(true)
    rmSync(join(dataDir, CURRENT_POINTER))
    rmSync(folder, { recursive: true })
    await until(() => !isFaulty(snapshots))
    await snapshots.close()
  })

  it.each([
    ['cannot be opened', (dataDir: string) => writeFileSync(fileOf(dataDir, 4), 'not a database')],
    ['is not what was published', (dataDir: string) => breakPublished(dataDir, 4)],
  ])(
    'serves the newest retained one that can be opened while the newest %s, until it is mended',
    async (_how, damage) => {
      const dataDir = folders.make()
      const { log, messages } = memoryLog()
      for (const hour of [2, 3, 4]) await publishSnapshot(dataDir, content(hour, hour))
      writeFileSync(fileOf(dataDir, 3), 'not a database')
      const whole = readFileSync(fileOf(dataDir, 4))
      damage(dataDir)
      const snapshots = await follow(dataDir, { log, intervalMs: 5 })
      expect(snapshots.facts()?.id).toBe('20261120T020000Z')
      expect(snapshots.fault()).toEqual({
        thing: 'snapshots/20261120T040000Z',
        message: 'cannot be opened, and 20261120T020000Z is served instead',
      })
      expect(messages().filter(({ msg }) => msg === 'snapshot cannot be opened')).toHaveLength(1)
      writeFileSync(fileOf(dataDir, 4), whole)
      rmSync(join(dataDir, 'verification.json'), { force: true })
      await until(() => snapshots.facts()?.id === '20261120T040000Z')
      expect(isFaulty(snapshots)).toBe(false)
      await snapshots.close()
    },
  )

  it('stops serving a snapshot that a verification finds broken', async () => {
    const dataDir = folders.make()
    for (const hour of [2, 3]) await publishSnapshot(dataDir, content(hour, hour))
    describePublished(dataDir, 3)
    const snapshots = await follow(dataDir, { log: memoryLog().log, intervalMs: 5 })
    expect(snapshots.facts()?.id).toBe('20261120T030000Z')
    leaveBroken(dataDir, 3)
    await until(() => snapshots.facts()?.id === '20261120T020000Z')
    await snapshots.close()
  })

  it('goes on serving without a pointer, but not what was retracted', async () => {
    const dataDir = folders.make()
    const { log } = memoryLog()
    const folder = await publishSnapshot(dataDir, content(2, 10))
    const snapshots = await follow(dataDir, { log, intervalMs: 5 })
    mkdirSync(join(dataDir, SNAPSHOTS_FOLDER, '20261120T040000Z'))
    pointAt(dataDir, '20261120T040000Z')
    await until(() => isFaulty(snapshots))
    rmSync(join(dataDir, CURRENT_POINTER))
    await until(() => snapshots.fault()?.thing === CURRENT_POINTER)
    expect(snapshots.facts()?.id).toBe('20261120T020000Z')

    const times = { as_of: '2026-11-20T02:00:00Z', retracted_at: '2026-11-20T03:00:00Z' }
    recordRetraction(dataDir, { id: '20261120T020000Z', reason: 'wrong', ...times })
    await until(() => snapshots.facts() === undefined)
    expect(await snapshots.use(async (snapshot) => snapshot)).toBeUndefined()
    await until(() => isFree(folder))
    await snapshots.close()
  })

  it('keeps the memory of a snapshot bounded, and spills nothing into its folder', async () => {
    const dataDir = folders.make()
    const { log } = memoryLog()
    await publishSnapshot(dataDir, content(2, 10))
    const snapshots = await follow(dataDir, { log, intervalMs: 5 })
    const settings = `SELECT current_setting('memory_limit') AS memory, current_setting('temp_directory') AS folder`
    expect(await snapshots.use(async (snapshot) => await snapshot?.query(settings, {}))).toEqual([
      { memory: '1.8 GiB', folder: '' },
    ])
    await snapshots.close()
  })

  it('goes on serving the old snapshot when the new one cannot be opened, and says so once', async () => {
    const dataDir = folders.make()
    const { log, messages } = memoryLog()
    await publishSnapshot(dataDir, content(2, 10))
    const snapshots = await follow(dataDir, { log, intervalMs: 5 })

    const broken = join(dataDir, SNAPSHOTS_FOLDER, '20261120T040000Z')
    mkdirSync(broken)
    writeFileSync(join(broken, SNAPSHOT_FILE), 'not a database')
    pointAt(dataDir, '20261120T040000Z')
    const faults = () => messages().filter((line) => line['msg'] === 'snapshot cannot be opened')
    await until(() => faults().length > 0)
    expect(snapshots.facts()?.id).toBe('20261120T020000Z')

    await publishSnapshot(dataDir, content(5, 30))
    await until(() => snapshots.facts()?.id === '20261120T050000Z')
    expect(faults()).toHaveLength(1)
    await snapshots.close()
  })

  it('closes a snapshot that cannot be prepared', async () => {
    const dataDir = folders.make()
    const { log } = memoryLog()
    const folder = await publishSnapshot(dataDir, content(2, 10))
    const prepare = () => Promise.reject(new Error('no room'))
    const snapshots = await follow(dataDir, { log, prepare })
    expect(snapshots.facts()).toBeUndefined()
    await snapshots.close()
    expect(isFree(folder)).toBe(true)
  })

  it('closes at the end also a snapshot that was just being opened', async () => {
    const dataDir = folders.make()
    const { promise: prepared, resolve: finish } = Promise.withResolvers<void>()
    const { promise: preparing, resolve: begin } = Promise.withResolvers<void>()
    const prepare = () => {
      begin()
      return prepared
    }
    const snapshots = await follow(dataDir, { log: memoryLog().log, prepare, intervalMs: 5 })
    const folder = await publishSnapshot(dataDir, content(2, 10))
    await preparing
    const closed = snapshots.close()
    finish()
    await closed
    expect(isFree(folder)).toBe(true)
  })

  it('closes the snapshot at the end', async () => {
    const dataDir = folders.make()
    const { log } = memoryLog()
    const folder = await publishSnapshot(dataDir, content(2, 10))
    const snapshots = await follow(dataDir, { log })
    await snapshots.close()
    expect(isFree(folder)).toBe(true)
  })
})

it('a request that is sent again after a swap gets the new answer, and no 304', async () => {
  const dataDir = folders.make()
  await publishSnapshot(dataDir, content(2, 10))
  await using api = await startApi(dataDir)
  const key = await api.makeKey()
  const old = await api.get('/datasets/app-rankings', key)
  const next: SnapshotContent = {
    ...content(26, 20),
    dataThrough: '2026-11-20',
    daily: [{ day: '2026-11-20', app: 1, tokens: 20 }],
  }
  await publishSnapshot(dataDir, next)
  await until(async () => {
    const status = await fetch(`${api.origin}/api/v1/status`)
    return (await status.text()).includes('2026-11-21T02:00:00Z')
  })
  const headers = { 'If-None-Match': old.headers.get('ETag') ?? '' }
  const again = await api.get('/datasets/app-rankings', key, { headers })
  expect(again.status).toBe(200)
  expect(again.headers.get('Content-Location')).toContain('as_of=2026-11-21')
  const { data, meta } = rankingsSchema.parse(await again.json())
  expect(meta.end_date).toBe('2026-11-20')
  expect(data).toMatchObject([{ total_tokens: '20' }])
})

describe('a swap of snapshots under continuous requests', () => {
  it('fails no request, mixes no two snapshots and closes the old ones', async () => {
    const dataDir = folders.make()
    const published = [await publishSnapshot(dataDir, content(0, 1000))]
    await using api = await startApi(dataDir)
    const tokensAsOf = new Map<string, string>()
    const statuses = new Set<number>()
    let newest = ''
    const stopping = new AbortController()

    async function keepAsking(): Promise<void> {
      // A key serves 30 requests of a minute, an account 500 of a day.
      while (!stopping.signal.aborted) {
        const key = await api.makeKey('inference', crypto.randomUUID())
        for (let count = 0; count < 30 && !stopping.signal.aborted; count += 1) {
          const response = await api.get('/datasets/app-rankings', key)
          statuses.add(response.status)
          const body = rankingsSchema.parse(await response.json())
          const tokens = body.data[0]?.total_tokens ?? 'none'
          expect(tokensAsOf.get(body.meta.as_of) ?? tokens).toBe(tokens)
          tokensAsOf.set(body.meta.as_of, tokens)
          newest = body.meta.as_of
        }
      }
    }

    const asking = Promise.all(Array.from({ length: 4 }, keepAsking))
    for (const hour of [1, 2, 3]) {
      published.push(await publishSnapshot(dataDir, content(hour, 1000 + hour)))
      await until(() => newest === `2026-11-20T0${hour}:00:00Z`)
    }
    stopping.abort()
    await asking

    expect(statuses).toEqual(new Set([200]))
    expect([...tokensAsOf.values()].toSorted()).toEqual(['1000', '1001', '1002', '1003'])
    expect(published.map(isFree)).toEqual([true, true, true, false])
  })
})
