/** CONTRACT 3 and 6: what clients may hold of the service's memory at once. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { startApi, until } from '../../support/api.ts'
import { sendOver } from '../../support/connections.ts'
import { makeFolder } from '../../support/folders.ts'
import { asEnvironment, stores } from '../../support/stores.ts'

const MEBIBYTE = 1024 * 1024

/** A chat request that announces a body of this size and sends its first byte. */
function beginBody(origin: string, key: string, bytes: number): Socket {
  const head = ['POST /api/v1/chat/completions HTTP/1.1', 'Host: x', `Authorization: Bearer ${key}`]
  const ofBody = ['Content-Type: application/json', `Content-Length: ${bytes}`, 'Expect: 100-continue']
  return sendOver(origin, [...head, ...ofBody, '', '{'].join('\r\n')).setEncoding('utf8')
}

stores.describeOnce('in one process', () => {
  it('bodies in flight have a bound per key and one together; over it 503 with Retry-After, until one has ended', async () => {
    await using api = await startApi(makeFolder())
    const keys = [await api.makeKey(), await api.makeKey(), await api.makeKey()] as const
    const sockets: Socket[] = []
    const begin = async (key: string) => {
      const socket = beginBody(api.origin, key, 32 * MEBIBYTE)
      sockets.push(socket)
      const answer = String((await once(socket, 'data'))[0])
      return { socket, answer }
    }
    const first = await begin(keys[0])
    expect(first.answer).toMatch(/^HTTP\/1\.1 100 /)
    expect((await begin(keys[0])).answer).toMatch(/^HTTP\/1\.1 100 /)
    const refused = await begin(keys[0])
    expect(refused.answer).toMatch(/^HTTP\/1\.1 503 [^]*\r\nRetry-After: 5\r\n/)
    // A body of unknown length counts as it arrives.
    const headers = { 'Content-Type': 'application/json' }
    const chunked = { method: 'POST', headers, body: new Blob(['{}']).stream(), duplex: 'half' } as const
    expect((await api.get('/chat/completions', keys[0], chunked)).status).toBe(503)
    expect((await begin(keys[1])).answer).toMatch(/^HTTP\/1\.1 100 /)
    expect((await begin(keys[1])).answer).toMatch(/^HTTP\/1\.1 100 /)
    expect((await begin(keys[2])).answer).toMatch(/^HTTP\/1\.1 503 /)

    first.socket.destroy()
    for (;;) {
      const { answer } = await begin(keys[2])
      if (answer.startsWith('HTTP/1.1 100 ')) break
    }
    for (const socket of sockets) socket.destroy()
  })

  it('small compressed bodies, or of unknown length, hold their own size: many are read at once', async () => {
    await using api = await startApi(makeFolder())
    const key = await api.makeKey()
    const json = { 'Content-Type': 'application/json' }
    const text = '{"model":"a/b","messages":[]}'
    const forms: (() => RequestInit)[] = [
      () => ({ body: new Uint8Array(gzipSync(text)), headers: { ...json, 'Content-Encoding': 'gzip' } }),
      () => ({ body: new Blob([text]).stream(), headers: json, duplex: 'half' }),
    ]
    const asked = Array.from({ length: 20 }, (_, index) =>
      api.get('/chat/completions', key, { method: 'POST', ...forms[index % 2]?.() }),
    )
    const replies = await Promise.all(asked)
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([400]))
  })
})

describe.each(stores.kinds)('on $name', ({ fresh }) => {
  it('a client that disconnects before its body is read holds nothing', async () => {
    await using api = await startApi('', { environment: asEnvironment(await fresh()) })
    const key = await api.makeKey()
    for (let client = 0; client < 40; client += 1) {
      const socket = beginBody(api.origin, key, 32 * MEBIBYTE)
      await once(socket, 'connect')
      socket.destroy()
    }
    await until(async () => {
      const socket = beginBody(api.origin, key, 32 * MEBIBYTE)
      const [answer] = await once(socket, 'data')
      socket.destroy()
      return String(answer).startsWith('HTTP/1.1 100 ')
    })
  })
})
