/** CONTRACT 3: every error has the envelope, whatever raises it. */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { createApp } from '../../../api/http/app.ts'
import { makeKey } from '../../../api/accounts/credentials.ts'
import { createKeyLimits, createRateLimiter } from '../../../api/accounts/rate-limiter.ts'
import { createKey } from '../../../api/accounts/key-store.ts'
import { CHAT_LIMITS, openChat, type Chat } from '../../../api/chat/service.ts'
import { readSettings } from '../../../api/config.ts'
import { createBodies } from '../../../api/datasets/reply.ts'
import { openSnapshots, type Snapshots } from '../../../api/datasets/snapshots/current.ts'
import { ApiError } from '../../../api/http/errors.ts'
import { Catalogue } from '../../../api/datasets/snapshots/catalogue.ts'
import { HTTP_LIMITS, listen, type HttpServer } from '../../../api/http/server.ts'
import { createMetricsRegistry } from '../../../api/process/metrics.ts'
import { jsonReader } from '../../../api/http/request-body.ts'
import { openStore } from '../../../api/store/open-store.ts'
import { createRequestStore } from '../../../api/store/request-store.ts'
import type { Route } from '../../../api/http/route.ts'
import { cronSchedule } from '../../../api/process/cron-schedule.ts'
import { createReadiness } from '../../../api/readiness.ts'
import { createRoutes } from '../../../api/routes.ts'
import { createViews } from '../../../api/web/views.ts'
import { SYNC_LIMITS } from '../../../api/scim/client.ts'
import { createSyncJobs, LEASE_MS } from '../../../api/scim/jobs.ts'
import type { Store } from '../../../api/store/store.ts'
import { envelopeSchema, memoryLog, sendRaw, until } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
const { log, messages } = memoryLog()
const clock = () => new Date()

// Routes that fail in every possible way, beside the service's own.
const readJson = jsonReader(100)
const readLargeJson = jsonReader(10_000_000)

const FAULTY: readonly Route[] = [
  {
    method: 'GET',
    path: '/test/throws',
    access: 'open',
    handle: () => {
      throw new Error('the secret inside')
    },
  },
  { method: 'GET', path: '/test/rejects', access: 'any', handle: () => Promise.reject(new Error('secret')) },
  {
    method: 'GET',
    path: '/test/refuses',
    access: 'open',
    handle: () => {
      throw new ApiError(502, 'Message: 😀')
    },
  },
  {
    method: 'GET',
    path: '/test/breaks-off',
    access: 'open',
    handle: (_request, reply) => {
      reply.write('half')
      throw new Error('secret')
    },
  },
  {
    method: 'POST',
    path: '/test/body',
    access: 'open',
    handle: async (request, reply) => void reply.json({ received: await readJson(request, reply) }),
  },
  {
    method: 'POST',
    path: '/test/large-body',
    access: 'open',
    handle: async (request, reply) => void (await readLargeJson(request, reply), reply.json({})),
  },
  {
    method: 'GET',
    path: '/test/items/:id',
    access: 'open',
    handle: (_request, reply) => void reply.json({}),
  },
]

let store: Store
let snapshots: Snapshots
let chat: Chat
let server: HttpServer
/** The same, with a short time for a request to arrive. */
let impatient: HttpServer
let routes: readonly Route[]

