/** CONTRACT 9, notices of the nightly run: they reach a real server, are retried, and never fail a run. */
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { run } from '../../pipeline/commands/run.ts'
import { readConfig } from '../../pipeline/config.ts'
import { readLastRun } from '../../pipeline/contract/last-run.ts'
import { sendOverHttp } from '../../pipeline/program/webhook.ts'
import { pointAt } from '../../pipeline/snapshot/list.ts'
import { openWarehouse } from '../../pipeline/duckdb/warehouse.ts'
import { SILENT } from '../support/pipeline/in-process.ts'
import { TemporaryFolders, currentSnapshot, writeRaw } from '../support/pipeline/nightly.ts'
import { REPOSITORY, startProcess, startWithoutPrivilege } from '../support/processes.ts'

const folders = new TemporaryFolders()
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
const listening = new Promise<string>((resolve) => {
  server.listen(0, '127.0.0.1', () => {
    resolve(`http://127.0.0.1:${z.object({ port: z.number() }).parse(server.address()).port}`)
  })
})

afterAll(() => {
  server.close()
  folders.removeAll()
})

let dataDir = ''
let notes: string[] = []

beforeEach(() => {
  requests = []
  replies = []
  notes = []
  dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  deliver('2026-01-06', 1)
})

function deliver(day: string, tokens: number): void {
  writeRaw(
    dataDir,
    `usage/date=${day}/rows.csv`,
    `ts,app_id,prompt_tokens,completion_tokens\n${day},1,${tokens},0\n`,
  )
}

async function runAt(asOf: string): Promise<void> {
  const origin = await listening
  const settings = { DATA_DIR: dataDir, NOTICE_WEBHOOK: `${origin}/hook`, SUCCESS_PING: `${origin}/ping` }
  await run.prepare(['--as-of', asOf])({
    config: readConfig(settings),
    progress: { ...SILENT, note: (text) => void notes.push(text) },
    now: () => new Date(),
    print: () => undefined,
    send: sendOverHttp,
  })
}

function events(): unknown[] {
  return requests.map(({ path, body }) =>
    path === '/hook' ? z.object({ event: z.string() }).parse(JSON.parse(body)).event : path,
  )
}

