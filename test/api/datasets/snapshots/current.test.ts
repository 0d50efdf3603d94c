/** CONTRACT 4.6 and 8: the served snapshot follows the pointer. */
import { appendFileSync, mkdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { RECORDS_FOLDER, SNAPSHOT_FILE, SNAPSHOTS_FOLDER } from '../../../../pipeline/contract/files.ts'
import { memoryLog, rankingsSchema, startApi, until } from '../../../support/api.ts'
import { followSnapshots } from '../../../support/snapshots.ts'
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

describe('followSnapshots', () => {
  it('has no snapshot before the first is published', async () => {
    const { log } = memoryLog()
    const snapshots = await followSnapshots(folders.make(), { log })
    expect(snapshots.current()).toBeUndefined()
    await expect(snapshots.take(undefined, 'clients')).rejects.toMatchObject({ status: 503 })
    await snapshots.close()
  })

  it.each([
    ['cannot be opened', (dataDir: string) => writeFileSync(fileOf(dataDir, 4), 'not a database')],
    ['has another size than was published', (dataDir: string) => appendFileSync(fileOf(dataDir, 4), 'x')],
  ])(
    'at a start the newest that opens is served if the newest %s, until it is repaired',
    async (_how, damage) => {
      const dataDir = folders.make()
      const { log, messages } = memoryLog()
      for (const hour of [2, 3, 4]) await publishSnapshot(dataDir, oneApp(hour, hour))
      describePublished(dataDir, 4)
      writeFileSync(fileOf(dataDir, 3), 'not a database')
      const whole = readFileSync(fileOf(dataDir, 4))
      damage(dataDir)
      const snapshots = await followSnapshots(dataDir, { log })
      expect(snapshots.current()?.id).toBe('20261120T020000Z')
      expect(snapshots.fault()).toEqual({
        thing: 'snapshots/20261120T040000Z',
        message: 'cannot be opened, and 20261120T020000Z is served instead',
      })
      expect(messages().filter(({ msg }) => msg === 'snapshot cannot be opened')).toHaveLength(2)
      writeFileSync(fileOf(dataDir, 4), whole)
      await until(() => snapshots.current()?.id === '20261120T040000Z')
      expect(snapshots.fault()).toBeUndefined()
      await snapshots.close()
    },
  )

  it('is not opened while its record cannot be read', async () => {
    const dataDir = folders.make()
    await publishSnapshot(dataDir, oneApp(2, 2))
    describePublished(dataDir, 2)
    const record = join(dataDir, SNAPSHOTS_FOLDER, RECORDS_FOLDER, `${idOf(2)}.json`)
    const whole = readFileSync(record)
    // Any error of reading will do: descriptors cannot run out in a test alone.
    rmSync(record)
    mkdirSync(record)
    const snapshots = await followSnapshots(dataDir, { log: memoryLog().log })
    expect(snapshots.current()).toBeUndefined()
    rmdirSync(record)
    writeFileSync(record, whole)
    await until(() => snapshots.current()?.id === idOf(2))
    await snapshots.close()
  })

  it('limits the memory of all snapshots together, and spills nothing to disk', async () => {
    const dataDir = folders.make()
    for (const hour of [2, 3]) await publishSnapshot(dataDir, oneApp(hour, 10))
    const snapshots = await followSnapshots(dataDir, { log: memoryLog().log })
    const held = new DisposableStack()
    const settings = `SELECT current_setting('memory_limit') AS memory, current_setting('temp_directory') AS folder,
      count(*) AS files FROM duckdb_databases() WHERE NOT internal AND path IS NOT NULL`
    for (const hour of [2, 3]) held.use(await snapshots.take(idOf(hour), 'clients'))
    using snapshot = await snapshots.take(undefined, 'clients')
    expect(await snapshot.query(settings, {})).toEqual([{ memory: '953.6 MiB', folder: '', files: 2n }])
    held.dispose()
    await snapshots.close()
  })

  it('goes on serving the old snapshot if the new one cannot be opened, and logs that once', async () => {
    const dataDir = folders.make()
    const { log, messages } = memoryLog()
    await publishSnapshot(dataDir, oneApp(2, 10))
    const snapshots = await followSnapshots(dataDir, { log })

    const broken = join(dataDir, SNAPSHOTS_FOLDER, '20261120T040000Z')
    mkdirSync(broken)
    writeFileSync(join(broken, SNAPSHOT_FILE), 'not a database')
    pointAt(dataDir, '20261120T040000Z')
    const faults = () => messages().filter((line) => line['msg'] === 'snapshot cannot be opened')
    await until(() => faults().length > 0)
    expect(snapshots.current()?.id).toBe('20261120T020000Z')

    await publishSnapshot(dataDir, oneApp(5, 30))
    await until(() => snapshots.current()?.id === '20261120T050000Z')
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
  const { data, meta } = rankingsSchema.parse(await again.json())
  expect(meta.end_date).toBe('2026-11-20')
  expect(data).toMatchObject([{ total_tokens: '20' }])
})