beforeAll(async () => {
  const dataDir = folders.make()
  const metrics = createMetricsRegistry()
  store = await openStore({ DATA_DIR: dataDir }, clock())
  const catalogue = new Catalogue(dataDir, log)
  snapshots = await openSnapshots({ dataDir, memory: '1GB', catalogue, log })
  const syncJobs = createSyncJobs(
    {
      store,
      clock,
      log,
      environment: {},
      limits: SYNC_LIMITS,
      leaseMs: LEASE_MS,
      syncMs: 60_000,
    },
    { concurrent: 1 },
  )
  const settings = readSettings({ DATA_DIR: dataDir })
  const requestStore = createRequestStore(store, log)
  const limiter = createRateLimiter(requestStore)
  const keyLimits = createKeyLimits(limiter, clock, log)
  chat = await openChat({ settings, keyLimits, clock, log, metrics, environment: {}, limits: CHAT_LIMITS })
  const schedule = cronSchedule('0 2 * * *')
  routes = [
    ...createRoutes({
      store: requestStore,
      limiter,
      snapshots,
      bodies: createBodies(),
      chat,
      syncJobs,
      clock,
      schedule,
      views: createViews({ catalogue, schedule, clock, origin: 'http://127.0.0.1:3000' }),
      publicUrl: undefined,
      port: 0,
      metrics,
      readiness: createReadiness({ store: requestStore, snapshots, chat, unreadyMs: 0 }),
    }),
    ...FAULTY,
  ]
  const app = createApp({ routes, store: requestStore, clock, log, stallMs: HTTP_LIMITS.stallMs, metrics })
  const where = { host: '127.0.0.1', port: 0, log }
  server = await listen(app, { ...where, limits: HTTP_LIMITS })
  impatient = await listen(app, { ...where, limits: { ...HTTP_LIMITS, headersMs: 1000, requestMs: 1500 } })
})

afterAll(async () => {
  await server.close()
  await impatient.close()
  await chat.close()
  await snapshots.close()
  await store.close()
  folders.removeAll()
})

type Envelope = z.infer<typeof envelopeSchema>

/** The envelope of a reply that must be an error with this status. */
function checkEnvelope(status: number, contentType: string | null, text: string): Envelope {
  expect(contentType).toMatch(/^application\/json(;|$)/)
  const envelope = envelopeSchema.parse(JSON.parse(text))
  expect(envelope.error.code).toBe(status)
  return envelope
}

async function fault(status: number, path: string, init: RequestInit = {}) {
  const response = await fetch(`${server.origin}${path}`, init)
  expect(response.status).toBe(status)
  expect(response.headers.get('X-Request-Id')).toMatch(/^[\da-f-]{36}$/)
  expect(response.headers.get('Cache-Control')).toBe('no-store')
  const envelope = checkEnvelope(status, response.headers.get('Content-Type'), await response.text())
  return { envelope, headers: response.headers }
}

async function rawFault(status: number, text: string, { origin } = server): Promise<Envelope> {
  const [head = '', body = ''] = (await sendRaw(origin, text)).split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  expect(head).toMatch(/^X-Request-Id: /m)
  expect(head).toMatch(/^Connection: close/m)
  expect(head).toMatch(new RegExp(`^Content-Length: ${Buffer.byteLength(body)}\r?$`, 'm'))
  return checkEnvelope(status, /^Content-Type: (.*)$/m.exec(head)?.[1] ?? null, body)
}

describe('every route of the table', () => {
  it('rejects other methods with 405 and Allow, and answers OPTIONS', async () => {
    for (const [path, sharing] of Map.groupBy(routes, (route) => route.path)) {
      const methods = sharing.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
      const allow = [...methods, 'OPTIONS'].join(', ')
      for (const other of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(
        (name) => !methods.includes(name),
      )) {
        expect((await fault(405, path, { method: other })).headers.get('Allow')).toBe(allow)
      }
      const options = await fetch(`${server.origin}${path}`, { method: 'OPTIONS' })
      expect(options.status).toBe(204)
      expect(options.headers.get('Allow')).toBe(allow)
    }
  })

  it('answers HEAD like GET, without the body', async () => {
    const inference = await createKey(store, { account: 'test', kind: 'inference', now: clock() })
    const headers = { authorization: `Bearer ${inference}` }
    for (const { path } of routes.filter(
      (route) => route.method === 'GET' && route.path !== '/test/breaks-off',
    )) {
      const [get, head] = await Promise.all(
        ['GET', 'HEAD'].map((method) => fetch(`${server.origin}${path}`, { method, headers })),
      )
      expect(head?.status).toBe(get?.status)
      expect(head?.headers.get('Content-Type')).toBe(get?.headers.get('Content-Type'))
      expect(await head?.text()).toBe('')
    }
  })

  it('rejects missing, malformed and unknown keys with 401 if it needs one', async () => {
    for (const { method, path } of routes.filter(({ access }) => access !== 'open')) {
      for (const authorization of [undefined, 'Basic x', 'Bearer x', `Bearer ${makeKey('inference')}`]) {
        const { headers } = await fault(401, path, {
          method,
          headers: authorization === undefined ? {} : { authorization },
        })
        expect(headers.get('WWW-Authenticate')).toBe('Bearer')
      }
    }
  })

  it('rejects different Authorization headers with 401, and accepts a repeated one', async () => {
    const key = await createKey(store, { account: 'test', kind: 'inference', now: clock() })
    const ask = (...lines: string[]) =>
      sendRaw(
        server.origin,
        `GET /test/rejects HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines.map((line) => `Authorization: Bearer ${line}\r\n`).join('')}\r\n`,
      )
    expect(await ask(key, makeKey('inference'))).toMatch(/^HTTP\/1\.1 401 [^]*several Authorization headers/)
    expect(await ask(key, key)).toMatch(/^HTTP\/1\.1 500 /)
  })

  it('does not exist with an extra slash or in another case', async () => {
    for (const { method, path } of routes.filter((each) => each.path !== '/')) {
      await fault(404, `${path}/`, { method })
      await fault(404, path.toUpperCase(), { method })
    }
  })
})