describe('notices', () => {
  it('a successful run sends the ping and nothing else', async () => {
    await runAt('2026-01-07T02:00:00Z')
    expect(requests).toMatchObject([{ path: '/ping', method: 'GET', body: '' }])
  })

  it('a run with restated history or late data sends notices and the ping', async () => {
    await runAt('2026-01-07T02:00:00Z')
    deliver('2026-01-06', 2)
    await runAt('2026-01-09T02:00:00Z')
    expect(events()).toEqual(['/ping', 'restated', 'late', '/ping'])
    expect(JSON.parse(requests[1]?.body ?? '')).toMatchObject({
      message: 'Days published before that have new figures: 1',
    })
    expect(JSON.parse(requests[2]?.body ?? '')).toEqual({
      event: 'late',
      message: 'The data ends on 2026-01-06, the last completed day is 2026-01-08',
      snapshot: '20260109T020000Z',
      publisher: 'App Rankings',
    })
  })

  it('a run that completes a killed one sends the notice of its restatements', async () => {
    deliver('2026-01-05', 1)
    await runAt('2026-01-07T01:00:00Z')
    deliver('2026-01-05', 2)
    await runAt('2026-01-07T02:00:00Z')
    requests = []
    deliver('2026-01-06', 2)
    await runAt('2026-01-07T03:00:00Z')
    pointAt(dataDir, '20260107T020000Z')
    await runAt('2026-01-07T04:00:00Z')
    expect(events()).toEqual(['restated', '/ping', 'restated', '/ping'])
    expect(requests[2]?.body).toBe(requests[0]?.body)
    await runAt('2026-01-07T05:00:00Z')
    expect(events().slice(4)).toEqual(['/ping'])
  })

  it('a run that completes one with registry changes only sends no notice of new figures', async () => {
    const registry = 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n2,Two,'
    writeRaw(dataDir, 'apps/registry.csv', `${registry}public,2025-01-01\n`)
    writeRaw(
      dataDir,
      'usage/date=2026-01-06/two.csv',
      'ts,app_id,prompt_tokens,completion_tokens\n2026-01-06,2,1,0\n',
    )
    await runAt('2026-01-07T02:00:00Z')
    writeRaw(dataDir, 'apps/registry.csv', `${registry}hidden,2026-01-07\n`)
    await runAt('2026-01-07T03:00:00Z')
    pointAt(dataDir, '20260107T020000Z')
    await runAt('2026-01-07T04:00:00Z')
    expect(currentSnapshot(dataDir)).toContain('20260107T030000Z')
    expect(events()).toEqual(['/ping', '/ping', '/ping'])
  })

  it('a run that published but could not be recorded has not failed, and notes this', async () => {
    mkdirSync(join(dataDir, 'last-run.json'))
    await runAt('2026-01-07T02:00:00Z')
    expect(currentSnapshot(dataDir)).toContain('20260107T020000Z')
    expect(events()).toEqual(['/ping'])
    expect(notes).toEqual([
      expect.stringMatching(/^The end of the run \(published\) could not be recorded: EISDIR/),
    ])
  })

  it('a failed run sends the reason and no ping', async () => {
    writeRaw(dataDir, 'usage/date=2026-01-06/rows.parquet', 'broken')
    await expect(runAt('2026-01-07T02:00:00Z')).rejects.toThrow('rows.parquet')
    expect(events()).toEqual(['failed'])
    expect(requests[0]?.body).toContain('rows.parquet cannot be read')
  })

  it('a run that is locked out sends nothing', async () => {
    const origin = await listening
    const warehouse = await openWarehouse(dataDir, '1GB')
    const { ended } = startProcess(process.execPath, [join(REPOSITORY, 'pipeline', 'nightly.ts')], {
      environment: { DATA_DIR: dataDir, NOTICE_WEBHOOK: `${origin}/hook`, SUCCESS_PING: `${origin}/ping` },
    })
    expect((await ended).code).toBe(75)
    warehouse.close()
    expect(requests).toEqual([])
  })

  it('that meets a published file open for writing elsewhere has failed', async () => {
    const origin = await listening
    await runAt('2026-01-07T02:00:00Z')
    requests = []
    deliver('2026-01-07', 1)
    const opened = await DuckDBInstance.create(join(currentSnapshot(dataDir), 'app-rankings.duckdb'))
    const night = ['run', '--as-of', '2026-01-08T02:00:00Z'] as const
    const { ended } = startProcess(process.execPath, [join(REPOSITORY, 'pipeline', 'nightly.ts'), ...night], {
      environment: { DATA_DIR: dataDir, NOTICE_WEBHOOK: `${origin}/hook`, SUCCESS_PING: `${origin}/ping` },
    })
    expect((await ended).code).toBe(75)
    opened.closeSync()
    expect(events()).toEqual(['failed'])
    expect(requests[0]?.body).toContain('open for writing')
    expect(readLastRun(dataDir)).toMatchObject({ outcome: 'failed', snapshot: null })
  })

  it('a run that lacks a right sends a notice that names the path', async () => {
    const locked = join(dataDir, 'snapshots', '.building-20260106T020000Z')
    mkdirSync(join(locked, 'folder'), { recursive: true })
    chmodSync(locked, 0o000)
    const origin = await listening
    const { ended } = startWithoutPrivilege(['pipeline/nightly.ts', 'run'], {
      DATA_DIR: dataDir,
      NOTICE_WEBHOOK: `${origin}/hook`,
    })
    const { code, stderr } = await ended
    expect(code).toBe(2)
    expect(stderr).toMatch(new RegExp(`^EACCES.*'${locked}'\n$`))
    expect(requests).toHaveLength(1)
    expect(readLastRun(dataDir)?.message).toBe(`The run crashed: ${stderr.trimEnd()}`)
    chmodSync(locked, 0o700)
  })

  it('a blocked run sends the reason under the event blocked', async () => {
    deliver('2026-01-05', 1)
    await runAt('2026-01-07T02:00:00Z')
    rmSync(join(dataDir, 'raw/usage/date=2026-01-05'), { recursive: true })
    await expect(runAt('2026-01-08T02:00:00Z')).rejects.toThrow('Blocked before publishing')
    expect(events()).toEqual(['/ping', 'blocked'])
    expect(requests[1]?.body).toContain('2026-01-05')
  })

  it('a notice that cannot be sent is tried three times and does not fail the run', async () => {
    replies = [500, 503, 500]
    await runAt('2026-01-07T02:00:00Z')
    expect(requests).toHaveLength(3)
    const { host } = new URL(await listening)
    expect(notes).toEqual([`The success ping could not be sent: ${host}: HTTP status 500`])
  })

  it('an address with user and password gets them as a header, and no message shows them', async () => {
    const address = new URL(await listening)
    address.username = 'me'
    address.password = 'p@ss'
    replies = [200, 401, 401, 401]
    await sendOverHttp(String(address), { event: 'late' })
    const credentials = `Basic ${Buffer.from('me:p@ss').toString('base64')}`
    expect(requests).toMatchObject([{ authorization: credentials, body: '{"event":"late"}' }])
    await expect(sendOverHttp(String(address))).rejects.toThrow(new Error(`${address.host}: HTTP status 401`))
  })

  it('the message about an unsent notice has the cause and the host, but not the path', async () => {
    const nobody = createServer().listen(0, '127.0.0.1')
    await once(nobody, 'listening')
    const { port } = z.object({ port: z.number() }).parse(nobody.address())
    nobody.close()
    await expect(sendOverHttp(`http://127.0.0.1:${port}/secret`)).rejects.toThrow(
      new Error(`127.0.0.1:${port}: fetch failed (ECONNREFUSED)`),
    )
  })

  it('a notice is sent again if the receiver rejects it', async () => {
    replies = [500]
    await runAt('2026-01-07T02:00:00Z')
    expect(requests).toHaveLength(2)
    expect(notes).toEqual([])
  })
})

describe('a reply', () => {
  afterEach(() => vi.unstubAllGlobals())

  it.each([200, 500])('with status %s is closed as soon as the status is known', async (status) => {
    let left = 0
    const body = () => new ReadableStream({ cancel: () => void (left += 1) })
    const statuses = [status]
    vi.stubGlobal('fetch', async () => new Response(body(), { status: statuses.shift() ?? 200 }))
    await sendOverHttp('http://notices.example/')
    expect(left).toBe(status === 200 ? 1 : 2)
  })
})
