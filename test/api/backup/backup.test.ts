import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { backupCommand } from '../../../api/commands/backup.ts'
import { restoreCommand } from '../../../api/commands/restore.ts'
import { rankingsSchema, startApi } from '../../support/api.ts'
import { TemporaryFolders, publish, writeRaw } from '../../support/pipeline/nightly.ts'
import { runCommandLine } from '../../support/processes.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const APPS = `app_id,app_name,visibility,subcategories,alias_of,updated_at
1,One,public,cli-agent,,2026-01-01T00:00:00Z
`
const usage = (day: string) =>
  `ts,app_id,prompt_tokens,completion_tokens\n${day}T10:00:00Z,1,${day.replaceAll('-', '')},5\n`

const dataDir = folders.make()
const whole = join(folders.make(), 'whole')

beforeAll(async () => {
  writeRaw(dataDir, 'apps/apps.csv', APPS)
  for (const day of ['2026-02-10', '2026-03-10']) {
    writeRaw(dataDir, `usage/date=${day}/a.csv`, usage(day))
    await publish(dataDir, `${day.slice(0, 8)}11T02:00:00Z`)
  }
  // Unfinished files are not in a backup.
  writeRaw(dataDir, 'usage/date=2026-03-11/.a.csv', 'half')
  mkdirSync(join(dataDir, 'snapshots', '.building-x'))
})

const backup = (to: string, from = dataDir) => runCommandLine(backupCommand, [to], { DATA_DIR: from })
const restore = (from: string, to: string, environment = {}) =>
  runCommandLine(restoreCommand, [from], { DATA_DIR: to, ...environment })

describe('a backup of a running service', () => {
  it('has snapshots, raw usage and every key, and is served at once after a restore', async () => {
    await using running = await startApi(dataDir)
    const key = await running.makeKey()
    const query = '/datasets/app-rankings?start_date=2026-02-01'
    const before = await running.get(query, key)
    const made = await backup(whole)
    expect(made).toMatchObject({ code: 0, stderr: `The backup in ${whole} is complete\n` })
    expect(made.stdout).toContain('current\t20260311T020000Z\n')

    const restored = join(folders.make(), 'new', 'data')
    expect(await restore(whole, restored)).toMatchObject({ code: 0, stdout: made.stdout })
    expect(readlinkSync(join(restored, 'current'))).toBe(join('snapshots', '20260311T020000Z'))
    expect(globSync('**/.*', { cwd: restored })).toEqual([])
    await using api = await startApi(restored)
    const after = await api.get(query, key)
    expect(after.headers.get('ETag')).toBe(before.headers.get('ETag'))
    const text = await after.text()
    expect(rankingsSchema.parse(JSON.parse(text)).data).toHaveLength(1)
    expect(text).toBe(await before.text())
    const earlier = await api.get(`${query}&as_of=20260211T020000Z`, key)
    expect(earlier.status).toBe(200)
  })

  it('leaves out a stray file beside the snapshots', async () => {
    const from = folders.make()
    cpSync(dataDir, from, { recursive: true, verbatimSymlinks: true })
    writeFileSync(join(from, 'snapshots', 'notes.txt'), 'mine')
    const to = join(folders.make(), 'new')
    expect(await backup(to, from)).toMatchObject({ code: 0 })
    expect(readdirSync(join(to, 'snapshots'))).toEqual(readdirSync(join(whole, 'snapshots')))
  })

  it('links snapshots on the same file system, and months that snapshots share', async () => {
    const months = globSync('snapshots/*/app_daily/month=2026-02.parquet', { cwd: whole })
    expect(months).toHaveLength(2)
    const inodes = [...months.map((name) => join(whole, name)), ...months.map((name) => join(dataDir, name))]
    expect(new Set(inodes.map((path) => statSync(path).ino)).size).toBe(1)
  })

  it('is rejected for a folder that is not empty, or is inside the data', async () => {
    expect(await backup(whole)).toMatchObject({ code: 2, stdout: '' })
    for (const inside of ['raw', join('raw', 'backup'), join('snapshots', 'backup')]) {
      const result = await backup(join(dataDir, inside))
      expect(result.code).toBe(2)
      expect(result.stderr).toContain('is inside the data to back up')
    }
    expect((await backup(join(folders.make(), 'to'), folders.make())).stderr).toContain('nothing to back up')
  })

  it('beside PostgreSQL leaves the store out and shows how to dump it', async () => {
    const to = join(folders.make(), 'to')
    const environment = { DATA_DIR: dataDir, DATABASE_URL: 'postgres://127.0.0.1:1/rankings' }
    const made = await runCommandLine(backupCommand, [to], environment)
    expect(made.code).toBe(0)
    expect(made.stderr).toContain('pg_dump')
    expect(existsSync(join(to, 'service.sqlite'))).toBe(false)
    expect((await restore(to, join(folders.make(), 'new'))).stderr).toContain('pg_restore')
  })
})

describe('restore refuses', () => {
  const damaged = (damage: (folder: string) => void) => {
    const folder = join(folders.make(), 'copy')
    cpSync(whole, folder, { recursive: true })
    damage(folder)
    return folder
  }
  const csv = join('raw', 'usage', 'date=2026-02-10', 'a.csv')

  it.each<[string, (folder: string) => void, RegExp]>([
    ['a file is missing', (at) => rmSync(join(at, csv)), /date=2026-02-10\/a\.csv: it is missing/],
    [
      'a file is longer',
      (at) => appendFileSync(join(at, csv), 'x'),
      /a\.csv: it has \d+ bytes instead of \d+/,
    ],
    [
      'a file has other bytes',
      (at) => writeFileSync(join(at, csv), readFileSync(join(at, csv), 'utf8').replace(',5', ',6')),
      /a\.csv: its content has changed/,
    ],
    [
      'the store is cut',
      (at) => truncateSync(join(at, 'service.sqlite'), 4096),
      /service\.sqlite: it has 4096/,
    ],
    [
      'the manifest is missing',
      (at) => rmSync(join(at, 'manifest.json')),
      /manifest\.json: it is missing, so/,
    ],
    [
      'the manifest is cut',
      (at) => truncateSync(join(at, 'manifest.json'), 300),
      /manifest\.json: it is damaged/,
    ],
    [
      'the manifest leads out of the folder',
      (at) => {
        const path = join(at, 'manifest.json')
        writeFileSync(path, readFileSync(path, 'utf8').replace('"raw/', '"../raw/'))
      },
      /manifest\.json: it is damaged/,
    ],
  ])('a backup if %s, and writes nothing', async (_name, damage, message) => {
    const target = join(folders.make(), 'new')
    const result = await restore(damaged(damage), target)
    expect(result).toMatchObject({ code: 2, stdout: '' })
    expect(result.stderr).toMatch(message)
    expect(existsSync(target)).toBe(false)
  })

  it('a DATA_DIR that is not empty, and leaves it unchanged', async () => {
    const target = folders.make()
    writeFileSync(join(target, 'service.sqlite'), '')
    const result = await restore(whole, target)
    expect(result.code).toBe(2)
    expect(result.stderr).toContain('is not empty (service.sqlite)')
    expect(readdirSync(target)).toEqual(['service.sqlite'])
  })
})

it('an interrupted restore can be repeated', async () => {
  const target = folders.make()
  mkdirSync(join(target, '.restoring', 'raw'), { recursive: true })
  expect(await restore(whole, target)).toMatchObject({ code: 0 })
  expect(readdirSync(target).toSorted()).toEqual(['current', 'raw', 'service.sqlite', 'snapshots'])
})
