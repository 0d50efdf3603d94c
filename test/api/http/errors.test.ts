/** CONTRACT 3: every error has the envelope, whatever raises it. */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Registry } from 'prom-client'
import { makeKey } from '../../../api/accounts/credentials.ts'
import { createApp } from '../../../api/http/app.ts'
import { ApiError } from '../../../api/http/errors.ts'
import type { Route } from '../../../api/http/route.ts'
import { HTTP_LIMITS, listen, type HttpServer } from '../../../api/http/server.ts'
import { envelopeSchema, memoryLog, sendRaw, startApi, until, type Api } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
const { log, messages } = memoryLog()

let api: Api
/** The same, with a short time for a request to arrive. */
let impatient: Api
/** Routes that fail in every possible way. */
let faulty: HttpServer
let key: string

function failing(path: string, handle: Route['handle']): Route {
  return { method: 'GET', path, access: 'open', handle }
}

const FAULTY = [
  failing('/throws', () => {
    throw new Error('the secret inside')
  }),
  failing('/rejects', () => Promise.reject(new Error('secret'))),
  failing('/refuses', () => {
    throw new ApiError(502, 'Message: 😀')
  }),
  failing('/breaks-off', (_request, reply) => {
    reply.write('half')
    throw new Error('secret')
  }),
]

beforeAll(async () => {
  const environment = { CHAT_BODY_MIB: '2' }
  api = await startApi(folders.make(), { environment })
  impatient = await startApi(folders.make(), { limits: { headersMs: 1000, requestMs: 1500 } })
  key = await api.makeKey()
  const app = createApp({
    routes: FAULTY,
    store: { query: () => Promise.reject(new Error('there is no store')) },
    clock: () => new Date(),
    log,
    stallMs: 60_000,
    metrics: new Registry(),
  })
  faulty = await listen(app, { host: '127.0.0.1', port: 0, log, limits: HTTP_LIMITS })
})

afterAll(async () => {
  await Promise.all([api.close(), impatient.close(), faulty.close()])
  folders.removeAll()
})

/** The envelope of a reply that must be an error with this status. */
function checkEnvelope(status: number, contentType: string | null, text: string) {
  expect(contentType).toMatch(/^application\/json(;|$)/)
  const envelope = envelopeSchema.parse(JSON.parse(text))
  expect(envelope.error.code).toBe(status)
  return envelope
}

async function fault(status: number, path: string, init: RequestInit = {}, origin = api.origin) {
  const response = await fetch(`${origin}${path}`, init)
  expect(response.status).toBe(status)
  expect(response.headers.get('X-Request-Id')).toMatch(/^[\da-f-]{36}$/)
  expect(response.headers.get('Cache-Control')).toBe('no-store')
  const envelope = checkEnvelope(status, response.headers.get('Content-Type'), await response.text())
  return { ...envelope, message: envelope.error.message, headers: response.headers }
}

/** The message of a raw reply, which closes its connection. */
async function rawFault(status: number, text: string, { origin } = api): Promise<string> {
  const [head = '', body = ''] = (await sendRaw(origin, text)).split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  expect(head).toMatch(/^X-Request-Id: /m)
  expect(head).toMatch(/^Connection: close/m)
  expect(head).toMatch(new RegExp(`^Content-Length: ${Buffer.byteLength(body)}\r?$`, 'm'))
  return checkEnvelope(status, /^Content-Type: (.*)$/m.exec(head)?.[1] ?? null, body).error.message
}

/** The status of each reply to these bytes, until the server closes the connection. */
async function rawStatuses(text: string): Promise<string[]> {
  return (await sendRaw(api.origin, text)).match(/(?<=HTTP\/1\.1 )\d+/g) ?? []
}

