/** CONTRACT 3 and 6: what clients may hold of the service's memory at once. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { startApi, until } from '../../support/api.ts'
import { sendOver } from '../../support/connections.ts'
import { makeFolder } from '../../support/folders.ts'
import { asEnvironment, stores } from '../../support/stores.ts'

/** A chat request that announces a body of 32 MiB and sends its first byte. */
function beginBody(origin: string, key: string): Socket {
  const head = ['POST /api/v1/chat/completions HTTP/1.1', 'Host: x', `Authorization: Bearer ${key}`]
  const ofBody = [`Content-Length: ${32 * 1024 * 1024}`, 'Expect: 100-continue']
  return sendOver(origin, [...head, ...ofBody, '', '{'].join('\r\n')).setEncoding('utf8')
}

/** The first reply to it: 100 once it has its room. */
async function firstReply(socket: Socket): Promise<string> {
  const [answer] = await once(socket, 'data')
  return String(answer)
}
const HAS_ROOM = /^HTTP\/1\.1 100 /
const IS_REFUSED = /^HTTP\/1\.1 503 [^]*\r\nRetry-After: 5\r\n/

stores.describeOnce('in one process', () => {
  it('bodies in flight have a bound per key and one together; over it 503 with Retry-After, until one has ended', async () => {
    await using api = await startApi(makeFolder())
    const [one = '', other = '', third = ''] = await Array.fromAsync({ length: 3 }, () => api.makeKey())
    const sockets: Socket[] = []
    const begin = (key: string) => {
      const socket = beginBody(api.origin, key)
      sockets.push(socket)
      return firstReply(socket)
    }
    expect(await begin(one)).toMatch(HAS_ROOM)
    expect(await begin(one)).toMatch(HAS_ROOM)
    expect(await begin(one)).toMatch(IS_REFUSED)
    // A body of unknown length counts as it arrives.
    const chunked = { method: 'POST', body: new Blob(['{}']).stream(), duplex: 'half' } as const
    expect((await api.get('/chat/completions', one, chunked)).status).toBe(503)
    expect(await begin(other)).toMatch(HAS_ROOM)
    expect(await begin(other)).toMatch(HAS_ROOM)
    expect(await begin(third)).toMatch(IS_REFUSED)

    sockets[0]?.destroy()
    await until(async () => HAS_ROOM.test(await begin(third)))
    for (const socket of sockets) socket.destroy()
  })

  it('small compressed bodies, or of unknown length, hold their own size: many are read at once', async () => {
    await using api = await startApi(makeFolder())
    const key = await api.makeKey()
    const text = '{"model":"a/b","messages":[]}'
    const packed = { body: new Uint8Array(gzipSync(text)), headers: { 'Content-Encoding': 'gzip' } }
    const asked = Array.from({ length: 20 }, (_, index) => {
      const chunked = { body: new Blob([text]).stream(), duplex: 'half' } as const
      return api.get('/chat/completions', key, { method: 'POST', ...(index % 2 === 0 ? packed : chunked) })
    })
    for (const { status } of await Promise.all(asked)) expect(status).toBe(400)
  })
})

describe.each(stores.kinds)('on $name', ({ fresh }) => {
  it('a client that disconnects before its body is read holds nothing', async () => {
    await using api = await startApi('', { environment: asEnvironment(await fresh()) })
    const key = await api.makeKey()
    for (let client = 0; client < 40; client += 1) {
      const socket = beginBody(api.origin, key)
      await once(socket, 'connect')
      socket.destroy()
    }
    await until(async () => {
      const socket = beginBody(api.origin, key)
      const answer = await firstReply(socket)
      socket.destroy()
      return HAS_ROOM.test(answer)
    })
  })
})
