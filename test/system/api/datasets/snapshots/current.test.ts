/** CONTRACT 4.6: the current snapshot while others lock, write or remove its file, ask without end, or take every connection. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { addDays } from '../../../../../pipeline/contract/calendar.ts'
import { SNAPSHOT_FILE, SNAPSHOTS_FOLDER } from '../../../../../pipeline/contract/files.ts'
import {
  makeKey,
  rankingsSchema,
  said,
  served,
  startApi,
  startSampleApi,
  statusOf,
  statusSchema,
  until,
  type Api,
} from '../../../../support/api.ts'
import { sendOver } from '../../../../support/connections.ts'
import { makeFolder } from '../../../../support/folders.ts'
import { LONG } from '../../../../support/long.ts'
import { REPOSITORY, startProgram } from '../../../../support/processes.ts'
import { oneApp, pointAt, publishSnapshot, recordSnapshot } from '../../../../support/pipeline/snapshot.ts'

/** Runs a program with `connection`, open for writing on the snapshot's file, in another process; returns its exit code. */
function writeElsewhere(folder: string, program: string): number | null {
  const open = `
    const { DuckDBInstance } = await import('@duckdb/node-api')
    const connection = await (await DuckDBInstance.create(process.argv[1], { access_mode: 'READ_WRITE' })).connect()`
  const args = ['--input-type=module', '-e', `${open}\n${program}`, join(folder, SNAPSHOT_FILE)]
  return spawnSync(process.execPath, args, { cwd: REPOSITORY }).status
}

/** Whether another process can open the file for writing, which DuckDB prevents while it is being read. */
const isFree = (folder: string) => writeElsewhere(folder, '') === 0

const isAtFault = async (api: Api, thing: string) =>
  (await statusOf(api)).faults.some((fault) => fault.thing === thing)

it('a snapshot that an analyst wrote to is not opened until the changes are removed', async () => {
  const dataDir = makeFolder()
  const folder = await publishSnapshot(dataDir, oneApp(2, 10))
  const written = join(folder, `${SNAPSHOT_FILE}.wal`)
  writeElsewhere(
    folder,
    `await connection.run("UPDATE apps SET app_name = 'Changed'")
    process.kill(process.pid, 'SIGKILL')`,
  )
  expect(existsSync(written)).toBe(true)
  await using api = await startApi(dataDir)
  expect((await statusOf(api)).as_of).toBeNull()
  expect(JSON.stringify(api.messages())).toContain(`Remove ${written}`)

  rmSync(written)
  await served(api, '2026-11-20T02:00:00Z')
  const reply = await api.getAsNewAccount('/datasets/app-rankings')
  expect(rankingsSchema.parse(await reply.json()).data[0]?.app_name).toBe('App')
})

it('a snapshot is served on while the next cannot be opened, unless it is retracted', async () => {
  const dataDir = makeFolder()
  const folder = await publishSnapshot(dataDir, oneApp(2, 10))
  await using api = await startApi(dataDir)
  const missing = join(SNAPSHOTS_FOLDER, '20261120T040000Z')
  mkdirSync(join(dataDir, missing))
  pointAt(dataDir, '20261120T040000Z')
  await until(() => isAtFault(api, missing))
  expect((await statusOf(api)).as_of).toBe('2026-11-20T02:00:00Z')

  const retracted = { at: '2026-11-20T03:00:00Z', reason: 'wrong' }
  recordSnapshot(dataDir, '20261120T020000Z', { retracted })
  await served(api, null)
  expect((await api.getAsNewAccount('/datasets/app-rankings')).status).toBe(503)
  await until(() => isFree(folder))
})

it('a service that ends while a snapshot becomes current leaves no file open', async () => {
  const dataDir = makeFolder()
  const published = [await publishSnapshot(dataDir, oneApp(2, 10))]
  const api = await startApi(dataDir)
  published.push(await publishSnapshot(dataDir, oneApp(3, 10)))
  await api.close()
  expect(published.map(isFree)).toEqual([true, true])
})