describe('every route of the table', () => {
  it('rejects other methods with 405 and Allow, and answers OPTIONS', async () => {
    for (const [path, sharing] of Map.groupBy(api.routes, (route) => route.path)) {
      const methods = sharing.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
      const allow = [...methods, 'OPTIONS'].join(', ')
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(
        (each) => !methods.includes(each),
      )) {
        expect((await fault(405, path, { method })).headers.get('Allow')).toBe(allow)
      }
      const options = await fetch(`${api.origin}${path}`, { method: 'OPTIONS' })
      expect([options.status, options.headers.get('Allow')]).toEqual([204, allow])
    }
  })

  it('answers HEAD like GET, without the body', async () => {
    const headers = { authorization: `Bearer ${key}` }
    for (const { path } of api.routes.filter(({ method }) => method === 'GET')) {
      const [get, head] = await Promise.all(
        ['GET', 'HEAD'].map((method) => fetch(`${api.origin}${path}`, { method, headers })),
      )
      expect(head?.status).toBe(get?.status)
      expect(head?.headers.get('Content-Type')).toBe(get?.headers.get('Content-Type'))
      expect(await head?.text()).toBe('')
    }
  })

  it('rejects missing, malformed and unknown keys with 401 if it needs one', async () => {
    for (const { method, path } of api.routes.filter(({ access }) => access !== 'open')) {
      for (const authorization of ['', 'Basic x', 'Bearer x', `Bearer ${makeKey('inference')}`]) {
        const headers = authorization === '' ? {} : { authorization }
        expect((await fault(401, path, { method, headers })).headers.get('WWW-Authenticate')).toBe('Bearer')
      }
    }
  })

  it('does not exist with an extra slash or in another case', async () => {
    for (const { method, path } of api.routes.filter((each) => each.path !== '/')) {
      await fault(404, `${path}/`, { method })
      await fault(404, path.toUpperCase(), { method })
    }
  })
})

it('different Authorization headers are 401, a repeated one is taken', async () => {
  const lines = (...keys: string[]) => keys.map((each) => `Authorization: Bearer ${each}\r\n`).join('')
  const ask = (...keys: string[]) =>
    sendRaw(
      api.origin,
      `GET /api/v1/scim/groups HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines(...keys)}\r\n`,
    )
  const manager = await api.makeKey('management')
  expect(await ask(manager, key)).toMatch(/^HTTP\/1\.1 401 [^]*several Authorization headers/)
  expect(await ask(manager, manager)).toMatch(/^HTTP\/1\.1 200 /)
})

it('an error names the account of a known caller', async () => {
  const headers = { authorization: `Bearer ${key}` }
  const { user_id: account } = await fault(400, '/api/v1/datasets/app-rankings?limit=x', { headers })
  expect(account).toMatch(/^[\da-f-]{36}$/)
})

describe('a fault inside the service', () => {
  it.each(['/throws', '/rejects'])('%s is a 500 that shows only the request id', async (path) => {
    const envelope = await fault(500, path, {}, faulty.origin)
    const requestId = envelope.headers.get('X-Request-Id') ?? 'none'
    expect(envelope.message).toContain(requestId)
    expect(JSON.stringify(envelope)).not.toContain('secret')
    const line = messages().find((entry) => entry['request_id'] === requestId && 'err' in entry)
    expect(JSON.stringify(line)).toMatch(/secret[^]*errors\.test\.ts/)
  })

  it('that is an ApiError is passed on unchanged', async () => {
    expect((await fault(502, '/refuses', {}, faulty.origin)).message).toBe('Message: 😀')
  })

  it('after half a reply breaks the connection', async () => {
    const response = fetch(`${faulty.origin}/breaks-off`).then((reply) => reply.text())
    await expect(response).rejects.toThrow()
  })
})

