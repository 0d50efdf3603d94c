import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Reach, Resolve } from '../../../../../api/scim/directory/http/addresses.ts'
import { createDirectoryClient, type ClientOptions } from '../../../../../api/scim/directory/http/client.ts'
import { SyncFailure, type Failure } from '../../../../../api/scim/failures.ts'
import { SYNC_LIMITS, type SyncLimits } from '../../../../../api/scim/directory/limits.ts'
import {
  DIRECTORY_TOKEN,
  startDirectory,
  type Quirk,
  type Reply,
} from '../../../../support/scim/faulty-directory.ts'

const LOOPBACK: Reach = { allowLoopback: true, allowPrivate: false }
const HTML: Reply = {
  send: (response) => response.setHeader('Content-Type', 'text/html').end('<html></html>'),
}

interface TestOptions extends Partial<Omit<ClientOptions, 'limits'>> {
  readonly limits?: Partial<SyncLimits>
}

/** A client that skips its pauses and records them. */
function clientOf(url: string, { limits, ...more }: TestOptions = {}) {
  const waits: number[] = []
  const client = createDirectoryClient({
    url: new URL(url),
    token: DIRECTORY_TOKEN,
    reach: LOOPBACK,
    limits: { ...SYNC_LIMITS, ...limits },
    signal: new AbortController().signal,
    wait: async (milliseconds) => void waits.push(milliseconds),
    ...more,
  })
  return { ...client, waits, [Symbol.asyncDispose]: () => client.close() }
}

/** The failure of a request, and its detail. */
async function failureOf(request: Promise<unknown>): Promise<[Failure, string]> {
  const error = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof SyncFailure)) throw new Error(`No SyncFailure, but ${String(error)}`)
  return [error.failure, error.message]
}

/** A quirk that returns these replies in turn, then the directory's own. */
function enqueue(...replies: readonly Reply[]): Quirk {
  return ({ before }) => replies[before]
}

const status = (code: number, headers: Readonly<Record<string, string>> = {}): Reply => ({
  status: code,
  headers,
  body: { status: String(code) },
})
const hangUp: Reply = { send: (response) => response.destroy() }

