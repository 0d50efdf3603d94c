/** CONTRACT 4.6: the current snapshot while other processes lock, write or remove its file. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { addDays } from '../../../../../pipeline/contract/calendar.ts'
import { CURRENT_POINTER, SNAPSHOT_FILE, SNAPSHOTS_FOLDER } from '../../../../../pipeline/contract/files.ts'
import type { Snapshots } from '../../../../../api/datasets/snapshots/current.ts'
import { memoryLog, rankingsSchema, startApi, until } from '../../../../support/api.ts'
import { TemporaryFolders } from '../../../../support/pipeline/nightly.ts'
import { startSampleApi } from '../../../../support/sample-api.ts'
import { followSnapshots } from '../../../../support/snapshots.ts'
import { REPOSITORY } from '../../../../support/processes.ts'
import { oneApp, pointAt, publishSnapshot, recordSnapshot } from '../../../../support/pipeline/snapshot.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** Whether another process can open the file for writing, which DuckDB prevents while it is being read. */
function isFree(folder: string): boolean {
  const program = `
    const { DuckDBInstance } = await import('@duckdb/node-api')
    await DuckDBInstance.create(process.argv[1], { access_mode: 'READ_WRITE' })`
  const args = ['--input-type=module', '-e', program, join(folder, SNAPSHOT_FILE)]
  return spawnSync(process.execPath, args, { cwd: REPOSITORY }).status === 0
}

/** Changes the file like an analyst who opens it with DuckDB's defaults, and exits without closing it. */
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

const isFaulty = (snapshots: Snapshots) => snapshots.fault() !== undefined

describe('followSnapshots', () => {
  it('keeps the old snapshot open until its last use is done, then closes it', async () => {
    const dataDir = folders.make()
    const { log } = memoryLog()
    const old = await publishSnapshot(dataDir, oneApp(2, 10))
    const snapshots = await followSnapshots(dataDir, { log })
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const read = async () => {
      using snapshot = await snapshots.take(undefined, 'clients')
      await released
      return await snapshot.query('SELECT count(*) AS n FROM apps', {})
    }
    const reading = read()

    await publishSnapshot(dataDir, oneApp(3, 20))
    await until(() => snapshots.current()?.id === '20261120T030000Z')
    expect(isFree(old)).toBe(false)
    release()
    expect(await reading).toEqual([{ n: 1n }])
    await until(() => isFree(old))
    await snapshots.close()
  })

  it('does not open a snapshot that was written to, until the changes are removed', async () => {
    const dataDir = folders.make()
    const { log, messages } = memoryLog()
    const folder = await publishSnapshot(dataDir, oneApp(2, 10))
    const written = join(folder, `${SNAPSHOT_FILE}.wal`)
    leaveWritten(folder)
    const snapshots = await followSnapshots(dataDir, { log })
    expect([snapshots.current(), isFaulty(snapshots)]).toEqual([undefined, true])
    expect(JSON.stringify(messages())).toContain(`Remove ${written}`)

    rmSync(written)
    await until(() => snapshots.current() !== undefined && !isFaulty(snapshots))
    using snapshot = await snapshots.take(undefined, 'clients')
    expect(await snapshot.query('SELECT app_name FROM apps', {})).toEqual([{ app_name: 'App' }])
    await snapshots.close()
  })

  it('goes on serving without a pointer, but no retracted snapshot', async () => {
    const dataDir = folders.make()
    const { log } = memoryLog()
    const folder = await publishSnapshot(dataDir, oneApp(2, 10))
    const snapshots = await followSnapshots(dataDir, { log })
    mkdirSync(join(dataDir, SNAPSHOTS_FOLDER, '20261120T040000Z'))
    pointAt(dataDir, '20261120T040000Z')
    await until(() => isFaulty(snapshots))
    rmSync(join(dataDir, CURRENT_POINTER))
    await until(() => snapshots.fault()?.thing === CURRENT_POINTER)
    expect(snapshots.current()?.id).toBe('20261120T020000Z')

    const retracted = { at: '2026-11-20T03:00:00Z', reason: 'wrong' }
    recordSnapshot(dataDir, '20261120T020000Z', { retracted })
    await until(() => snapshots.current() === undefined)
    await expect(snapshots.take(undefined, 'clients')).rejects.toMatchObject({ status: 503 })
    await until(() => isFree(folder))
    await snapshots.close()
  })

  it.each([
    ['is served', async () => undefined],
    ['cannot be prepared', () => Promise.reject(new Error('no room'))],
    ['is being prepared', () => sleep(500)],
  ])('closes a snapshot that %s at the end', async (_state, prepare) => {
    const dataDir = folders.make()
    const begun = Promise.withResolvers<void>()
    const snapshots = await followSnapshots(dataDir, {
      log: memoryLog().log,
      prepare: () => {
        begun.resolve()
        return prepare()
      },
    })
    const folder = await publishSnapshot(dataDir, oneApp(2, 10))
    await begun.promise
    await snapshots.close()
    expect(isFree(folder)).toBe(true)
  })
})

describe('a swap of snapshots under continuous requests', () => {
  it('takes less than five seconds while 800 visitors ask for different pages and leave', async () => {
    const dataDir = folders.make()
    await using api = await startSampleApi(dataDir)
    const asOf = async () => /"as_of":"([^"]*)"/.exec(await (await api.get('/status')).text())?.[1]
    const days = Array.from({ length: 40 }, (_, day) => addDays('2026-08-31', -day))
    const visits = Array.from({ length: 800 }, async (_, index) => {
      const leaving = AbortSignal.timeout(1000 + index)
      const query = `start_date=${days[index % 40]}&limit=${1 + Math.floor(index / 40)}`
      await fetch(`${api.origin}/?${query}`, { signal: leaving }).catch(() => undefined)
    })
    await publishSnapshot(dataDir, oneApp(2, 10))
    const published = performance.now()
    await until(async () => (await asOf()) === '2026-11-20T02:00:00Z')
    expect(performance.now() - published).toBeLessThan(5000)
    await Promise.all(visits)
    const page = await fetch(`${api.origin}/?sort=trending&limit=7`)
    expect(page.status).toBe(200)
  })

  it('fails no request, never mixes two snapshots and closes the old ones', async () => {
    const dataDir = folders.make()
    const published = [await publishSnapshot(dataDir, oneApp(0, 1000))]
    await using api = await startApi(dataDir)
    const tokensAsOf = new Map<string, string>()
    const statuses = new Set<number>()
    let newest = ''
    const stopping = new AbortController()

    async function keepAsking(): Promise<void> {
      // A key may send 30 requests per minute, an account 500 per day.
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
      published.push(await publishSnapshot(dataDir, oneApp(hour, 1000 + hour)))
      await until(() => newest === `2026-11-20T0${hour}:00:00Z`)
    }
    stopping.abort()
    await asking

    expect(statuses).toEqual(new Set([200]))
    expect([...tokensAsOf.values()].toSorted()).toEqual(['1000', '1001', '1002', '1003'])
    expect(published.map(isFree)).toEqual([true, true, true, false])
  })
})