describe('a request that cannot be served', () => {
  it.each(['/index.html', '/api/v1', '/api/v2/status', '/nope', '//', '/api/v1/datasets'])(
    '404 of %s',
    async (path) => {
      expect((await fault(404, path)).message).toContain(`No such path: ${path}; /docs`)
    },
  )

  it.each([
    ['/' + 'a'.repeat(99), ''],
    ['/' + 'a'.repeat(100), '…'],
    ['/' + 'a'.repeat(99) + 'bbb', '…'],
  ])('404 of %s, with at most a hundred characters of it', async (path, end) => {
    expect((await fault(404, path)).message).toBe(
      `No such path: ${path.slice(0, 100)}${end}; /docs lists all paths`,
    )
  })

  it.each(['/apps/%E0%A4%A', '/%'])('400 for %s, which is not encoded correctly', async (path) => {
    await fault(400, path)
  })
})

const CHAT = '/api/v1/chat/completions'
const JSON_TYPE = { 'Content-Type': 'application/json' }

describe('a body', () => {
  const packed = { ...JSON_TYPE, 'Content-Encoding': 'gzip' }
  const rotated = { ...JSON_TYPE, 'Content-Encoding': 'rot13' }
  const klingon = { 'Content-Type': 'application/json; charset=klingon' }

  it.each([
    [400, 'not valid JSON', { body: '{"a":', headers: JSON_TYPE }],
    [400, '"Content-Type: application/json"', { headers: {} }],
    [400, '"Content-Type: application/json"', { body: '{}', headers: { 'Content-Type': 'text/plain' } }],
    [400, 'The body is empty', { body: '', headers: JSON_TYPE }],
    [400, 'at most 500 levels', { body: '['.repeat(501), headers: JSON_TYPE }],
    [400, 'or not in the coding', { body: gzipSync('{"a":1}').subarray(0, 15), headers: packed }],
    [413, 'at most 2097152 bytes', { body: JSON.stringify('x'.repeat(3_000_000)), headers: JSON_TYPE }],
    [413, 'at most 2097152 bytes', { body: gzipSync(Buffer.alloc(3_000_000)), headers: packed }],
    [413, 'at most 250000 are allowed', { body: `[${'0,'.repeat(300_000)}0]`, headers: JSON_TYPE }],
    [415, 'rot13', { body: '{}', headers: rotated }],
    [415, 'KLINGON', { body: '{}', headers: klingon }],
  ])('is %i with "%s"', async (status, part, init) => {
    const headers = { ...init.headers, authorization: `Bearer ${key}` }
    expect((await fault(status, CHAT, { ...init, method: 'POST', headers })).message).toContain(part)
  })

  /** A request with the head of a body, on a service that gives its rest little time. */
  async function begin(rest: string, path = CHAT): Promise<string> {
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await impatient.makeKey()}\r\n`
    return await sendRaw(impatient.origin, `${head}Content-Type: application/json\r\n${rest}`)
  }

  it.each([
    ['its length', 'Content-Length: 400000000\r\n\r\n'],
    ['its length, without the word to go on', 'Content-Length: 400000000\r\nExpect: 100-continue\r\n\r\n'],
    ['its bytes', `Transfer-Encoding: chunked\r\n\r\n2100000\r\n${'x'.repeat(0x2100000)}\r\n`],
  ])('that is too large by %s is 413 before its end', async (_what, rest) => {
    const answer = await begin(rest)
    expect(answer).toMatch(/^HTTP\/1\.1 413 [^]*at most 33554432 bytes/)
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  })

  it('with Expect: 100-continue is asked for where it is read, and not elsewhere', async () => {
    const expected = 'Content-Length: 7\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n'
    expect(await begin(`${expected}{"a":1}`)).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 400 /)
    expect(await begin(expected, '/nope')).toMatch(/^HTTP\/1\.1 404 (?![^]*100 Continue)/)
  })

  it('that does not arrive is 408, or nothing if its request was answered', async () => {
    const answer = await begin('Content-Length: 50\r\n\r\n{')
    expect(answer).toMatch(/^HTTP\/1\.1 408 [^]*"code":408/)
    expect((await begin('Content-Length: 50\r\n\r\n{', '/nope')).match(/HTTP\/1\.1 \d+/g)).toEqual([
      'HTTP/1.1 404',
    ])
  })
})

it.each([
  ['http://example.org/healthz', 200],
  ['HTTP://example.org/healthz', 200],
  ['http://example.org/nope?x=1', 404],
  ['http://[::1/healthz', 200],
  ['http://a:b/nope', 404],
  ['x://y?z', 503],
  ['x://y?z=/healthz', 400],
  ['*', 404],
])(
  'the address %s, which does not begin with its path, is answered by the application',
  async (target, status) => {
    const request = `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    const [head = '', body = ''] = (await sendRaw(api.origin, request)).split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*\r\nX-Request-Id: `))
    if (status !== 200) expect(envelopeSchema.parse(JSON.parse(body)).error.code).toBe(status)
  },
)

describe('a fault on the socket', () => {
  const healthz = (lines: string) => `GET /healthz HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`

  it.each([
    ['not HTTP', 'hello\r\n\r\n'],
    ['an unknown method', 'BREW /status HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a header without colon', 'GET / HTTP/1.1\r\nHost: x\r\nbroken\r\n\r\n'],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
    ['a tunnel', 'CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['no Host', healthz('')],
    ['two Host lines', healthz('Host: x\r\nHost: x\r\n')],
    ['a Host with a path', healthz('Host: x/y\r\n')],
    ['a Host with a user', healthz('Host: a@x\r\n')],
    ['two names in one Host', healthz('Host: x, y z\r\n')],
    ['an empty Host', healthz('Host:\r\n')],
    ['a port that is none', healthz('Host: x:y\r\n')],
  ])('400 of %s', async (_what, text) => {
    await rawFault(400, text)
  })

  it('431 for headers that are too large, 408 for those that do not arrive', async () => {
    await rawFault(431, `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`)
    await rawFault(431, `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await rawFault(408, 'GET / HTTP/1.1\r\nHost: x\r\n', impatient)
  })

  it.each(['Expect: miracles', 'Upgrade: h2c', 'Connection: Upgrade\r\nUpgrade: websocket'])(
    'is not the upgrade "%s", which is ignored',
    async (header) => {
      expect(await rawStatuses(healthz(`Host: x\r\n${header}\r\n`))).toEqual(['200'])
    },
  )

  it('is logged', async () => {
    const isRefusal = (line: Record<string, unknown>) =>
      line['msg'] === 'request refused' && line['status'] === 400
    await rawFault(400, 'hello\r\n\r\n')
    await until(() => api.messages().some(isRefusal))
  })
})

