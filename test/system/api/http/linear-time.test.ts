/** CONTRACT 3: no field of a request costs more than linear time: even the largest text is read at once. */
import { request } from 'node:http'
import { beforeAll, expect, it } from 'vitest'
import { startApi, type Api } from '../../../support/api.ts'
import { makeFolder } from '../../../support/folders.ts'
import { oneApp, publishSnapshot } from '../../../support/pipeline/snapshot.ts'

let api: Api
let key = ''

beforeAll(async () => {
  const dataDir = makeFolder()
  await publishSnapshot(dataDir, oneApp())
  api = await startApi(dataDir)
  key = await api.makeKey()
})

const RANKINGS = '/api/v1/datasets/app-rankings'
const FILE = `${RANKINGS}/snapshots/20261120T020000Z/apps.csv`

/** Fields that the service reads, by path: headers, and parameters. */
const HEADERS = {
  [RANKINGS]: 'Accept Accept-Encoding If-None-Match If-Modified-Since Authorization Origin Cookie',
  [FILE]: 'Range If-Range If-Match If-None-Match If-Modified-Since If-Unmodified-Since Cache-Control',
  '/feed.xml': 'Accept-Encoding If-None-Match Host X-Forwarded-For',
  '/no-such-page': 'Accept',
  '/api/v1/chat/completions':
    'HTTP-Referer X-Title X-Any-Categories Content-Type Content-Encoding X-Router-Metadata',
}
const PARAMETERS = ['limit', 'as_of', 'start_date', 'category', 'format'].map(
  (name) => `${RANKINGS}?${name}=`,
)
/** What a text is appended to. */
const ADDRESSES = [...PARAMETERS, `${RANKINGS}?`, '/?as_of=', '/?q=', '/api/v1/', FILE]

const FIELDS = [
  ...Object.entries(HEADERS).flatMap(([path, names]) => names.split(' ').map((name) => ({ path, name }))),
  ...ADDRESSES.map((path) => ({ path, name: undefined })),
]

/** The largest that fits beside the other headers. */
const LENGTH = 15_000
/** The beginning and end of a text around its repeated part. */
const AROUND = '…|…!|bytes=-…x|bytes=0-1,…x|http://h.example/…x|"…|a;b="…x|a/b;…=|Bearer a…b'.split('|')
const REPEATED = [...Array.from('0a/,;"\\=-.:%& \t*([{&'), ', ', '/a', ';a="', 'W/"', 'a,', '" ', '0-,']
const TEXTS = AROUND.flatMap((around) =>
  REPEATED.map((part) => around.replace('…', () => part.repeat(LENGTH / part.length))),
)

/** Milliseconds of processor time for a request, including its client. */
async function cost({ path, name }: (typeof FIELDS)[number], text: string): Promise<number> {
  const before = process.cpuUsage()
  const { promise, resolve } = Promise.withResolvers<void>()
  const address = name === undefined ? `${path}${encodeURI(text).slice(0, LENGTH)}` : path
  const headers = { Authorization: `Bearer ${key}`, ...(name !== undefined && { [name]: text }) }
  const method = path.endsWith('/completions') ? 'POST' : 'GET'
  const sent = request(`${api.origin}${address}`, { method, headers })
  sent.on('response', (reply) => void reply.resume().on('close', resolve))
  sent.on('error', () => resolve())
  sent.end()
  await promise
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** Quadratic time takes hundreds of milliseconds for such a text; a request takes one or two. */
const MOST_MS = 60

it.each(FIELDS.map((field) => [`${field.name ?? 'a text'} of ${field.path}`, field] as const))(
  '%s',
  async (_name, field) => {
    for (const text of TEXTS) {
      let ms = await cost(field, text)
      for (let again = 0; ms > MOST_MS && again < 5; again += 1) ms = Math.min(ms, await cost(field, text))
      expect(ms, text.slice(0, 50)).toBeLessThan(MOST_MS)
    }
  },
)