it('a swap does not wait for 800 visitors who ask for different pages and leave', LONG, async () => {
  const dataDir = makeFolder()
  await using api = await startSampleApi(dataDir)
  const days = Array.from({ length: 40 }, (_, day) => addDays('2026-08-31', -day))
  const begun = performance.now()
  for (const day of days.slice(0, 10))
    expect((await fetch(`${api.origin}/?start_date=${day}&limit=21`)).status).toBe(200)
  const allPagesMs = (performance.now() - begun) * 80
  const visits = Array.from({ length: 800 }, async (_, index) => {
    const leaving = AbortSignal.timeout(1000 + index)
    const query = `start_date=${days[index % 40]}&limit=${1 + Math.floor(index / 40)}`
    await fetch(`${api.origin}/?${query}`, { signal: leaving }).catch(() => undefined)
  })
  await publishSnapshot(dataDir, oneApp(2, 10))
  const published = performance.now()
  await served(api, '2026-11-20T02:00:00Z')
  expect(performance.now() - published).toBeLessThan(allPagesMs / 2)
  await Promise.all(visits)
  const page = await fetch(`${api.origin}/?sort=trending&limit=7`)
  expect(page.status).toBe(200)
})

it('swaps fail no request, never mix two snapshots and close the old ones', async () => {
  const dataDir = makeFolder()
  const published = [await publishSnapshot(dataDir, oneApp(0, 1000))]
  await using api = await startApi(dataDir)
  const tokensAsOf = new Map<string, string>()
  const statuses = new Set<number>()
  let newest = ''
  const stopping = new AbortController()

  async function keepAsking(): Promise<void> {
    while (!stopping.signal.aborted) {
      const response = await api.getAsNewAccount('/datasets/app-rankings')
      statuses.add(response.status)
      const body = rankingsSchema.parse(await response.json())
      const tokens = body.data[0]?.total_tokens ?? 'none'
      expect(tokensAsOf.get(body.meta.as_of) ?? tokens).toBe(tokens)
      tokensAsOf.set(body.meta.as_of, tokens)
      newest = body.meta.as_of
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
  await until(() => published.slice(0, 3).every(isFree))
  expect(published.map(isFree)).toEqual([true, true, true, false])
})

it('a run that publishes while all connections are taken is served, and the service goes on', async () => {
  const dataDir = makeFolder()
  await publishSnapshot(dataDir, oneApp())
  const key = await makeKey({ DATA_DIR: dataDir })
  const limited = ['bash', '-c', 'ulimit -n 256 && exec "$0" "$@"']
  const server = startProgram('api/server.ts', [], { DATA_DIR: dataDir, PORT: '0' }, limited)
  const [, origin = ''] = await said(server, 'stderr', /"origin":"([^"]+)"/)
  const request = { headers: { Authorization: `Bearer ${key}` } }
  const rankings = `${origin}/api/v1/datasets/app-rankings`
  expect((await fetch(rankings, request)).status).toBe(200)

  const sockets: Socket[] = []
  for (let index = 0; index < 300; index += 1) {
    const socket = sendOver(origin, '')
    sockets.push(socket)
    await once(socket, 'connect')
  }
  await publishSnapshot(dataDir, { ...oneApp(), asOf: new Date('2027-01-01T02:00:00Z') })
  await said(server, 'stderr', /20270101T020000Z/)
  for (const socket of sockets) socket.destroy()
  const asOf = async () => {
    const reply = await fetch(`${origin}/api/v1/status`).catch(() => undefined)
    return reply?.ok === true && statusSchema.parse(await reply.json()).data.as_of
  }
  expect(await until(asOf)).toBe('2027-01-01T02:00:00Z')
  expect((await fetch(rankings, request)).status).toBe(200)
  server.child.kill('SIGTERM')
  expect(await server.ended).toMatchObject({ code: 0 })
})
