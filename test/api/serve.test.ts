/** CONTRACT 9: what a service that starts or ends has open. */
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { startApi } from '../support/api.ts'
import { TemporaryFolders } from '../support/pipeline/nightly.ts'
import { publishSnapshot } from '../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())
afterEach(() => void vi.useRealTimers())

/** Whether the store under `dataDir` is open: SQLite removes the file with its last connection. */
const isStoreOpen = (dataDir: string) => existsSync(join(dataDir, 'service.sqlite-wal'))

/** How many files of snapshots under `dataDir` this process has open; Linux lists them. */
function openSnapshots(dataDir: string): number {
  const files = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(join('/proc/self/fd', fd))
    } catch {
      return 'closed meanwhile'
    }
  })
  return files.filter((file) => file.startsWith(dataDir) && file.endsWith('.duckdb')).length
}

describe('a service that stops', () => {
  it('closes its store and every open snapshot, and reports its end last', async () => {
    const dataDir = folders.make()
    for (const day of ['19', '20']) {
      await publishSnapshot(dataDir, {
        asOf: new Date(`2026-11-${day}T02:00:00Z`),
        dataThrough: '2026-11-18',
        apps: [],
        daily: [],
      })
    }
    const api = await startApi(dataDir)
    const earlier = '/datasets/app-rankings?as_of=2026-11-19T02:00:00Z'
    expect((await api.get(earlier, await api.makeKey())).status).toBe(200)
    expect([isStoreOpen(dataDir), openSnapshots(dataDir)]).toEqual([true, 2])
    await api.close()
    expect([isStoreOpen(dataDir), openSnapshots(dataDir)]).toEqual([false, 0])
    const messages = api.messages()
    expect(messages.at(-1)?.['msg']).toBe('stopped')
  })

  it('leaves no timer behind', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
    const api = await startApi(folders.make())
    await api.close()
    expect(vi.getTimerCount()).toBe(0)
  })
})

it('closes its resources if it cannot listen', async () => {
  await using first = await startApi(folders.make())
  const dataDir = folders.make()
  const second = startApi(dataDir, { environment: { PORT: new URL(first.origin).port } })
  await expect(second).rejects.toThrow('already in use')
  expect(isStoreOpen(dataDir)).toBe(false)
})