describe('a fault inside the service', () => {
  it.each(['/test/throws', '/test/rejects'])('%s is a 500 that shows only the request id', async (path) => {
    const key = await createKey(store, { account: 'test', kind: 'inference', now: clock() })
    const { envelope, headers } = await fault(500, path, { headers: { authorization: `Bearer ${key}` } })
    const requestId = headers.get('X-Request-Id') ?? 'none'
    expect(envelope.error.message).toContain(requestId)
    expect(JSON.stringify(envelope)).not.toContain('secret')
    const line = messages().find((entry) => entry['request_id'] === requestId && 'err' in entry)
    expect(JSON.stringify(line)).toContain('secret')
    expect(JSON.stringify(line)).toContain('errors.test.ts')
  })

  it('names the account of a known caller', async () => {
    const key = await createKey(store, { account: 'test', kind: 'inference', now: clock() })
    const { envelope } = await fault(500, '/test/rejects', { headers: { authorization: `Bearer ${key}` } })
    expect(envelope.user_id).toMatch(/^[\da-f-]{36}$/)
  })

  it('passes on an ApiError unchanged', async () => {
    expect((await fault(502, '/test/refuses')).envelope.error.message).toBe('Message: 😀')
  })

  it('breaks the connection if half a reply was sent', async () => {
    const response = fetch(`${server.origin}/test/breaks-off`).then((reply) => reply.text())
    await expect(response).rejects.toThrow()
  })
})

