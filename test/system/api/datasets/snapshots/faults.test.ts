/** CONTRACT 4.6: published files and records that are damaged under a running service, over HTTP. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startApi, until, type Api } from '../../../../support/api.ts'
import { TemporaryFolders } from '../../../../support/pipeline/nightly.ts'
import { FIRST, SECOND, publishTwice } from '../../../../support/pipeline/published-twice.ts'

const LIST = '/datasets/app-rankings/snapshots'
const RANKINGS = '/datasets/app-rankings'

const folders = new TemporaryFolders()
const published = folders.make()
let dataDir = ''
let api: Api

beforeAll(() => publishTwice(published))
beforeEach(() => {
  dataDir = folders.copy(published)
})
afterEach(() => api.close())
afterAll(() => folders.removeAll())

const pathOf = (...parts: readonly string[]) => join(dataDir, 'snapshots', ...parts)

const statusSchema = z.object({
  data: z.looseObject({
    as_of: z.string().nullable(),
    last_run: z.unknown(),
    faults: z.array(z.object({ thing: z.string(), message: z.string() })),
  }),
})

async function status() {
  return statusSchema.parse(await (await api.get('/status')).json()).data
}

async function metric(name: string): Promise<string> {
  const text = await (await fetch(`${api.origin}/metrics`)).text()
  return new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? 'none'
}

async function expectRefused(file: string, headers: Record<string, string> = {}): Promise<void> {
  const reply = await api.get(`${LIST}/${SECOND}/${file}`, undefined, { headers })
  expect(reply.status).toBe(500)
  expect(reply.headers.get('ETag')).toBeNull()
  expect(reply.headers.get('Cache-Control')).not.toContain('immutable')
  expect(await reply.text()).not.toContain('snapshots/')
}

describe('a damaged published file', () => {
  const DAMAGES: readonly (readonly [string, (path: string) => void])[] = [
    ['cut', (path) => truncateSync(path, 10)],
    ['longer', (path) => appendFileSync(path, 'x')],
    ['gone', (path) => rmSync(path)],
  ]

  it.each(DAMAGES)('%s: 500 with a message in the log, and never its bytes', async (_how, damage) => {
    api = await startApi(dataDir)
    const files = ['rankings.parquet', 'apps.csv', 'README.md', 'app_daily/month=2026-01.parquet']
    for (const file of files) damage(pathOf(SECOND, file))
    const key = await api.makeKey()
    for (const file of files) {
      await expectRefused(file)
      await expectRefused(file, { Range: 'bytes=0-3' })
    }
    expect(JSON.stringify(api.messages())).toContain(`npm run nightly -- verify ${SECOND}`)
    // Everything else works.
    expect((await api.get(`${LIST}/${SECOND}/rankings.csv`)).status).toBe(200)
    expect((await api.get(RANKINGS, key)).status).toBe(200)
    expect(await metric('dataset_degraded')).toBe('0')
  })
})

describe('a newest snapshot that cannot be opened at the start', () => {
  it('does not end the service: the previous one is served, with errors in the log, until it is repaired', async () => {
    const file = pathOf(SECOND, 'app-rankings.duckdb')
    const whole = readFileSync(file)
    truncateSync(file, 100)
    api = await startApi(dataDir)
    const key = await api.makeKey()
    const reply = await api.get(RANKINGS, key)
    expect([reply.status, reply.headers.get('Last-Modified')]).toEqual([200, 'Wed, 07 Jan 2026 02:00:00 GMT'])
    const message = `cannot be opened, and ${FIRST} is served instead`
    const ready = await fetch(`${api.origin}/readyz`)
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { status: 'degraded', reasons: [`snapshots/${SECOND} ${message}`] },
    ])
    expect((await status()).faults).toContainEqual({ thing: `snapshots/${SECOND}`, message })
    expect(await metric('dataset_degraded')).toBe('1')
    expect(api.messages()).toContainEqual(
      expect.objectContaining({ msg: 'snapshot cannot be opened', level: 'error' }),
    )

    writeFileSync(file, whole)
    await until(async () => (await status()).as_of === '2026-01-08T02:00:00Z')
    expect([(await status()).faults, await metric('dataset_degraded')]).toEqual([[], '0'])
    expect(await (await fetch(`${api.origin}/readyz`)).json()).toEqual({ status: 'ready' })
  })

  it('is not needed: without a pointer the newest is served, and the log says so', async () => {
    rmSync(join(dataDir, 'current'))
    api = await startApi(dataDir)
    expect((await api.get(RANKINGS, await api.makeKey())).status).toBe(200)
    expect((await status()).faults).toEqual([
      { thing: 'current', message: `cannot be opened, and ${SECOND} is served instead` },
    ])
  })
})

describe('an unreadable record', () => {
  const LEFT_OUT = 'cannot be read and is left out'

  it.each([
    [`snapshots/records/${FIRST}.json`, [SECOND]],
    ['last-run.json', [SECOND, FIRST]],
  ])('%s is one entry less, and is listed as a fault', async (path, listed) => {
    const file = join(dataDir, path)
    const size = existsSync(file) ? statSync(file).size : 0
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, '{"half": '.padEnd(size))
    api = await startApi(dataDir)
    const list = z.object({ data: z.array(z.object({ id: z.string() })) })
    for (const search of ['', '?state=all']) {
      const reply = await api.get(`${LIST}${search}`)
      expect(list.parse(await reply.json()).data.map(({ id }) => id)).toEqual(listed)
    }
    for (const page of ['/', '/feed.xml']) expect((await fetch(`${api.origin}${page}`)).status).toBe(200)
    expect((await status()).faults).toContainEqual({ thing: path, message: LEFT_OUT })
  })
})

it('/status shows how the last run ended, without its message', async () => {
  const lastRun = { finished_at: '2026-01-09T02:00:00Z', outcome: 'late', snapshot: null, message: 'secret' }
  writeFileSync(join(dataDir, 'last-run.json'), JSON.stringify(lastRun))
  api = await startApi(dataDir)
  expect((await status()).last_run).toEqual({ finished_at: '2026-01-09T02:00:00Z', outcome: 'late' })
})
