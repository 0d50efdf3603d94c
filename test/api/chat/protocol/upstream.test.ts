import { setImmediate } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { createUpstream } from '../../../../api/chat/protocol/upstream.ts'
import { hangUp, json, reset, startUpstream, type Behaviour } from '../../../support/upstream.ts'

const closings: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closings.splice(0)) await close()
})

/** A provider that does with each request what `script` says next, and the way to it. Its time passes by `pass`. */
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
  const timeouts = { firstTokenMs: 60_000, idleMs: 60_000, totalMs: 60_000 }
  const target = {
    name: 'acme',
    url: new URL(`${provider.url}/chat/completions`),
    model: 'scripted',
    headers: {},
    timeouts,
    includeUsage: true,
  }
  return {
    /** The connections of all requests so far, by their ports. */
    ports,
    pass: (ms: number) => void (now += ms),
    post: async (): Promise<unknown> => {
      const reply = await upstream.post(target, { model: 'scripted' }, new AbortController().signal)
      const body = await reply.body.json()
      // A connection may be used again in the next turn of the event loop.
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

it('connections that broke together are replaced each for its request', async () => {
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
