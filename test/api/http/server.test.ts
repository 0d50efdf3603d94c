/** CONTRACT 3: what the server answers by itself, and how it begins and ends. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import express, { type Express } from 'express'
import { afterAll, describe, expect, it } from 'vitest'
import { HTTP_LIMITS, listen, originOf, type HttpLimits } from '../../../api/http/server.ts'
import { memoryLog } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const HOUR_MS = 3_600_000

/** A server with these limits; every path is unknown unless `app` handles it. */
async function start(limits: Partial<HttpLimits>, app: Express = express(), beforeCut?: () => void) {
  const { log, messages } = memoryLog()
  const options = { host: '127.0.0.1', port: 0, log, limits: { ...HTTP_LIMITS, ...limits } }
  const server = await listen(app, beforeCut === undefined ? options : { ...options, beforeCut })
  return { ...server, messages, [Symbol.asyncDispose]: () => server.close() }
}

/** A client that sends this text and reads the reply, but never hangs up. */
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

  it('closes a connection once its pending reply has ended', async () => {
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

  it('cuts connections that do not end, after an error message', async () => {
    const asked = Promise.withResolvers<void>()
    let reply: ServerResponse | undefined
    const app = express().get('/never', (_request, response) => {
      reply = response
      asked.resolve()
    })
    let wasCut: boolean | undefined
    const server = await start({ stopMs: 0 }, app, () => void (wasCut = reply?.destroyed))
    const socket = stubbornClient(server.origin, 'GET /never HTTP/1.1\r\nHost: x\r\n\r\n')
    await asked.promise
    await server.close()
    expect(wasCut).toBe(false)
    socket.destroy()
  })

  it('survives a client that resets its rejected tunnel', async () => {
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

it.each([
  ['127.0.0.1', 'http://127.0.0.1:3000'],
  ['0.0.0.0', 'http://127.0.0.1:3000'],
  ['::', 'http://[::1]:3000'],
  ['::1', 'http://[::1]:3000'],
  ['example.org', 'http://example.org:3000'],
])('names the origin of host %s as %s', (host, origin) => {
  expect(originOf(host, { address: host, family: 'IPv4', port: 3000 })).toBe(origin)
})

it('logs nothing about a client that left in the middle of a request', async () => {
  await using server = await start({})
  for (let count = 0; count < 20; count++) {
    const socket = stubbornClient(server.origin, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(socket, 'data')
    socket.write('GET / HTTP/1.1\r\n', () => socket.resetAndDestroy())
    await once(socket, 'close')
  }
  expect(server.messages()).toEqual([])
})

const GET = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

/** Everything that the server sends in reply to this text. */
async function allOf(origin: string, text: string): Promise<string> {
  const socket = stubbornClient(origin, text).on('end', () => socket.end())
  let all = ''
  socket.on('data', (part) => (all += String(part)))
  await once(socket, 'close')
  return all
}

it('pipelined requests are answered in order, in turns with those of other clients', async () => {
  const seen: string[] = []
  let other: Promise<unknown> | undefined
  const app = express().get('/:name', (request, reply) => {
    seen.push(request.params.name)
    other ??= fetch(`${server.origin}/other`)
    reply.send(request.params.name)
  })
  await using server = await start({}, app)
  const names = Array.from({ length: 900 }, (_, index) => String(index))
  const last = 'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const all = await allOf(server.origin, names.map((name) => GET(`/${name}`)).join('') + last)
  await other
  expect(all.match(/(?<=\r\n\r\n)(?:\d+|last)/g)).toEqual([...names, 'last'])
  expect(seen.filter((name) => name !== 'other')).toEqual([...names, 'last'])
  expect(seen.indexOf('other')).toBeLessThan(names.length)
})

it('a connection carries a thousand requests, and the last reply says that it closes', async () => {
  const app = express().get('/', (_request, reply) => void reply.send('x'))
  await using server = await start({}, app)
  const all = await allOf(server.origin, GET('/').repeat(1500))
  const replies = all.split('HTTP/1.1 200').slice(1)
  expect(replies).toHaveLength(1000)
  expect(replies.findIndex((reply) => reply.includes('Connection: close'))).toBe(999)
})

it('invalid HTTP is rejected after the reply to the previous request', async () => {
  const app = express().get('/slow', (_request, reply) => {
    setImmediate(() => reply.send('slow'))
  })
  await using server = await start({}, app)
  const all = await allOf(server.origin, `${GET('/slow')}hello\r\n\r\n`)
  expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
})

it('invalid HTTP in a body after the start of its reply gets no second reply', async () => {
  const app = express().post('/early', (_request, reply) => void reply.write('early'))
  await using server = await start({}, app)
  const head = 'POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
  const socket = stubbornClient(server.origin, head).on('end', () => socket.end())
  socket.once('data', () => socket.write('no size\r\n'))
  let all = ''
  socket.on('data', (part) => (all += String(part)))
  await once(socket, 'close')
  expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200'])
})

it.each([
  ['if no request follows a reply', { idleMs: 100, stallMs: HOUR_MS }, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['if no request ever came', { stallMs: 100, headersMs: HOUR_MS, requestMs: HOUR_MS }, ''],
])('an idle connection is closed %s', async (_when, limits, text) => {
  await using server = await start(limits)
  const socket = stubbornClient(server.origin, text).resume()
  await once(socket, 'end')
  socket.destroy()
})

describe('a reply that its client does not read', () => {
  const STALL_MS = 300
  /** More than the operating system buffers for a connection. */
  const LARGE = Buffer.alloc(30_000_000)

  /** An application that sends LARGE in several ways, and its first reply. */
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
      .get('/stream', (request, reply) => {
        request.socket.setTimeout(0)
        reply.write(LARGE)
      })
      .get('/ended-stream', (_request, reply) => {
        reply.write(LARGE)
        reply.end()
      })
    return { app, given: given.promise }
  }

  /** A client that requests this path and reads nothing. */
  function ask(origin: string, path: string) {
    return stubbornClient(origin, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).pause()
  }

  it.each(['/body', '/file', '/ended-stream'])('is broken off: %s', async (path) => {
    const { app, given } = largeReplies()
    await using server = await start({ stallMs: STALL_MS, stopMs: 0 }, app)
    const client = ask(server.origin, path)
    await once(await given, 'close')
    client.destroy()
  })

  it('is waited for if its handler bounds its own time', async () => {
    const app = express().get('/slow', (request, reply) => {
      request.socket.setTimeout(0)
      setTimeout(() => reply.set('Content-Length', '4').end('late'), 1500)
    })
    // Long enough for a busy machine to read the request.
    await using server = await start({ stallMs: 1000 }, app)
    expect(await (await fetch(`${server.origin}/slow`)).text()).toBe('late')
  })

  it('goes on as long as the client reads some of it', async () => {
    const { app } = largeReplies()
    // Long, since client and server share a process: without CPU time nothing is read.
    const stallMs = 1000
    await using server = await start({ stallMs, stopMs: 0 }, app)
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
  })

  it('is left alone if it is a stream, which has its own limits', async () => {
    const { app, given } = largeReplies()
    await using server = await start({ stallMs: STALL_MS, stopMs: 0 }, app)
    const client = ask(server.origin, '/stream')
    const reply = await given
    await sleep(3 * STALL_MS)
    expect(reply.destroyed).toBe(false)
    client.destroy()
  })
})