describe('DirectoryClient.get', () => {
  it('sends the token and the query below the address, and accepts no content coding', async () => {
    await using directory = await startDirectory([])
    await using client = clientOf(`${directory.url}/`)
    expect((await client.get('/Groups', { startIndex: '1', count: '10' })).status).toBe(200)
    const [asked] = directory.asked
    expect(asked).toMatchObject({
      path: '/Groups',
      authorization: `Bearer ${DIRECTORY_TOKEN}`,
      codings: 'identity',
    })
    expect(asked?.query.toString()).toBe('startIndex=1&count=10')
  })

  it.each([400, 404, 409, 501])('returns a %i to its caller at once', async (code) => {
    await using directory = await startDirectory([], { quirk: () => status(code) })
    await using client = clientOf(directory.url)
    expect(await client.get('/Groups')).toEqual({ status: code, body: { status: String(code) } })
    expect(directory.asked).toHaveLength(1)
  })

  it.each([401, 403])('stops at once on a %i', async (code) => {
    await using directory = await startDirectory([], { quirk: () => status(code) })
    await using client = clientOf(directory.url)
    expect(await failureOf(client.get('/Groups'))).toEqual([
      'directory_unauthorized',
      `GET /Groups: status ${code}`,
    ])
    expect(directory.asked).toHaveLength(1)
  })

  it.each([
    ['HTML', HTML],
    ['no content', { send: (response) => response.writeHead(204).end() }],
    [
      'JSON that ends early',
      { send: (response) => response.setHeader('Content-Type', 'application/json').end('{"a":') },
    ],
  ] satisfies [string, Reply][])('rejects %s as invalid', async (_name, reply) => {
    await using directory = await startDirectory([], { quirk: () => reply })
    await using client = clientOf(directory.url)
    expect((await failureOf(client.get('/Groups')))[0]).toBe('directory_invalid_response')
    expect(directory.asked).toHaveLength(1)
  })

  it.each([
    ['a refusal of the token', status(403)],
    ['a redirect', status(302)],
    ['no JSON', HTML],
    ['a pause that is too long', status(429, { 'Retry-After': '86400' })],
    ['too many bytes', { body: { text: 'x'.repeat(5000) } }],
    ['a server at its end', status(500)],
  ] satisfies [string, Reply][])('names the request in the error for %s', async (_name, reply) => {
    await using directory = await startDirectory([], { quirk: () => reply })
    await using client = clientOf(directory.url, { limits: { responseBytes: 4096, tries: 1 } })
    expect((await failureOf(client.get('/Groups/a%2Fb')))[1]).toMatch(/^GET \/Groups\/a%2Fb: ./)
  })

  it('follows no redirect, so that the token goes nowhere else', async () => {
    await using other = await startDirectory([])
    await using directory = await startDirectory([], {
      quirk: () => status(302, { Location: `${other.url}/Groups` }),
    })
    await using client = clientOf(directory.url)
    expect((await failureOf(client.get('/Groups')))[0]).toBe('directory_invalid_response')
    expect(other.asked).toEqual([])
  })

  it('retries with growing pauses if the directory fails', async () => {
    const quirk = enqueue(status(500), hangUp, status(408))
    await using directory = await startDirectory([], { quirk })
    await using client = clientOf(directory.url, { limits: { backoffMs: 100 } })
    expect((await client.get('/Groups')).status).toBe(200)
    const [first = 0, second = 0, third = 0] = client.waits
    expect(client.waits).toHaveLength(3)
    for (const [pause, longest] of [
      [first, 100],
      [second, 200],
      [third, 400],
    ] as const) {
      expect(pause).toBeGreaterThanOrEqual(longest / 2)
      expect(pause).toBeLessThanOrEqual(longest)
    }
  })

  it('fails after its last try', async () => {
    await using directory = await startDirectory([], { quirk: () => status(500) })
    await using client = clientOf(directory.url, { limits: { tries: 3 } })
    expect(await failureOf(client.get('/Groups'))).toEqual([
      'directory_unreachable',
      'GET /Groups: status 500',
    ])
    expect(directory.asked).toHaveLength(3)
  })

  it('reports a directory that cannot be reached', async () => {
    const gone = await startDirectory([])
    await gone[Symbol.asyncDispose]()
    await using client = clientOf(gone.url)
    const [failure, detail] = await failureOf(client.get('/Groups'))
    expect(failure).toBe('directory_unreachable')
    expect(detail).toContain('ECONNREFUSED')
  })

  it('waits as long as Retry-After demands, in seconds or until a time', async () => {
    const until = new Date(Date.now() + 60_000).toUTCString()
    const quirk = enqueue(
      status(429, { 'Retry-After': '7' }),
      status(503, { 'Retry-After': until }),
      status(429),
    )
    await using directory = await startDirectory([], { quirk })
    await using client = clientOf(directory.url)
    expect((await client.get('/Groups')).status).toBe(200)
    const [seconds, time = 0] = client.waits
    expect(seconds).toBe(7000)
    expect(time).toBeGreaterThan(0)
    expect(time).toBeLessThanOrEqual(60_000)
    expect(client.waits).toHaveLength(3)
  })

  it('returns nothing after few tries if the request is optional', async () => {
    for (const reply of [status(401), status(403), status(429), status(500), status(302), HTML, hangUp]) {
      await using directory = await startDirectory([], { quirk: () => reply })
      await using client = clientOf(directory.url)
      expect(await client.getOptional('/ServiceProviderConfig')).toBeUndefined()
      expect(directory.asked.length).toBeLessThanOrEqual(3)
    }
  })

  it('limits the length and the number of its waits', async () => {
    await using slow = await startDirectory([], { quirk: () => status(429, { 'Retry-After': '86400' }) })
    await using slowClient = clientOf(slow.url)
    expect((await failureOf(slowClient.get('/Groups')))[0]).toBe('directory_rate_limited')
    expect(slow.asked).toHaveLength(1)

    await using stubborn = await startDirectory([], { quirk: () => status(429, { 'Retry-After': '1' }) })
    await using client = clientOf(stubborn.url, { limits: { slowDowns: 3 } })
    expect((await failureOf(client.get('/Groups')))[0]).toBe('directory_rate_limited')
    expect(client.waits).toEqual([1000, 1000, 1000])
  })

  it('stops reading a reply at the size limit', async () => {
    await using directory = await startDirectory([], { quirk: () => ({ body: { text: 'x'.repeat(5000) } }) })
    await using client = clientOf(directory.url, { limits: { responseBytes: 4096 } })
    expect((await failureOf(client.get('/Groups')))[0]).toBe('directory_too_large')
    expect(directory.asked).toHaveLength(1)
  })

  it('cuts a reply that drips and never ends', async () => {
    const drip: Reply = {
      send(response) {
        response.setHeader('Content-Type', 'application/json')
        const timer = setInterval(() => response.write(' '), 5)
        response.on('close', () => clearInterval(timer))
      },
    }
    await using directory = await startDirectory([], { quirk: () => drip })
    await using client = clientOf(directory.url, { limits: { requestMs: 500, tries: 2 } })
    const [failure, detail] = await failureOf(client.get('/Groups'))
    expect(failure).toBe('directory_unreachable')
    expect(detail).toContain('TimeoutError')
    expect(directory.asked).toHaveLength(2)
  })

  it('ends with the reason of its signal', async () => {
    const ending = new AbortController()
    const reason = new SyncFailure('timed_out', 'enough')
    await using directory = await startDirectory([], { quirk: () => ({ send: () => ending.abort(reason) }) })
    await using client = clientOf(directory.url, { signal: ending.signal })
    expect(await failureOf(client.get('/Groups'))).toEqual(['timed_out', 'enough'])
  })

  it('does not retry once it is closed', async () => {
    const { promise: pausing, resolve: paused } = Promise.withResolvers<void>()
    await using directory = await startDirectory([], { quirk: () => status(500) })
    const client = clientOf(directory.url, {
      wait: async (_milliseconds, signal) => {
        paused()
        await once(signal, 'abort')
        throw signal.reason
      },
    })
    const request = failureOf(client.get('/Groups'))
    await pausing
    await client.close()
    expect(await request).toEqual(['interrupted', 'the client was closed'])
  })

  it('ends a pause with the reason of its signal', async () => {
    const ending = new AbortController()
    await using directory = await startDirectory([], { quirk: () => status(429, { 'Retry-After': '100' }) })
    const client = createDirectoryClient({
      url: new URL(directory.url),
      token: DIRECTORY_TOKEN,
      reach: LOOPBACK,
      limits: SYNC_LIMITS,
      signal: ending.signal,
    })
    const request = failureOf(client.get('/Groups'))
    while (directory.asked.length === 0) await sleep(5)
    ending.abort(new SyncFailure('interrupted', 'stopped'))
    expect(await request).toEqual(['interrupted', 'stopped'])
    await client.close()
  })
})

