import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { createUpstream } from '../../../../api/chat/upstream/upstream.ts'
import { portOf } from '../../../support/ports.ts'
import { hangUp, json, reset, startUpstream, type Behaviour } from '../../../support/chat/upstream.ts'

const closings: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closings.splice(0)) await close()
})

const MINUTE = { firstTokenMs: 60_000, keepAliveMs: 60_000, idleMs: 60_000, totalMs: 60_000 }
const targetAt = (url: string) => ({
  name: 'acme',
  url: new URL(url),
  model: 'scripted',
  headers: {},
  timeouts: MINUTE,
  includeUsage: true,
  drop: [],
})

/** A provider that follows `script`, one step per request, and an upstream to it. `pass` advances its time. */
async function start(script: readonly Behaviour[]) {
  let now = 1_000_000
  const ports: (number | undefined)[] = []
  const behave: Behaviour = (response, received) => {
    ports.push(response.socket?.remotePort)
    return script[ports.length - 1]?.(response, received)
  }
  const provider = await startUpstream({ scripted: behave }, { keepAliveMs: 60_000 })
  const upstream = createUpstream({ now: () => now })
  closings.push(() => upstream.close(), provider.close)
  const target = targetAt(`${provider.url}/chat/completions`)
  return {
    /** The connections of all requests so far, by port. */
    ports,
    pass: (ms: number) => void (now += ms),
    post: async (): Promise<unknown> => {
      const reply = await upstream.post(target, '{"model":"scripted"}', new AbortController().signal)
      const body = JSON.parse(await text(reply.body))
      // A connection may be reused in the next turn of the event loop.
      await setImmediate()
      return body
    },
  }
}

const SERVED = { served: true }
const serve = json(SERVED)
const beginReply: Behaviour = (response) => void response.socket?.end('HTTP/1.1 200 OK\r\nContent-')

it.each([
  ['is reset', reset],
  ['is closed', hangUp],
])('a connection that %s when it is used again is replaced', async (_name, breaking) => {
  const { post, ports } = await start([serve, breaking, serve])
  expect([await post(), await post()]).toEqual([SERVED, SERVED])
  expect(ports).toEqual([ports[0], ports[0], expect.any(Number)])
  expect(ports[2]).not.toBe(ports[0])
})

it('a connection is replaced once for a request', async () => {
  const { post, ports } = await start([serve, hangUp, hangUp, serve])
  await post()
  await expect(post()).rejects.toMatchObject({ kind: 'connection' })
  expect(ports).toHaveLength(3)
})

it.each([
  ['is reset', reset],
  ['is closed', hangUp],
])('a new connection that %s is not replaced', async (_name, breaking) => {
  const { post, ports } = await start([breaking, serve])
  await expect(post()).rejects.toMatchObject({ kind: 'connection' })
  expect(ports).toHaveLength(1)
  expect(await post()).toEqual(SERVED)
})

it.each([
  ['is reset', reset],
  ['is closed', hangUp],
])(
  'a used connection that %s late is not replaced: the provider had the request',
  async (_name, breaking) => {
    const { post, ports, pass } = await start([
      serve,
      (response, received) => {
        pass(1500)
        return breaking(response, received)
      },
      serve,
    ])
    await post()
    await expect(post()).rejects.toMatchObject({ kind: 'connection' })
    expect(ports).toEqual([ports[0], ports[0]])
  },
)

it('a used connection on which a reply had begun is not replaced', async () => {
  const { post, ports } = await start([serve, beginReply, serve])
  await post()
  await expect(post()).rejects.toMatchObject({ kind: 'connection' })
  expect(ports).toEqual([ports[0], ports[0]])
})

it('connections that broke together are each replaced for their request', async () => {
  const both = Promise.withResolvers<void>()
  let asked = 0
  const together: Behaviour = async (response, received) => {
    asked += 1
    if (asked === 2) both.resolve()
    await both.promise
    await serve(response, received)
  }
  const serveOnce: Behaviour = (response, received) => {
    const isUsed = ports.indexOf(response.socket?.remotePort) < ports.length - 1
    return (isUsed ? hangUp : serve)(response, received)
  }
  const { post, ports } = await start([together, together, serveOnce, serveOnce, serveOnce, serveOnce])
  await Promise.all([post(), post()])
  expect(await Promise.all([post(), post()])).toEqual([SERVED, SERVED])
  expect(ports).toHaveLength(6)
  expect(new Set(ports).size).toBe(4)
})

describe('a proxy that the environment names', () => {
  /** Answers plain requests itself, and rejects tunnels; `asked` holds the requests. */
  async function startProxy() {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(request.url ?? '')
      response.end(JSON.stringify(SERVED))
    })
    server.on('connect', ({ url }, socket) => {
      asked.push(`CONNECT ${url}`)
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closings.push(async () => void server.close())
    return { asked, url: `http://127.0.0.1:${portOf(server)}` }
  }

  const post = async (url: string, environment: NodeJS.ProcessEnv) => {
    const upstream = createUpstream({ environment })
    closings.push(() => upstream.close())
    const reply = await upstream.post(targetAt(url), '{"model":"scripted"}', new AbortController().signal)
    return JSON.parse(await text(reply.body))
  }

  it('gets plain requests whole', async () => {
    const { asked, url } = await startProxy()
    expect(await post('http://models.example/v1/chat/completions', { http_proxy: url })).toEqual(SERVED)
    expect(asked).toEqual(['http://models.example/v1/chat/completions'])
  })

  it('gets tunnel requests for https addresses', async () => {
    const { asked, url } = await startProxy()
    const posted = post('https://models.example/v1/chat/completions', { HTTPS_PROXY: url })
    await expect(posted).rejects.toMatchObject({ kind: 'connection' })
    expect(asked).toEqual(['CONNECT models.example:443'])
  })

  it('is bypassed for the hosts of NO_PROXY', async () => {
    const { asked, url } = await startProxy()
    const provider = await startUpstream({ scripted: serve })
    closings.push(provider.close)
    const environment = { HTTP_PROXY: url, NO_PROXY: 'localhost,127.0.0.1' }
    expect(await post(`${provider.url}/chat/completions`, environment)).toEqual(SERVED)
    expect(asked).toEqual([])
  })
})
