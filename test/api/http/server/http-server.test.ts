import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import express, { type Express } from 'express'
import { afterAll, describe, expect, it } from 'vitest'
import { HTTP_LIMITS, listen, originOf, type HttpLimits } from '../../../../api/http/server/http-server.ts'
import { memoryLog } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const HOUR_MS = 3_600_000

/** A server with these limits, which finds nothing unless `app` does. */
async function start(limits: Partial<HttpLimits>, app: Express = express()) {
  const { log } = memoryLog()
  return await listen(app, { host: '127.0.0.1', port: 0, log, limits: { ...HTTP_LIMITS, ...limits } })
}

/** A client that sends this text and reads what comes, but never hangs up by itself. */
function stubbornClient(origin: string, text: string) {
  const { hostname, port } = new URL(origin)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  socket.on('error', () => undefined)
  socket.setEncoding('utf8').write(text)
  return socket
}

describe('a server that stops', () => {
  it.each([
    ['a tunnel', 'CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['half a request', 'GET / HTTP/1.1\r\nHost: x\r\n', 408],
    ['not HTTP', 'hello\r\n\r\n', 400],
  ])('does not wait for a client that does not hang up after %s', async (_what, text, status) => {
    const server = await start({ headersMs: 100, stopMs: 100 })
    const socket = stubbornClient(server.origin, text)
    const [answer] = await once(socket, 'data')
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toMatch(/\r\nX-Request-Id: [\da-f-]{36}\r\n/)
    expect(answer).toContain('\r\nCache-Control: no-store\r\n')
    await server.close()
    socket.destroy()
  })

  it('closes a connection once a reply on it has ended that had begun before', async () => {
    const begun = Promise.withResolvers<ServerResponse>()
    const app = express().get('/slow', (_request, reply) => {
      reply.write('begun')
      begun.resolve(reply)
    })
    const server = await start({ idleMs: HOUR_MS, stopMs: HOUR_MS }, app)
    const socket = stubbornClient(server.origin, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n')
    socket.resume().on('end', () => socket.end())
    const reply = await begun.promise
    const ended = once(socket, 'end')
    const closed = server.close()
    reply.end()
    await ended
    await closed
  })

  it('cuts off what does not end, and says so before', async () => {
    const asked = Promise.withResolvers<void>()
    let reply: ServerResponse | undefined
    const app = express().get('/never', (_request, response) => {
      reply = response
      asked.resolve()
    })
    let wasCut: boolean | undefined
    const server = await listen(app, {
      host: '127.0.0.1',
      port: 0,
      log: memoryLog().log,
      limits: { ...HTTP_LIMITS, stopMs: 0 },
      beforeCut: () => void (wasCut = reply?.destroyed),
    })
    const socket = stubbornClient(server.origin, 'GET /never HTTP/1.1\r\nHost: x\r\n\r\n')
    await asked.promise
    await server.close()
    expect(wasCut).toBe(false)
    socket.destroy()
  })

  it('outlives a client that resets the tunnel it was refused', async () => {
    const server = await start({})
    for (let count = 0; count < 20; count++) {
      const socket = stubbornClient(server.origin, 'CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n')
      await once(socket, 'data')
      socket.write('more')
      socket.resetAndDestroy()
    }
    await server.close()
  })
})

it('takes no more of request line and headers than it is told', async () => {
  const server = await start({ headerBytes: 1000 })
  const socket = stubbornClient(server.origin, `GET /${'x'.repeat(1000)} HTTP/1.1\r\nHost: x\r\n\r\n`)
  const [answer] = await once(socket, 'data')
  expect(answer).toMatch(/^HTTP\/1\.1 431 /)
  socket.destroy()
  await server.close()
})

it.each([
  ['127.0.0.1', 'http://127.0.0.1:3000'],
  ['0.0.0.0', 'http://127.0.0.1:3000'],
  ['::', 'http://[::1]:3000'],
  ['::1', 'http://[::1]:3000'],
  ['example.org', 'http://example.org:3000'],
])('names the origin of host %s as %s', (host, origin) => {
  expect(originOf(host, { address: host, family: 'IPv4', port: 3000 })).toBe(origin)
})

it('says nothing in the log of a client that left in the middle of a request', async () => {
  const { log, messages } = memoryLog()
  const server = await listen(express(), { host: '127.0.0.1', port: 0, log, limits: HTTP_LIMITS })
  for (let count = 0; count < 20; count++) {
    const socket = stubbornClient(server.origin, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(socket, 'data')
    socket.write('GET / HTTP/1.1\r\n', () => socket.resetAndDestroy())
    await once(socket, 'close')
  }
  await server.close()
  expect(messages()).toEqual([])
})

describe('what is no HTTP', () => {
  /** All that comes until the server hangs up; `more` is sent once something has come. */
  async function allOf(origin: string, text: string, more?: string): Promise<string> {
    const socket = stubbornClient(origin, text)
    socket.on('end', () => socket.end())
    if (more !== undefined) socket.once('data', () => socket.write(more))
    let all = ''
    socket.on('data', (part) => (all += String(part)))
    await once(socket, 'close')
    return all
  }

  it('is refused after the reply to the request before it', async () => {
    const app = express().get('/slow', (_request, reply) => {
      setTimeout(() => reply.send('slow'), 50)
    })
    const server = await start({}, app)
    const all = await allOf(server.origin, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\nhello\r\n\r\n')
    expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
    await server.close()
  })

  it('in a body whose reply has begun is followed by no second reply', async () => {
    const app = express().post('/early', (_request, reply) => void reply.write('early'))
    const server = await start({}, app)
    const head = 'POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
    const all = await allOf(server.origin, head, 'no size\r\n')
    expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200'])
    await server.close()
  })
})

describe('a connection on which nothing is under way is closed', () => {
  it('once a reply has been followed by no request for long enough', async () => {
    const app = express().get('/', (_request, reply) => void reply.send('here'))
    const server = await start({ idleMs: 100, stallMs: HOUR_MS }, app)
    const socket = stubbornClient(server.origin, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n').resume()
    await once(socket, 'end')
    socket.destroy()
    await server.close()
  })

  it('where no request ever came', async () => {
    const server = await start({ stallMs: 100, headersMs: HOUR_MS, requestMs: HOUR_MS })
    const socket = stubbornClient(server.origin, '').resume()
    await once(socket, 'end')
    socket.destroy()
    await server.close()
  })
})

describe('a reply that its client does not take', () => {
  const STALL_MS = 300
  /** More than the system keeps for a connection. */
  const LARGE = Buffer.alloc(30_000_000)

  /** An application that gives LARGE in several ways, and the reply that it gave first. */
  function largeReplies() {
    const file = join(folders.make(), 'large')
    writeFileSync(file, LARGE)
    const given = Promise.withResolvers<ServerResponse>()
    const app = express()
      .use((_request, reply, next) => {
        given.resolve(reply)
        next()
      })
      .get('/body', (_request, reply) => void reply.set('Content-Length', String(LARGE.length)).end(LARGE))
      .get('/file', (_request, reply) => reply.sendFile(file, () => undefined))
      .get('/stream', (_request, reply) => void reply.write(LARGE))
      .get('/ended-stream', (_request, reply) => {
        reply.write(LARGE)
        reply.end()
      })
    return { app, given: given.promise }
  }

  /** A client that asks for this path and reads nothing. */
  function ask(origin: string, path: string) {
    return stubbornClient(origin, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).pause()
  }

  it.each(['/body', '/file', '/ended-stream'])('is broken off: %s', async (path) => {
    const { app, given } = largeReplies()
    const server = await start({ stallMs: STALL_MS, stopMs: 0 }, app)
    const client = ask(server.origin, path)
    await once(await given, 'close')
    client.destroy()
    await server.close()
  })

  it('is waited for where nothing of it is there to be taken', async () => {
    const app = express().get('/slow', (_request, reply) => {
      reply.set('Content-Length', '4').once('timeout', () => setImmediate(() => reply.end('late')))
    })
    const server = await start({ stallMs: 100 }, app)
    expect(await (await fetch(`${server.origin}/slow`)).text()).toBe('late')
    await server.close()
  })

  it('goes on as long as some of it is taken', async () => {
    const { app } = largeReplies()
    // Long, since client and server share a process: while it gets no processor, nothing is taken.
    const stallMs = 1000
    const server = await start({ stallMs, stopMs: 0 }, app)
    const client = ask(server.origin, '/file')
    const closed = once(client, 'close').then(() => Promise.reject(new Error('The server hung up')))
    let taken = 0
    const began = performance.now()
    client.on('data', (text: string) => {
      taken += text.length
      client.pause()
      setTimeout(() => client.resume(), performance.now() < began + 3 * stallMs ? 20 : 0)
    })
    client.resume()
    while (taken < LARGE.length) await Promise.race([once(client, 'data'), closed])
    expect(performance.now() - began).toBeGreaterThan(2 * stallMs)
    closed.catch(() => undefined)
    client.destroy()
    await server.close()
  })

  it('is left alone where it is a stream, which has limits of its own', async () => {
    const { app, given } = largeReplies()
    const server = await start({ stallMs: STALL_MS, stopMs: 0 }, app)
    const client = ask(server.origin, '/stream')
    const reply = await given
    await sleep(3 * STALL_MS)
    expect(reply.destroyed).toBe(false)
    client.destroy()
    await server.close()
  })
})
