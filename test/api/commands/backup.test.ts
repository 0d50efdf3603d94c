/** CONTRACT 9: a backup copies everything while it runs, and restoring is copying back. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { beforeAll, describe, expect, it } from 'vitest'
import { backup } from '../../../api/commands/backup.ts'
import { rankingsSchema, startApi, startServer, type Api } from '../../support/api.ts'
import { copyFolder, filesBelow, makeFolder } from '../../support/folders.ts'
import { currentSnapshot, deliver, publish, register, writeRaw } from '../../support/pipeline/nightly.ts'
import { startProgram, runCommandLine, type Ended } from '../../support/processes.ts'

/** Usage of a day, whose tokens are its digits. */
const use = (folder: string, day: string) => deliver(folder, day, [`1,${day.replaceAll('-', '')},5`])

const dataDir = makeFolder()
/** A backup that was made while the service ran, with a key of its store. */
const whole = join(makeFolder(), 'whole')
let running: Api
let key: string
let made: Ended

beforeAll(async () => {
  register(dataDir, ['1,One,public,cli-agent,,2026-01-01'])
  for (const day of ['2026-02-10', '2026-03-10']) {
    use(dataDir, day)
    await publish(dataDir, `${day.slice(0, 8)}11T02:00:00Z`)
  }
  // Unfinished files are not in a backup.
  writeRaw(dataDir, 'usage/date=2026-03-11/.a.csv', 'half')
  fs.mkdirSync(join(dataDir, 'snapshots', '.building-x'))
  running = await startApi(dataDir)
  key = await running.makeKey()
  made = await run(whole)
})

const run = (to: string, from = dataDir, environment = {}) =>
  runCommandLine(backup, [to], { DATA_DIR: from, ...environment })

/** Copies the backup back, as an operator does. */
function copyBack(): string {
  const restored = join(makeFolder(), 'data')
  execFileSync('cp', ['-a', whole, restored])
  return restored
}

describe('a backup of a running service', () => {
  it('has snapshots, raw usage and every key, is checked by sha256sum, and serves once it is copied back', async () => {
    expect([made.code, made.stdout]).toEqual([0, ''])
    expect(made.stderr).toMatch(/^The backup in .*whole is complete: \d+ files\n$/)
    execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: whole })

    const restored = copyBack()
    expect(fs.globSync('**/.*', { cwd: restored })).toEqual([])
    await using api = await startApi(restored)
    const query = '/datasets/app-rankings?start_date=2026-02-01'
    const [before, after] = [await running.get(query, key), await api.get(query, key)]
    expect(after.headers.get('ETag')).toBe(before.headers.get('ETag'))
    const text = await after.text()
    expect(rankingsSchema.parse(JSON.parse(text)).data).toHaveLength(1)
    expect(text).toBe(await before.text())
    expect((await api.get(`${query}&as_of=20260211T020000Z`, key)).status).toBe(200)
  })

  it('lets the users read the snapshots who may read the original ones, and nobody else the rest', async () => {
    const to = join(makeFolder(), 'to')
    const from = copyFolder(dataDir)
    for (const mode of [0o755, 0o750]) {
      fs.chmodSync(from, mode)
      const copied = await startProgram('api/commands/backup.ts', [`${to}-${mode}`], { DATA_DIR: from }).ended
      expect(copied.code, copied.stderr).toBe(0)
      const modeOf = (path: string) => fs.statSync(join(`${to}-${mode}`, path)).mode & 0o777
      expect(['', 'raw', 'raw/usage', 'SHA256SUMS'].map(modeOf)).toEqual([mode, 0o700, 0o700, 0o600])
      expect(['current/', 'current/app_daily', 'snapshots'].map(modeOf)).toEqual([0o755, 0o755, 0o755])
    }
  })

  it('links snapshots on the same file system, and months that snapshots share', () => {
    const months = fs.globSync('snapshots/*/app_daily/month=2026-02.parquet', { cwd: whole })
    expect(months).toHaveLength(2)
    const inodes = [...months.map((name) => join(whole, name)), ...months.map((name) => join(dataDir, name))]
    expect(new Set(inodes.map((path) => fs.statSync(path).ino)).size).toBe(1)
  })

  it('is rejected for a folder that exists, is inside of the data or cannot be made, and of one that holds nothing', async () => {
    const none = makeFolder()
    const damaged = makeFolder()
    fs.writeFileSync(join(damaged, 'service.sqlite'), 'no database, for ever'.repeat(99))
    for (const [to, from, reason] of [
      [whole, dataDir, `${whole} exists already or is inside of what is copied: name a new folder`],
      [join(dataDir, 'raw', 'backup'), dataDir, 'name a new folder'],
      ['/proc/a/b', dataDir, 'ENOENT'],
      [join(makeFolder(), 'to'), none, 'holds nothing to back up'],
      ['', dataDir, 'name a new folder'],
      [join(makeFolder(), 'to'), damaged, 'service.sqlite cannot be copied: file is not a database'],
      ['--force', dataDir, "Unknown option '--force'"],
    ] as const) {
      const wasThere = fs.existsSync(to)
      const result = await run(to, from)
      expect([result.code, result.stdout]).toEqual([2, ''])
      expect(result.stderr).toContain(reason)
      // A half copy would stand in the way of the next one.
      expect(fs.existsSync(to)).toBe(wasThere)
    }
  })

  it('leaves out what is removed meanwhile, such as a snapshot that is pruned', async () => {
    const from = copyFolder(dataDir)
    const code = `
      const { mkdirSync, renameSync, rmSync, writeFileSync } = require('node:fs')
      const { folder, shared } = require('node:worker_threads').workerData
      const files = Array.from({ length: 30 }, (_, n) => 'd' + (n % 10) + '/' + n)
      while (Atomics.load(shared, 0) === 0) {
        for (const root of ['/snapshots/19700101T000000Z', '/raw/usage/date=1970-01-01']) {
          for (const file of files) {
            mkdirSync(folder + root + '/' + file.split('/')[0], { recursive: true })
            writeFileSync(folder + root + '/' + file, 'x')
          }
          renameSync(folder + root, folder + '/aside')
          rmSync(folder + '/aside', { recursive: true })
        }
      }`
    const shared = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(code, { eval: true, workerData: { folder: from, shared } })
    await once(worker, 'online')
    const to = makeFolder()
    for (let round = 0; round < 20; round += 1) {
      expect(await run(join(to, String(round)), from)).toMatchObject({ code: 0 })
      expect(fs.existsSync(join(to, String(round), 'current', 'app-rankings.duckdb'))).toBe(true)
    }
    Atomics.store(shared, 0, 1)
    await once(worker, 'exit')
  })

  it('beside PostgreSQL leaves the store out and shows how to dump it', async () => {
    const to = join(makeFolder(), 'to')
    const without = await run(to, dataDir, { DATABASE_URL: 'postgres://127.0.0.1:1/rankings' })
    expect([without.code, without.stderr]).toEqual([0, expect.stringContaining('pg_dump')])
    expect(fs.existsSync(join(to, 'service.sqlite'))).toBe(false)
  })
})

