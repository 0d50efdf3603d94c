/** CONTRACT 3: how the server treats connections: order and number of requests, clients that do not read, the end. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { answerWith, sendRaw, startApi, until, type Api, type ApiOptions } from '../../support/api.ts'
import { sendOver } from '../../support/connections.ts'
import { makeFolder } from '../../support/folders.ts'

const HOUR_MS = 3_600_000
/** A path that a test answers in its own way. */
const PATH = '/docs'
type Handle = Api['routes'][number]['handle']
type Reply = Parameters<Handle>[1]

/** A service with these limits, in which `handle` answers PATH. */
async function start(limits: ApiOptions['limits'] = {}, handle: Handle = () => undefined) {
  const api = await startApi(makeFolder(), { limits })
  answerWith(api, PATH, handle)
  return api
}

const get = (path: string, lines = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${lines}\r\n`
const LAST = get('/last', 'Connection: close\r\n')

/** A client that sends this text and reads the reply, but never hangs up. */
const stubbornClient = ({ origin }: Api, sent: string) =>
  sendOver(origin, sent, { allowHalfOpen: true }).setEncoding('utf8')

const statusesIn = (text: string) => text.match(/(?<=HTTP\/1\.1 )\d+/g)

describe('requests of one connection', () => {
  it('are answered in order, in turns with those of other clients', async () => {
    await using api = await start()
    const names = Array.from({ length: 900 }, (_, index) => `/${index}`)
    const socket = stubbornClient(api, names.map((name) => get(name)).join('') + LAST)
    let all = ''
    socket.on('data', (part) => (all += String(part))).on('end', () => socket.end())
    const closed = once(socket, 'close')
    await once(socket, 'data')
    await fetch(`${api.origin}/other`)
    await closed
    const order = [...names, '/last']
    expect(all.match(/(?<=No such path: )\S+(?=;)/g)).toEqual(order)
    const logged = () => api.messages().flatMap(({ msg, path }) => (msg === 'request' ? [String(path)] : []))
    await until(() => logged().length === order.length + 1)
    expect(logged().filter((path) => path !== '/other')).toEqual(order)
    expect(logged().indexOf('/other')).toBeLessThan(names.length)
  })

  it('are a thousand at most, and the last reply says that it closes', async () => {
    await using api = await start()
    const replies = (await sendRaw(api.origin, get('/healthz').repeat(1500))).split('HTTP/1.1 200').slice(1)
    expect(replies).toHaveLength(1000)
    expect(replies.findIndex((reply) => reply.includes('Connection: close'))).toBe(999)
  })

  it('are answered before invalid HTTP that follows them, which gets one 400 however many packets it fills', async () => {
    const asked = Promise.withResolvers<Reply>()
    await using api = await start({}, (_request, reply) => asked.resolve(reply))
    const client = stubbornClient(api, get(PATH))
    const all = textOf(client)
    const reply = await asked.promise
    const { socket } = reply.req
    for (const packet of ['hello\r\n\r\n', 'once more\r\n\r\n']) {
      const read = socket.bytesRead + packet.length
      client.write(packet)
      await until(() => socket.bytesRead === read)
    }
    reply.end('slow')
    expect(statusesIn(await all)).toEqual(['200', '400'])
    client.destroy()
    expect(api.messages().filter(({ msg }) => msg === 'request refused')).toHaveLength(1)
  })

  it('end with one that wants another protocol, since Node drops what follows it in its packet', async () => {
    await using api = await start()
    const upgrade = get('/healthz', 'Connection: Upgrade\r\nUpgrade: h2c\r\n')
    expect(statusesIn(await sendRaw(api.origin, upgrade + get('/other')))).toEqual(['200'])
  })

  it('get no second reply for invalid HTTP in a body after the start of the first', async () => {
    await using api = await start()
    const early = '/api/v1/chat/completions'
    answerWith(api, early, (_request, reply) => void reply.write('early'))
    const lines = `Authorization: Bearer ${await api.makeKey()}\r\nTransfer-Encoding: chunked\r\n`
    const head = `POST ${early} HTTP/1.1\r\nHost: x\r\n${lines}\r\n`
    expect(statusesIn(await sendRaw(api.origin, head, 'no size\r\n'))).toEqual(['200'])
  })
})

describe('a server that stops', () => {
  it.each([
    ['half a request', 'GET / HTTP/1.1\r\nHost: x\r\n'],
    ['not HTTP', 'hello\r\n\r\n'],
  ])('does not wait for a client that does not hang up after %s', async (_what, text) => {
    const api = await start({ requestMs: 100, stopMs: 100 })
    const socket = stubbornClient(api, text)
    await once(socket, 'data')
    await api.close()
    socket.destroy()
  })

  it('closes a connection once its pending reply has ended', async () => {
    const begun = Promise.withResolvers<Reply>()
    const api = await start({ idleMs: HOUR_MS, stopMs: HOUR_MS }, (_request, reply) => {
      reply.write('begun')
      begun.resolve(reply)
    })
    const answered = sendRaw(api.origin, get(PATH))
    const reply = await begun.promise
    const closed = api.close()
    await until(async () => (await fetch(`${api.origin}/healthz`).catch(() => undefined)) === undefined)
    reply.end()
    await answered
    await closed
  })

  it('cuts connections that do not end', async () => {
    const asked = Promise.withResolvers<void>()
    const api = await start({ stopMs: 0 }, () => asked.resolve())
    const socket = stubbornClient(api, get(PATH))
    await asked.promise
    await api.close()
    socket.destroy()
  })
})

it('clients that leave in the middle of a request disturb nobody, and are worth no line of the log', async () => {
  await using api = await start()
  for (let count = 0; count < 20; count += 1) {
    const socket = stubbornClient(api, get('/healthz'))
    await once(socket, 'data')
    socket.write('GET / HTTP/1.1\r\n', () => socket.resetAndDestroy())
    await once(socket, 'close')
  }
  expect(api.messages().filter(({ msg }) => msg === 'request refused')).toEqual([])
})

it.each([
  ['if no request follows a reply', { idleMs: 100, stallMs: HOUR_MS }, get('/healthz')],
  ['if no request ever came', { stallMs: 100, requestMs: HOUR_MS }, ''],
])('an idle connection is closed %s', async (_when, limits, text) => {
  await using api = await start(limits)
  const socket = stubbornClient(api, text).resume()
  await once(socket, 'end')
  socket.destroy()
})

it('a path that bounds its own time may be silent for longer', async () => {
  // Long enough for a busy machine to read the request.
  await using api = await start({ stallMs: 1000 })
  answerWith(api, '/api/v1/chat/completions', async (_request, reply) => {
    await sleep(1500)
    reply.end('late')
  })
  const reply = await api.get('/chat/completions', await api.makeKey(), { method: 'POST' })
  expect(await reply.text()).toBe('late')
})

const hasIpv6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
)

const HOSTS: [host: string, reachable: string][] = [
  ['0.0.0.0', '127.0.0.1'],
  ['localhost', 'localhost'],
]
if (hasIpv6) HOSTS.push(['::', '[::1]'], ['[::1]', '[::1]'])

it.each(HOSTS)('with HOST=%s it listens for clients of http://%s', async (HOST, host) => {
  await using api = await startApi(makeFolder(), { environment: { HOST } })
  expect(new URL(api.origin).hostname).toBe(host)
  expect((await fetch(`${api.origin}/healthz`)).status).toBe(200)
})

describe('a reply that its client does not read', () => {
  const STALL_MS = 300
  /** More than the operating system buffers for a connection. */
  const LARGE = Buffer.alloc(30_000_000)
  const file = join(makeFolder(), 'large')
  writeFileSync(file, LARGE)

  const WAYS: Readonly<Record<string, (reply: Reply) => void>> = {
    body: (reply) => reply.set('Content-Length', String(LARGE.length)).end(LARGE),
    file: (reply) => reply.sendFile(file, () => undefined),
    'ended stream': (reply) => reply.write(LARGE) || reply.end(),
  }

  /** A client that reads nothing of PATH, and the reply to it. */
  async function beginReply(way: string, stallMs: number) {
    const given = Promise.withResolvers<Reply>()
    const api = await start({ stallMs, stopMs: 0 }, (_request, reply) => {
      WAYS[way]?.(reply)
      given.resolve(reply)
    })
    const client = stubbornClient(api, get(PATH)).pause()
    return { api, client, reply: await given.promise }
  }

  it.each(['body', 'file', 'ended stream'])('is broken off: %s', async (way) => {
    const { api, client, reply } = await beginReply(way, STALL_MS)
    if (!reply.closed) await once(reply, 'close')
    client.destroy()
    await api.close()
  })

  it('goes on as long as the client reads some of it', async () => {
    // Long, since client and server share a process: without CPU time nothing is read.
    const stallMs = 1000
    const { api, client } = await beginReply('file', stallMs)
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
    await api.close()
  })
})