describe('the reach of a DirectoryClient', () => {
  it('rejects a loopback address that was not allowed, without a request', async () => {
    await using directory = await startDirectory([])
    const reach = { allowLoopback: false, allowPrivate: true }
    expect(() => clientOf(directory.url, { reach })).toThrow('may be connected to')
    await using client = clientOf(directory.url.replace('127.0.0.1', 'localhost'), { reach })
    expect((await failureOf(client.get('/Groups')))[0]).toBe('address_refused')
    expect(directory.asked).toEqual([])
  })

  it('checks the addresses of each connection, so that DNS rebinding is useless', async () => {
    let looks = 0
    await using directory = await startDirectory([], {
      quirk: () => ({ headers: { Connection: 'close' }, body: {} }),
    })
    const resolve: Resolve = (_name, _options, callback) => {
      looks += 1
      callback(null, [{ address: looks === 1 ? '127.0.0.1' : '169.254.169.254', family: 4 }])
    }
    await using client = clientOf(`http://directory.example:${directory.port}/scim/v2`, { resolve })
    expect((await client.get('/Groups')).status).toBe(200)
    expect((await failureOf(client.get('/Groups')))[0]).toBe('address_refused')
    expect(looks).toBe(2)
  })

  it('uses only TLS for an https address', async () => {
    const server = createServer((_request, response) => response.end('not TLS'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : 0
    await using client = clientOf(`https://127.0.0.1:${port}`, { limits: { tries: 1 } })
    expect((await failureOf(client.get('/Groups')))[0]).toBe('directory_unreachable')
    server.close()
  })
})
