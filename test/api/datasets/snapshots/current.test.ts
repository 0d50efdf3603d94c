import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { RECORDS_FOLDER, SNAPSHOT_FILE, SNAPSHOTS_FOLDER } from '../../../../pipeline/contract/files.ts'
import { followSnapshots, type CurrentSnapshot } from '../../../../api/datasets/snapshots/current.ts'
import { retainSnapshots } from '../../../../api/datasets/snapshots/retained.ts'
import { memoryLog, rankingsSchema, startApi, until } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { oneApp, pointAt, publishSnapshot, type SnapshotContent } from '../../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const idOf = (hour: number) => `20261120T0${hour}0000Z`
const fileOf = (dataDir: string, hour: number) => join(dataDir, SNAPSHOTS_FOLDER, idOf(hour), SNAPSHOT_FILE)

/** Writes the record of what was published. */
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

/** Writes a verification that found the DuckDB file changed. */
function leaveBroken(dataDir: string, hour: number): void {
  const broken = [{ snapshot: idOf(hour), file: SNAPSHOT_FILE, fault: 'has other bytes than were published' }]
  writeFileSync(join(dataDir, 'verification.json'), JSON.stringify({ verified_at: null, broken }))
}

function breakPublished(dataDir: string, hour: number): void {
  describePublished(dataDir, hour)
  leaveBroken(dataDir, hour)
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

  it.each([
    ['cannot be opened', (dataDir: string) => writeFileSync(fileOf(dataDir, 4), 'not a database')],
    ['is not what was published', (dataDir: string) => breakPublished(dataDir, 4)],
  ])(
    'serves the newest usable retained one while the newest %s, until it is repaired',
    async (_how, damage) => {
      const dataDir = folders.make()
      const { log, messages } = memoryLog()
      for (const hour of [2, 3, 4]) await publishSnapshot(dataDir, oneApp(hour, hour))
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

  it('stops serving a snapshot that a verification finds damaged', async () => {
    const dataDir = folders.make()
    for (const hour of [2, 3]) await publishSnapshot(dataDir, oneApp(hour, hour))
    describePublished(dataDir, 3)
    const snapshots = await follow(dataDir, { log: memoryLog().log, intervalMs: 5 })
    expect(snapshots.facts()?.id).toBe('20261120T030000Z')
    leaveBroken(dataDir, 3)
    await until(() => snapshots.facts()?.id === '20261120T020000Z')
    await snapshots.close()
  })

  it('limits the memory of a snapshot, and spills nothing into its folder', async () => {
    const dataDir = folders.make()
    const { log } = memoryLog()
    await publishSnapshot(dataDir, oneApp(2, 10))
    const snapshots = await follow(dataDir, { log, intervalMs: 5 })
    const settings = `SELECT current_setting('memory_limit') AS memory, current_setting('temp_directory') AS folder`
    expect(await snapshots.use(async (snapshot) => await snapshot?.query(settings, {}))).toEqual([
      { memory: '1.8 GiB', folder: '' },
    ])
    await snapshots.close()
  })

  it('goes on serving the old snapshot if the new one cannot be opened, and logs that once', async () => {
    const dataDir = folders.make()
    const { log, messages } = memoryLog()
    await publishSnapshot(dataDir, oneApp(2, 10))
    const snapshots = await follow(dataDir, { log, intervalMs: 5 })

    const broken = join(dataDir, SNAPSHOTS_FOLDER, '20261120T040000Z')
    mkdirSync(broken)
    writeFileSync(join(broken, SNAPSHOT_FILE), 'not a database')
    pointAt(dataDir, '20261120T040000Z')
    const faults = () => messages().filter((line) => line['msg'] === 'snapshot cannot be opened')
    await until(() => faults().length > 0)
    expect(snapshots.facts()?.id).toBe('20261120T020000Z')

    await publishSnapshot(dataDir, oneApp(5, 30))
    await until(() => snapshots.facts()?.id === '20261120T050000Z')
    expect(faults()).toHaveLength(1)
    await snapshots.close()
  })
})

it('a request that is repeated after a swap gets the new reply, and no 304', async () => {
  const dataDir = folders.make()
  await publishSnapshot(dataDir, oneApp(2, 10))
  await using api = await startApi(dataDir)
  const key = await api.makeKey()
  const old = await api.get('/datasets/app-rankings', key)
  const next: SnapshotContent = {
    ...oneApp(26, 20),
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