describe('a copied backup', () => {
  it('takes the place of the log of a killed store that was there before, which SQLite would replay', async () => {
    const later = await running.makeKey()
    const restored = copyFolder(dataDir)
    expect(fs.statSync(join(restored, 'service.sqlite-wal')).size).toBeGreaterThan(0)
    execFileSync('cp', ['-a', `${whole}/.`, restored])
    await using api = await startApi(restored)
    const statusOf = async (each: string) => (await api.get('/datasets/app-rankings', each)).status
    expect([await statusOf(key), await statusOf(later)]).toEqual([200, 401])
  })

  it('has what the lost machine would have had: the next night publishes the same bytes', async () => {
    const filesOf = (folder: string) => {
      const snapshot = currentSnapshot(folder)
      const same = filesBelow(snapshot).filter((name) => name !== 'report.json')
      return same.map((name) => [name, fs.readFileSync(join(snapshot, name), 'base64')])
    }
    const [lost, restored] = [copyFolder(dataDir), copyBack()]
    for (const folder of [lost, restored]) {
      use(folder, '2026-03-11')
      await publish(folder, '2026-03-12T02:00:00Z')
    }
    const files = filesOf(restored)
    expect(files.length).toBeGreaterThan(10)
    expect(files).toEqual(filesOf(lost))
  })

  it('of which files are missing or changed is not served; they are named', async () => {
    const restored = copyBack()
    const changed = join(restored, 'raw', 'usage', 'date=2026-02-10', 'rows.csv')
    fs.appendFileSync(changed, 'x')
    const missing = join(restored, 'service.sqlite')
    fs.rmSync(missing)
    const start = await startProgram('api/server.ts', [], { DATA_DIR: restored, PORT: '0' }).ended
    expect([start.code, start.stdout]).toEqual([2, ''])
    for (const path of [changed, missing])
      expect(start.stderr).toContain(`${path} is not the file of the backup: copy it again, or remove`)
    expect(fs.existsSync(missing)).toBe(false)
  })

  it('is served though a command read the store, and then a run changed raw files; its first start warns of later revocations', async () => {
    const restored = copyBack()
    const list = startProgram('api/commands/keys.ts', ['list'], { DATA_DIR: restored })
    expect(await list.ended).toMatchObject({ code: 0, stderr: '' })
    fs.appendFileSync(join(restored, 'raw', 'usage', 'date=2026-02-10', 'rows.csv'), '\n')
    await publish(restored, '2026-03-12T02:00:00Z')
    for (const isWarned of [true, false]) {
      const server = await startServer({ DATA_DIR: restored })
      const { code, stderr } = await server.stop()
      expect([code, stderr.includes('revoke and retract them once more')]).toEqual([0, isWarned])
    }
  })
})