describe('a request that cannot be served', () => {
  it.each(['/index.html', '/api/v1', '/api/v2/status', '/nope', '//', '/api/v1/datasets'])(
    '404 of %s',
    async (path) => {
      const { envelope } = await fault(404, path)
      expect(envelope.error.message).toContain(`No such path: ${path}; /docs`)
    },
  )

  it('400 for a path that is not encoded correctly', async () => {
    await fault(400, '/test/items/%E0%A4%A')
    await fault(400, '/%')
  })

  it('400 for malformed JSON', async () => {
    await fault(400, '/test/body', {
      method: 'POST',
      body: '{"a":',
      headers: { 'Content-Type': 'application/json' },
    })
  })

  it('400 for no body, and for one without a JSON content type; null is JSON', async () => {
    const send = (type: string, body: string) => ({ method: 'POST', body, headers: { 'Content-Type': type } })
    for (const init of [{ method: 'POST' }, send('text/plain', '{}')]) {
      const { envelope } = await fault(400, '/test/body', init)
      expect(envelope.error.message).toContain('"Content-Type: application/json"')
    }
    const response = await fetch(`${server.origin}/test/body`, send('application/json', 'null'))
    expect(await response.json()).toEqual({ received: null })
  })

  it('413 for a body that is too large', async () => {
    await fault(413, '/test/body', {
      method: 'POST',
      body: JSON.stringify('x'.repeat(200)),
      headers: { 'Content-Type': 'application/json' },
    })
  })

  const HEAD = 'POST /test/body HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'

  it.each([
    ['its length', 'Content-Length: 400000000\r\n\r\n'],
    ['its length, without the word to go on', 'Content-Length: 400000000\r\nExpect: 100-continue\r\n\r\n'],
    ['its first bytes', `Transfer-Encoding: chunked\r\n\r\nc8\r\n"${'x'.repeat(199)}\r\n`],
  ])('413 for a body that is too large by %s, and closes the connection', async (_what, rest) => {
    const answer = await sendRaw(server.origin, HEAD + rest)
    expect(answer).toMatch(/^HTTP\/1\.1 413 [^]*at most 100 bytes/)
  })

  it('reads nothing of a body on a path without one', async () => {
    const answer = await sendRaw(
      server.origin,
      'POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 400000000\r\nExpect: 100-continue\r\n\r\n',
    )
    expect(answer).toMatch(/^HTTP\/1\.1 404 /)
    expect(answer).not.toContain('100 Continue')
  })

  it('answers Expect: 100-continue with 100, and reads the body', async () => {
    const head = `${HEAD}Content-Length: 7\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`
    expect(await sendRaw(server.origin, `${head}{"a":1}`)).toMatch(
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /,
    )
  })

  it('413 for a body with too many values', async () => {
    const many = await fault(413, '/test/large-body', {
      method: 'POST',
      body: `[${'0,'.repeat(300_000)}0]`,
      headers: { 'Content-Type': 'application/json' },
    })
    expect(many.envelope.error.message).toContain('at most 250000')
  })

  it('400 for a damaged body', async () => {
    const { envelope } = await fault(400, '/test/body', {
      method: 'POST',
      body: gzipSync('{"a":1}').subarray(0, 15),
      headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
    })
    expect(envelope.error.message).toContain('or not in the coding')
  })

  it('415 for an unknown coding or charset', async () => {
    for (const headers of [
      { 'Content-Encoding': 'rot13', 'Content-Type': 'application/json' },
      { 'Content-Type': 'application/json; charset=klingon' },
    ]) {
      await fault(415, '/test/body', { method: 'POST', body: '{}', headers })
    }
  })

  it('accepts a body within the limit', async () => {
    const response = await fetch(`${server.origin}/test/body`, {
      method: 'POST',
      body: '{"a":1}',
      headers: { 'Content-Type': 'application/json' },
    })
    expect(await response.json()).toEqual({ received: { a: 1 } })
  })
})