describe('a page of another origin', () => {
  it.each([
    '/api/v1/status',
    '/api/v1/status/',
    '/api/v1/datasets/app-rankings',
    '/api/v1/%',
    CHAT,
    `/api/v1/status?${'x'.repeat(20_000)}`,
  ])('reads any reply of %.40s, with the reason', async (path) => {
    const { headers } = await fetch(`${api.origin}${path}`)
    expect(headers.get('Access-Control-Allow-Origin')).toBe('*')
    expect(headers.get('Access-Control-Expose-Headers')).toContain('*')
  })

  it('may send a key to an unknown path of the API, to read the 404', async () => {
    const ask = (path: string) =>
      fetch(`${api.origin}${path}`, {
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

  it.each(['/metrics', '/healthz', '/nope'])('reads nothing of %s, outside the API', async (path) => {
    const { headers } = await fetch(`${api.origin}${path}`)
    expect(headers.get('Access-Control-Allow-Origin')).toBeNull()
  })
})

it.each(['/healthz', '/nope'])(
  '%s has security headers, and nothing names the server software',
  async (path) => {
    const { headers } = await fetch(`${api.origin}${path}`)
    expect(headers.get('X-Content-Type-Options')).toBe('nosniff')
    expect(headers.get('Content-Security-Policy')).toContain("default-src 'none'")
    expect(headers.get('X-Powered-By')).toBeNull()
    expect(headers.get('Strict-Transport-Security')).toBeNull()
  },
)
