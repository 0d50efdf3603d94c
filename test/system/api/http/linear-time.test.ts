/** CONTRACT 3: no field of a request costs more than linear time: twice the text takes about twice the CPU time. */
import { request } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startApi, type Api } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { oneApp, publishSnapshot } from '../../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
let api: Api
let key = ''

beforeAll(async () => {
  const dataDir = folders.make()
  await publishSnapshot(dataDir, oneApp())
  api = await startApi(dataDir)
  key = await api.makeKey()
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

const RANKINGS = '/api/v1/datasets/app-rankings'
const FILE = `${RANKINGS}/snapshots/20261120T020000Z/apps.csv`
const CHAT = '/api/v1/chat/completions'

/** The largest that fits beside the other headers. */
const LONG = 15_000

/** A request with this text in one of its fields. */
interface Field {
  readonly name: string
  readonly method?: string
  readonly path: (text: string) => string
  readonly headers: (text: string) => Record<string, string>
}

const header = (name: string, path: string, method = 'GET'): Field => ({
  name: `${name} of ${method} ${path}`,
  method,
  path: () => path,
  headers: (text) => ({ [name]: text }),
})
const query = (path: string, write: (text: string) => string): Field => ({
  name: `query ${write('…')} of ${path}`,
  path: (text) => `${path}?${write(text.replaceAll(/[^\w&=.,:%-]/g, encodeURIComponent).slice(0, LONG))}`,
  headers: () => ({}),
})

const FIELDS: readonly Field[] = [
  ...[
    'Accept',
    'Accept-Encoding',
    'If-None-Match',
    'If-Modified-Since',
    'Authorization',
    'Origin',
    'Cookie',
  ].map((name) => header(name, RANKINGS)),
  ...[
    'Range',
    'If-Range',
    'If-Match',
    'If-None-Match',
    'If-Modified-Since',
    'If-Unmodified-Since',
    'Cache-Control',
  ].map((name) => header(name, FILE)),
  ...['Accept-Encoding', 'If-None-Match', 'Host', 'X-Forwarded-For'].map((name) => header(name, '/feed.xml')),
  header('Accept', '/no-such-page'),
  ...[
    'HTTP-Referer',
    'X-Title',
    'X-Any-Categories',
    'Content-Type',
    'Content-Encoding',
    'X-Router-Metadata',
  ].map((name) => header(name, CHAT, 'POST')),
  ...['limit', 'as_of', 'start_date', 'category', 'format'].map((name) =>
    query(RANKINGS, (text) => `${name}=${text}`),
  ),
  query(RANKINGS, (text) => text),
  query('/', (text) => `as_of=${text}`),
  { name: 'path', path: (text) => `/api/v1/${encodeURI(text).slice(0, LONG)}`, headers: () => ({}) },
  { name: 'file', path: (text) => `${FILE}${encodeURIComponent(text).slice(0, LONG)}`, headers: () => ({}) },
]

/** The beginning and end of a text around its repeated part. */
const AROUND: readonly (readonly [begin: string, end: string])[] = [
  ['', ''],
  ['', '!'],
  ['bytes=-', 'x'],
  ['bytes=0-1,', 'x'],
  ['http://h.example/', 'x'],
  ['"', ''],
  ['a;b="', 'x'],
  ['a/b;', '='],
  ['Bearer a', 'b'],
  ['2026-11-20T02:00:00.', 'x'],
]
const REPEATED = [...Array.from('0a/,;"\\=-.:%& \t*([{'), ', ', '/a', ';a="', 'W/"', 'a,', '" ', '0-,']

/** Milliseconds of CPU time for a request, including its client. */
async function cost({ method = 'GET', path, headers }: Field, text: string): Promise<number> {
  const before = process.cpuUsage()
  const { promise, resolve } = Promise.withResolvers<void>()
  const sent = request(`${api.origin}${path(text)}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, ...headers(text) },
  })
  sent.on('response', (reply) => void reply.resume().on('close', resolve))
  sent.on('error', () => resolve())
  sent.end()
  await promise
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

async function least(field: Field, text: string, times: number): Promise<number> {
  let lowest = Number.POSITIVE_INFINITY
  for (let time = 0; time < times; time += 1) lowest = Math.min(lowest, await cost(field, text))
  return lowest
}

/** The cost of a request with a short text varies by as much. */
const NOISE_MS = 15

it.each(FIELDS.map((field) => [field.name, field] as const))('%s', async (_name, field) => {
  for (const [begin, end] of AROUND) {
    for (const part of REPEATED) {
      const text = (length: number) => `${begin}${part.repeat(length / part.length)}${end}`
      if ((await cost(field, text(LONG))) < NOISE_MS) continue
      const [short, long] = [await least(field, text(LONG / 2), 5), await least(field, text(LONG), 5)]
      expect(long, JSON.stringify([begin, part, end])).toBeLessThan(Math.max(NOISE_MS, 3 * short))
    }
  }
})

it('many parameters', async () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => index.toString(36)).join('&')
  const field = query(RANKINGS, (text) => text)
  const [short, long] = [await least(field, names(1500), 5), await least(field, names(3000), 5)]
  expect(long).toBeLessThan(Math.max(NOISE_MS, 3 * short))
})
