/** CONTRACT 3 and 4.6: every error has the envelope, whatever raises it; pages of other origins may read it; the log has a line of each reply. */
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  UNKNOWN_KEY,
  answerWith,
  envelopeSchema,
  sendRaw,
  startApi,
  until,
  type Api,
} from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'

let api: Api
/** The same, with a short time for a request to arrive. */
let impatient: Api
let key: string

beforeAll(async () => {
  const environment = { CHAT_BODY_MIB: '2' }
  api = await startApi(makeFolder(), { environment })
  impatient = await startApi(makeFolder(), { environment, limits: { requestMs: 1000 } })
  key = await api.makeKey()
})

/** The envelope of a reply that must be an error with this status. */
function checkEnvelope(status: number, contentType: string | null | undefined, text: string) {
  expect(contentType).toMatch(/^application\/json(;|$)/)
  const { error } = envelopeSchema.parse(JSON.parse(text))
  expect(error.code).toBe(status)
  return error.message
}

async function fault(status: number, path: string, init: RequestInit = {}) {
  const response = await fetch(`${api.origin}${path}`, init)
  expect(response.status).toBe(status)
  expect(response.headers.get('X-Request-Id')).toMatch(/^[\da-f-]{36}$/)
  expect(response.headers.get('Cache-Control')).toBe('no-store')
  const text = await response.text()
  const message = checkEnvelope(status, response.headers.get('Content-Type'), text)
  return { message, text, headers: response.headers }
}

/** The statuses and the last body of the replies to these bytes, until the server closes the connection. */
async function raw(text: string, { origin } = api) {
  const replies = await sendRaw(origin, text)
  const statuses = replies.match(/(?<=HTTP\/1\.1 )\d+/g)?.map(Number) ?? []
  const [head = '', body = ''] = replies.slice(replies.lastIndexOf('HTTP/1.1')).split('\r\n\r\n')
  expect(head).toMatch(/^X-Request-Id: [\da-f-]{36}/m)
  expect(head).toMatch(/^Connection: close/m)
  for (const line of ["Content-Security-Policy: default-src 'none'", 'X-Content-Type-Options: nosniff'])
    expect(head).toContain(`${line}\r\n`)
  expect(head).toMatch(new RegExp(`^Content-Length: ${Buffer.byteLength(body)}\r?$`, 'm'))
  const status = statuses.at(-1) ?? 0
  if (status >= 400) checkEnvelope(status, /^Content-Type: (.*)$/m.exec(head)?.[1], body)
  return { statuses, body }
}