describe('an address that does not begin with its path', () => {
  it.each([
    ['http://example.org/healthz', 200],
    ['HTTP://example.org/healthz', 200],
    ['http://example.org/nope?x=1', 404],
    ['http://[::1/healthz', 200],
    ['http://a:b/nope', 404],
    ['x://y?z', 503],
    ['x://y?z=/healthz', 400],
    ['*', 404],
  ])('is answered by the application where it is %s', async (target, status) => {
    const answer = await sendRaw(
      server.origin,
      `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    )
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(head).toMatch(/\r\nX-Request-Id: /)
    if (status !== 200) expect(envelopeSchema.parse(JSON.parse(body)).error.code).toBe(status)
  })
})

describe('a fault on the socket', () => {
  it.each([
    ['not HTTP', 'hello\r\n\r\n'],
    ['an unknown method', 'BREW /status HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a header without colon', 'GET / HTTP/1.1\r\nHost: x\r\nbroken\r\n\r\n'],
    [
      'two contradicting lengths',
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    ],
    ['a tunnel', 'CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['no Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n'],
    ['two Host lines', 'GET /healthz HTTP/1.1\r\nHost: x\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ['a Host with a path', 'GET /healthz HTTP/1.1\r\nHost: x/y\r\nConnection: close\r\n\r\n'],
    ['a Host with a user', 'GET /healthz HTTP/1.1\r\nHost: a@x\r\nConnection: close\r\n\r\n'],
    ['two names in one Host', 'GET /healthz HTTP/1.1\r\nHost: x, y z\r\nConnection: close\r\n\r\n'],
    ['an empty Host', 'GET /healthz HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n'],
    ['a port that is none', 'GET /healthz HTTP/1.1\r\nHost: x:y\r\nConnection: close\r\n\r\n'],
  ])('400 of %s', async (_what, text) => {
    await rawFault(400, text)
  })

  it('431 for headers that are too large', async () => {
    await rawFault(431, `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`)
    await rawFault(431, `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`)
  })

  it('408 for headers or a body that do not arrive', async () => {
    await rawFault(408, 'GET / HTTP/1.1\r\nHost: x\r\n', impatient)
    await rawFault(
      408,
      'POST /test/body HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{',
      impatient,
    )
  })

  it.each(['Expect: miracles', 'Upgrade: h2c'])('ignores the upgrade "%s"', async (header) => {
    const answer = await sendRaw(
      server.origin,
      `GET /healthz HTTP/1.1\r\nHost: x\r\n${header}\r\nConnection: close\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('comes after the reply to the previous request', async () => {
    const answer = await sendRaw(server.origin, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nrubbish\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200 [^]*\{"status":"ok"\}HTTP\/1\.1 400 [^]*"code":400/)
  })

  it('does not come for a request with an upgrade, which is ignored and closes the connection', async () => {
    const wish = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
    const answer = await sendRaw(server.origin, `GET /nope HTTP/1.1\r\nHost: x\r\n\r\n${wish}`)
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 404', 'HTTP/1.1 200'])
    expect(answer).toMatch(/HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n/)
  })

  it('sends no second reply if the request was answered before its end', async () => {
    const answer = await sendRaw(
      impatient.origin,
      'POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{',
    )
    expect(answer).toMatch(/^HTTP\/1\.1 404 /)
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  })

  it('is logged', async () => {
    await rawFault(400, 'hello\r\n\r\n')
    await until(() => messages().some((line) => line['msg'] === 'request refused' && line['status'] === 400))
  })
})

describe('a page of another origin', () => {
  it.each([
    '/api/v1/status',
    '/api/v1/status/',
    '/api/v1/datasets/app-rankings',
    '/api/v1/%',
    '/api/v1/chat/completions',
  ])('reads any reply of %s, with the reason', async (path) => {
    const { headers } = await fetch(`${server.origin}${path}`)
    expect(headers.get('Access-Control-Allow-Origin')).toBe('*')
    expect(headers.get('Access-Control-Expose-Headers')).toContain('X-Request-Id')
  })

  it('reads that its address is too long', async () => {
    const { status, headers } = await fetch(`${server.origin}/api/v1/status?${'x'.repeat(20_000)}`)
    expect(status).toBe(431)
    expect(headers.get('Access-Control-Allow-Origin')).toBe('*')
  })

  it('may send a key to an unknown path of the API, to read the 404', async () => {
    const ask = (path: string) =>
      fetch(`${server.origin}${path}`, {
        method: 'OPTIONS',
        headers: {
          'Access-Control-Request-Method': 'GET',
          'Access-Control-Request-Headers': 'authorization',
        },
      })
    const preflight = await ask('/api/v1/datasets/app-rankings/')
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('Access-Control-Allow-Headers')).toContain('Authorization')
    expect((await ask('/nope')).status).toBe(404)
  })

  it('reads nothing outside the API', async () => {
    for (const path of ['/metrics', '/healthz', '/nope']) {
      const { headers } = await fetch(`${server.origin}${path}`)
      expect(headers.get('Access-Control-Allow-Origin')).toBeNull()
    }
  })
})

describe('security headers', () => {
  it('are on every reply, and nothing names the server software', async () => {
    for (const path of ['/healthz', '/nope']) {
      const { headers } = await fetch(`${server.origin}${path}`)
      expect(headers.get('X-Content-Type-Options')).toBe('nosniff')
      expect(headers.get('Content-Security-Policy')).toContain("default-src 'none'")
      expect(headers.get('X-Powered-By')).toBeNull()
      expect(headers.get('Strict-Transport-Security')).toBeNull()
    }
  })
})
