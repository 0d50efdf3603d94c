/** CONTRACT 4.6 and 9: what a service that starts or ends has open and prints, and what /readyz says meanwhile. */
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createLog, plainLine } from '../../api/process/log.ts'
import { unlessAbsent } from '../../api/process/system-errors.ts'
import { envelopeSchema, startApi, until, type Api } from '../support/api.ts'
import { makeFolder } from '../support/folders.ts'
import { oneApp, publishSnapshot } from '../support/pipeline/snapshot.ts'

const HOUR_MS = 3_600_000

/** Whether the store under `dataDir` is open: SQLite removes the file with its last connection. */
const isStoreOpen = (dataDir: string) => existsSync(join(dataDir, 'service.sqlite-wal'))

/** How many files of snapshots under `dataDir` this process has open; Linux lists them. */
function openSnapshots(dataDir: string): number {
  const fds = readdirSync('/proc/self/fd')
  const files = fds.map((fd) => unlessAbsent(() => readlinkSync(join('/proc/self/fd', fd))))
  return files.filter((file) => file?.startsWith(dataDir) === true && file.endsWith('.duckdb')).length
}

/** What /readyz says: its state, or why not. */
async function readiness(api: Api): Promise<unknown> {
  const reply = await fetch(`${api.origin}/readyz`)
  if (reply.status === 200) return await reply.json()
  expect(reply.status).toBe(503)
  expect(Number(reply.headers.get('Retry-After'))).toBeGreaterThan(0)
  return envelopeSchema.parse(await reply.json()).error.metadata
}

it('a service is ready once a snapshot is open, and otherwise names the reason', async () => {
  const dataDir = makeFolder()
  await using api = await startApi(dataDir)
  expect(await readiness(api)).toEqual({ reasons: ['no snapshot is open'] })
  await publishSnapshot(dataDir, oneApp())
  await until(async () => (await fetch(`${api.origin}/readyz`)).status === 200)
  expect(await readiness(api)).toEqual({ status: 'ready' })
})

describe('a service that stops', () => {
  it('closes its store and the open snapshot, and reports its end last', async () => {
    const dataDir = makeFolder()
    await publishSnapshot(dataDir, oneApp())
    const api = await startApi(dataDir)
    expect([isStoreOpen(dataDir), openSnapshots(dataDir)]).toEqual([true, 1])
    await api.close()
    expect([isStoreOpen(dataDir), openSnapshots(dataDir)]).toEqual([false, 0])
    expect(api.messages().at(-1)?.['msg']).toBe('stopped')
  })

  it('reports that to clients that poll readiness before its port closes, and answers others until then', async () => {
    const dataDir = makeFolder()
    await publishSnapshot(dataDir, oneApp())
    const api = await startApi(dataDir, { limits: { unreadyMs: 1000 } })
    expect(await readiness(api)).toEqual({ status: 'ready' })
    // Longer than proxies keep idle connections.
    expect((await fetch(`${api.origin}/healthz`)).headers.get('Keep-Alive')).toMatch(/^timeout=65\b/)
    const closed = api.close()
    expect((await fetch(`${api.origin}/healthz`)).status).toBe(200)
    expect(await readiness(api)).toEqual({ reasons: ['the service is stopping'] })
    await closed
    await expect(fetch(`${api.origin}/healthz`)).rejects.toThrow()
  })

  it('closes its port at once if no client polled readiness', async () => {
    const api = await startApi(makeFolder(), { limits: { unreadyMs: HOUR_MS } })
    await api.close()
    await expect(fetch(`${api.origin}/healthz`)).rejects.toThrow()
  })
})

it('a service that cannot listen closes its resources', async () => {
  await using first = await startApi(makeFolder())
  const dataDir = makeFolder()
  const second = startApi(dataDir, { environment: { PORT: new URL(first.origin).port } })
  await expect(second).rejects.toThrow('already in use')
  expect(isStoreOpen(dataDir)).toBe(false)
})

it('a line for people has time, level, message and fields, without control characters of clients', () => {
  const lines: string[] = []
  const log = createLog('info', { write: (line: string) => void lines.push(plainLine(line)) })
  log.info({ origin: 'http://127.0.0.1:3000', status: 200, path: '/\u001B[2J' }, 'listening')
  log.error({ err: new Error('broken') }, 'request failed')
  expect(lines[0]).toMatch(
    /^\d\d:\d\d:\d\d info {2}listening origin=http:\/\/127\.0\.0\.1:3000 status=200 path=\/\uFFFD\[2J\n$/,
  )
  expect(lines[1]).toMatch(/^\d\d:\d\d:\d\d error request failed\n {2}Error: broken\n[^]*\n$/)
})
