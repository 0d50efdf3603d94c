/** CONTRACT 9: notices of the nightly run: they reach a real server, are retried, and never fail a run. */
import { appendFileSync, chmodSync, mkdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { readLastRun } from '../../pipeline/contract/last-run.ts'
import { openWarehouse } from '../../pipeline/duckdb/warehouse.ts'
import {
  deliver,
  currentSnapshot,
  publish,
  register,
  runCommand,
  startNightly,
  writeRaw,
  withApps,
} from '../support/pipeline/nightly.ts'
import { pointAt } from '../support/pipeline/snapshot.ts'
import { freePort, listen } from '../support/ports.ts'
import { startProgram, UNPRIVILEGED } from '../support/processes.ts'

const DAY = '2026-01-06'
const FIRST_NIGHT = '2026-01-07T02:00:00Z'

let dataDir = ''
let origin = ''
let requests: { path: string; method: string; body: string; authorization: string | undefined }[] = []
/** Status codes of the next replies; 200 when there is none. */
let replies: number[] = []

const server = createServer((request, response) => {
  let body = ''
  request.on('data', (chunk: Buffer) => (body += chunk.toString()))
  request.on('end', () => {
    const { url = '', method = '', headers } = request
    requests.push({ path: url, method, body, authorization: headers.authorization })
    response.writeHead(replies.shift() ?? 200).end()
  })
})

beforeAll(async () => {
  origin = `http://127.0.0.1:${(await listen(server)).port}`
})
beforeEach(() => {
  requests = []
  replies = []
  vi.stubEnv('NOTICE_WEBHOOK', `${origin}/hook`)
  vi.stubEnv('SUCCESS_PING', `${origin}/ping`)
  dataDir = withApps('One', 'Two')
  deliver(dataDir, DAY, ['1,1,0'])
})
afterEach(() => vi.unstubAllEnvs())

function events(): unknown[] {
  return requests.map(({ path, body }) =>
    path === '/hook' ? z.object({ event: z.string() }).parse(JSON.parse(body)).event : path,
  )
}

it('a successful run sends the ping and nothing else; restated history and late data send notices too', async () => {
  await publish(dataDir, FIRST_NIGHT)
  expect(requests).toMatchObject([{ path: '/ping', method: 'GET', body: '' }])
  deliver(dataDir, DAY, ['1,2,0'])
  await publish(dataDir, '2026-01-09T02:00:00Z')
  expect(events()).toEqual(['/ping', 'restated', 'late', '/ping'])
  const [, restated, late] = requests.map(({ body }): unknown => body && JSON.parse(body))
  expect(restated).toMatchObject({ message: 'Days published before that have new figures: 1' })
  expect(late).toEqual({
    event: 'late',
    message: 'The data ends on 2026-01-06, the last completed day is 2026-01-08',
    snapshot: '20260109T020000Z',
    publisher: 'App Rankings',
  })
})

it('a run that completes a killed one sends the notice of its restatements, but none of registry changes only', async () => {
  deliver(dataDir, '2026-01-05', ['1,1,1', '2,1,1'])
  await publish(dataDir, '2026-01-07T01:00:00Z')
  deliver(dataDir, '2026-01-05', ['1,2,1', '2,1,1'])
  await publish(dataDir, FIRST_NIGHT)
  requests = []
  deliver(dataDir, DAY, ['1,2,0'])
  await publish(dataDir, '2026-01-07T03:00:00Z')
  pointAt(dataDir, '20260107T020000Z')
  await publish(dataDir, '2026-01-07T04:00:00Z')
  expect(events()).toEqual(['restated', '/ping', 'restated', '/ping'])
  expect(requests[2]?.body).toBe(requests[0]?.body)

  requests = []
  register(dataDir, ['2,Two,hidden,,,2026-01-07'], 'later.csv')
  await publish(dataDir, '2026-01-07T05:00:00Z')
  pointAt(dataDir, '20260107T030000Z')
  await publish(dataDir, '2026-01-07T06:00:00Z')
  await publish(dataDir, '2026-01-07T07:00:00Z')
  expect(currentSnapshot(dataDir)).toContain('20260107T050000Z')
  expect(events()).toEqual(['/ping', '/ping', '/ping'])
})

it('a run that published but could not be recorded has not failed, and notes this', async () => {
  mkdirSync(join(dataDir, 'last-run.json'))
  const { stderr } = await publish(dataDir, FIRST_NIGHT)
  expect(stderr).toContain('The end of the run (published) could not be recorded: EISDIR')
  expect(currentSnapshot(dataDir)).toContain('20260107T020000Z')
  expect(events()).toEqual(['/ping'])
})

it('a failed and a blocked run send the reason, each under its event, and no ping', async () => {
  deliver(dataDir, '2026-01-05', ['1,1,0'])
  await publish(dataDir, FIRST_NIGHT)
  requests = []
  writeRaw(dataDir, `usage/date=${DAY}/rows.parquet`, 'broken')
  await expect(publish(dataDir, '2026-01-08T02:00:00Z')).rejects.toThrow('rows.parquet')
  rmSync(join(dataDir, 'raw/usage', `date=${DAY}`, 'rows.parquet'))
  rmSync(join(dataDir, 'raw/usage/date=2026-01-05'), { recursive: true })
  await expect(publish(dataDir, '2026-01-08T02:00:00Z')).rejects.toThrow('Blocked before publishing')
  expect(events()).toEqual(['failed', 'blocked'])
  expect(requests[0]?.body).toContain('rows.parquet cannot be read')
  expect(requests[1]?.body).toContain('2026-01-05')
})

it('a run that is locked out sends nothing; one that meets a published file open for writing has failed', async () => {
  await publish(dataDir, FIRST_NIGHT)
  requests = []
  const warehouse = await openWarehouse({ dataDir, memory: '1GB' })
  const { code, stderr } = await startNightly(dataDir, 'run').ended
  warehouse.close()
  expect([code, stderr]).toEqual([75, expect.stringMatching(/another run/i)])
  expect(stderr).toContain(String(process.pid))
  expect(requests).toEqual([])
  deliver(dataDir, '2026-01-07', ['1,1,0'])
  const opened = await DuckDBInstance.create(join(currentSnapshot(dataDir), 'app-rankings.duckdb'))
  const failed = await startNightly(dataDir, 'run', '--as-of', '2026-01-08T02:00:00Z').ended
  opened.closeSync()
  expect([failed.code, failed.stderr]).toEqual([
    75,
    expect.stringMatching(/^Could not set lock on file .* \(PID \d+\).* has the file open for writing/m),
  ])
  expect(events()).toEqual(['failed'])
  expect(requests[0]?.body).toContain('open for writing')
  expect(readLastRun(dataDir)).toMatchObject({ outcome: 'failed', snapshot: null })
})

it('a run that lacks a right sends a notice that names the path', async () => {
  const locked = join(dataDir, 'snapshots', '.building-20260106T020000Z')
  mkdirSync(join(locked, 'folder'), { recursive: true })
  chmodSync(locked, 0o000)
  const environment = { DATA_DIR: dataDir }
  const { ended } = startProgram('pipeline/nightly.ts', ['run'], environment, UNPRIVILEGED)
  const { code, stderr } = await ended
  expect(code).toBe(2)
  expect(stderr).toMatch(new RegExp(`^EACCES.*'${locked}'\n$`))
  expect(events()).toEqual(['failed'])
  expect(readLastRun(dataDir)?.message).toBe(stderr.trimEnd())
  chmodSync(locked, 0o700)
})

it('verify sends one notice about damaged files', async () => {
  await publish(dataDir, FIRST_NIGHT)
  requests = []
  appendFileSync(join(currentSnapshot(dataDir), 'apps.csv'), 'x')
  const { code, stderr } = await runCommand(dataDir, 'verify', '--all')
  expect([code, stderr]).toEqual([1, expect.stringContaining('1 published file broken')])
  expect(events()).toEqual(['broken'])
  expect(requests[0]?.body).toContain('20260107T020000Z/apps.csv has')
})

it('a receiver is called three times at most, with user and password as a header; the run succeeds and names the host alone', async () => {
  const { host } = new URL(origin)
  vi.stubEnv('NOTICE_WEBHOOK', `http://me:p%40ss@${host}/hook`)
  replies = [401, 401, 401, 500, 200]
  const { code, stderr } = await runCommand(dataDir, 'run', '--as-of', '2026-01-09T02:00:00Z')
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining(`The notice "late" could not be sent: ${host}: HTTP status 401\n`),
  ])
  expect(stderr).not.toContain('ping')
  const authorization = `Basic ${Buffer.from('me:p@ss').toString('base64')}`
  const [late, ping] = [
    { path: '/hook', authorization },
    { path: '/ping', authorization: undefined },
  ]
  expect(requests).toMatchObject([late, late, late, ping, ping])
})

it('a receiver that cannot be reached is noted with the cause and the host, but not the path', async () => {
  const host = `127.0.0.1:${await freePort()}`
  vi.stubEnv('SUCCESS_PING', `http://${host}/secret`)
  const { code, stderr } = await runCommand(dataDir, 'run', '--as-of', FIRST_NIGHT)
  const note = `The success ping could not be sent: ${host}: fetch failed (ECONNREFUSED)\n`
  expect([code, stderr]).toEqual([0, expect.stringContaining(note)])
})