describe('every route of the table', () => {
  it('rejects other methods with 405 and Allow, and answers OPTIONS', async () => {
    for (const [path, sharing] of Map.groupBy(api.routes, (route) => route.path)) {
      const methods = sharing.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
      const allow = [...methods, 'OPTIONS'].join(', ')
      for (const method of new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']).difference(new Set(methods)))
        expect((await fault(405, path, { method })).headers.get('Allow')).toBe(allow)
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

  it('rejects missing, malformed and unknown keys with 401 if it needs one, and in directory sync and chat keys of the other kind', async () => {
    const otherKind = { scim: key, chat: await api.makeKey('management') }
    for (const { method, path, access } of api.routes) {
      const [, part] = /^\/api\/v1\/(scim|chat)\//.exec(path) ?? []
      if (access === 'open' && part === undefined) continue
      const keys = part === 'scim' || part === 'chat' ? [UNKNOWN_KEY, otherKind[part]] : [UNKNOWN_KEY]
      for (const authorization of ['', 'Basic x', 'Bearer x', ...keys.map((each) => `Bearer ${each}`)]) {
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

describe('a fault inside the service', () => {
  it('is a 500 that shows only the request id, which the log has beside the fault', async () => {
    answerWith(api, '/docs', () => Promise.reject(new Error('the secret inside')))
    const { message, text, headers } = await fault(500, '/docs')
    const requestId = headers.get('X-Request-Id') ?? 'none'
    expect(message).toContain(requestId)
    expect(text).not.toContain('secret')
    const line = api.messages().find((entry) => entry['request_id'] === requestId && 'err' in entry)
    expect(JSON.stringify(line)).toMatch(/secret[^]*errors\.test\.ts/)
  })

  it('after half a reply breaks the connection', async () => {
    answerWith(api, '/docs', (_request, reply) => {
      reply.write('half')
      throw new Error('secret')
    })
    const response = fetch(`${api.origin}/docs`).then((reply) => reply.text())
    await expect(response).rejects.toThrow()
  })
})

describe('an unknown path', () => {
  const long = `/${'a'.repeat(99)}`
  it.each(['/index.html', '/api/v1', '/api/v2/status', '//', '/api/v1/datasets', long, `${long}a`])(
    '%s is 404, and shown with at most a hundred characters',
    async (path) => {
      const shown = path.length > 100 ? `${path.slice(0, 100)}…` : path
      expect((await fault(404, path)).message).toBe(`No such path: ${shown}; /docs lists all paths`)
    },
  )

  it('that has a parameter which is not encoded correctly, is 400', async () => {
    const { message } = await fault(400, '/apps/%E0%A4%A')
    expect(message).toContain('%E0%A4%A')
  })
})

const CHAT = '/api/v1/chat/completions'

describe('a body', () => {
  const packed = { 'Content-Encoding': 'gzip' }

  it.each<[number, string, string | Uint8Array<ArrayBuffer>, object?]>([
    [400, 'not valid JSON', '{"a":', { 'Content-Type': 'application/json' }],
    // It is read whatever its type, and without one: requests.post(url, data=json.dumps(…)) names none.
    [400, 'Invalid chat request', Buffer.from('{}')],
    [400, 'Invalid chat request', '{}', { 'Content-Type': 'text/plain; charset=latin1' }],
    [400, 'not in UTF-8', Buffer.from('{"model":"caf\u00e9"}', 'latin1')],
    [400, 'The body is empty', ''],
    [400, 'at most 500 levels', '['.repeat(501)],
    [400, 'not in the coding that its headers name', gzipSync('{"a":1}').subarray(0, 15), packed],
    [413, 'at most 2097152 bytes', JSON.stringify('x'.repeat(3_000_000))],
    [413, 'at most 2097152 bytes', gzipSync(Buffer.alloc(3_000_000)), packed],
    [413, 'at most 250000 are allowed', `[${'0,'.repeat(300_000)}0]`],
    [415, 'rot13', '{}', { 'Content-Encoding': 'rot13' }],
  ])('is %i with "%s"', async (status, part, body, given = {}) => {
    const headers = { ...given, authorization: `Bearer ${key}` }
    const { message, text } = await fault(status, CHAT, { method: 'POST', headers, body })
    expect(message).toContain(part)
    expect(text).toContain(`"error_type":"${status === 413 ? 'payload_too_large' : 'invalid_request'}"`)
  })

  /** The replies to a request with the head of a body, on a service that gives its rest little time. */
  async function begin(rest: string, target = `${CHAT} HTTP/1.1`): Promise<string> {
    const head = `POST ${target}\r\nHost: x\r\nAuthorization: Bearer ${await impatient.makeKey()}\r\n`
    return await sendRaw(impatient.origin, `${head}Content-Type: application/json\r\n${rest}`)
  }
  const CHUNKED = `Transfer-Encoding: chunked\r\n\r\n210000\r\n${'x'.repeat(0x210000)}\r\n`
  const LATE = 'Content-Length: 50\r\n\r\n{'
  const TOLD = 'Content-Length: 7\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n'

  it.each([
    ['too large by its length, is refused before its end', 'Content-Length: 400000000\r\n\r\n', '413'],
    ['too large by its bytes, is refused before its end', CHUNKED, '413'],
    ['too large, is not asked for', 'Content-Length: 400000000\r\nExpect: 100-continue\r\n\r\n', '413'],
    ['expected, is asked for where it is read', `${TOLD}{"a":1}`, '100 400'],
    ['expected, is not asked for elsewhere', TOLD, '404', '/nope HTTP/1.1'],
    ['expected by HTTP/1.0, which knows no 100, is read', `${TOLD}{"a":1}`, '400', `${CHAT} HTTP/1.0`],
    ['that does not arrive, is 408', LATE, '408'],
    ['that does not arrive, is no second reply to an answered request', LATE, '404', '/nope HTTP/1.1'],
  ])('%s', async (_what, rest, statuses, target = `${CHAT} HTTP/1.1`) => {
    expect((await begin(rest, target)).match(/(?<=HTTP\/1\.1 )\d+/g)?.join(' ')).toBe(statuses)
  })
})

describe('raw bytes', () => {
  const target = (address: string) => `GET ${address} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
  const healthz = (lines: string) => `GET /healthz HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`

  it.each([
    // Addresses that do not begin with their path are answered by the application.
    [200, target('http://example.org/healthz')],
    [200, target('HTTP://example.org/healthz')],
    [404, target('http://example.org/nope?x=1')],
    [200, target('http://[::1/healthz')],
    [404, target('http://a:b/nope')],
    [503, target('x://y?z')],
    [400, target('x://y?z=/healthz')],
    [404, target('*')],
    [400, 'hello\r\n\r\n'],
    [400, 'BREW /status HTTP/1.1\r\nHost: x\r\n\r\n'],
    [400, 'GET / HTTP/1.1\r\nHost: x\r\nbroken\r\n\r\n'],
    [400, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
    [400, healthz('')],
    [400, healthz('Host: x\r\nHost: x\r\n')],
    [400, healthz('Host: x/y\r\n')],
    [400, healthz('Host: a@x\r\n')],
    [400, healthz('Host: x, y z\r\n')],
    [400, healthz('Host:\r\n')],
    [400, healthz('Host: x:y\r\n')],
    // An upgrade or an unknown expectation is ignored.
    [200, healthz('Host: x\r\nExpect: miracles\r\n')],
    [200, healthz('Host: x\r\nUpgrade: h2c\r\n')],
    [200, healthz('Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n')],
    [431, `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`],
    [431, `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  ])('get one reply, %i: %.90j', async (status, text) => {
    expect((await raw(text)).statuses).toEqual([status])
  })

  it('that do not arrive are 408, and a refusal is logged', async () => {
    expect((await raw('GET / HTTP/1.1\r\nHost: x\r\n', impatient)).statuses).toEqual([408])
    await until(() =>
      impatient.messages().some(({ msg, status }) => msg === 'request refused' && status === 408),
    )
  })

  it('with different Authorization headers are 401, a repeated one is taken', async () => {
    const manager = await api.makeKey('management')
    const ask = (...keys: string[]) => {
      const lines = keys.map((each) => `Authorization: Bearer ${each}\r\n`).join('')
      return raw(`GET /api/v1/scim/groups HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines}\r\n`)
    }
    expect((await ask(manager, key)).body).toContain('several Authorization headers')
    expect((await ask(manager, manager)).statuses).toEqual([200])
  })
})

describe('a page of another origin', () => {
  it.each([
    ['/api/v1/status', '*'],
    ['/api/v1/status/', '*'],
    ['/api/v1/datasets/app-rankings', '*'],
    ['/api/v1/%', '*'],
    [CHAT, '*'],
    [`/api/v1/status?${'x'.repeat(20_000)}`, '*'],
    ['/metrics', null],
    ['/healthz', null],
    ['/nope', null],
  ])('reads the reply of %.40s only below the API, with security headers: %j', async (path, allowed) => {
    const { headers } = await fetch(`${api.origin}${path}`)
    expect(headers.get('Access-Control-Allow-Origin')).toBe(allowed)
    const exposed = allowed === null ? null : '*, ETag, Last-Modified, Link, RateLimit'
    expect(headers.get('Access-Control-Expose-Headers')).toBe(exposed)
    expect(headers.get('X-Content-Type-Options')).toBe('nosniff')
    expect(headers.get('Content-Security-Policy')).toContain("default-src 'none'")
    expect([headers.get('X-Powered-By'), headers.get('Strict-Transport-Security')]).toEqual([null, null])
  })

  it('may send a key to an unknown path of the API, to read the 404', async () => {
    const asking = {
      'Access-Control-Request-Method': 'GET',
      'Access-Control-Request-Headers': 'authorization',
    }
    const ask = (path: string) => fetch(`${api.origin}${path}`, { method: 'OPTIONS', headers: asking })
    const preflight = await ask('/api/v1/datasets/app-rankings/')
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('Access-Control-Allow-Headers')).toContain('Authorization')
    expect((await ask('/nope')).status).toBe(404)
  })
})

it('the log has caller, request and outcome of each request under its own id, but not those to /healthz', async () => {
  await fetch(`${api.origin}/healthz`)
  const init = { headers: { 'X-Request-Id': 'mine' } }
  const replies = [1, 2].map(() => api.get('/datasets/app-rankings?limit=5', key, init))
  const ids = (await Promise.all(replies)).map((reply) => reply.headers.get('X-Request-Id') ?? '')
  expect(new Set([...ids, 'mine']).size).toBe(3)
  const requests = () => api.messages().filter(({ msg }) => msg === 'request')
  for (const id of ids)
    expect(await until(() => requests().find((line) => line['request_id'] === id))).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      msg: 'request',
      request_id: id,
      method: 'GET',
      path: '/api/v1/datasets/app-rankings',
      status: 503,
      ms: expect.any(Number),
      account_id: expect.stringMatching(/^[\da-f-]{36}$/),
      key_id: expect.stringMatching(/^[\da-f-]{36}$/),
    })
  // Balancers poll it all the time.
  expect(requests().map(({ path, status }) => [path, status])).not.toContainEqual(['/healthz', 200])
})
