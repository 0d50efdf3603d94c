/** CONTRACT 3 and 6: what clients may hold of the service's memory at once. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { startApi, until, type Api } from '../../support/api.ts'
import { sendOver } from '../../support/connections.ts'
import { makeFolder } from '../../support/folders.ts'
import { asEnvironment, stores } from '../../support/stores.ts'

const MEBIBYTE = 1024 * 1024

/** A chat request that announces a body of this size and sends its first byte. */
function beginBody(origin: string, key: string, bytes: number): Socket {
  const head = ['POST /api/v1/chat/completions HTTP/1.1', 'Host: x', `Authorization: Bearer ${key}`]
  return sendOver(origin, [...head, `Content-Length: ${bytes}`, '', '{'].join('\r\n')).setEncoding('utf8')
}

/** The status of a small body of unknown length, which counts as it arrives: 400 if there is room for it. */
async function probe(api: Api, key: string) {
  const init = { method: 'POST', body: new Blob(['{}']).stream(), duplex: 'half' } as const
  return await api.get('/chat/completions', key, init)
}

stores.describeOnce('in one process', () => {
  it('bodies in flight have a bound per key and one together; over it 503 with Retry-After, until one has ended', async () => {
    await using api = await startApi(makeFolder())
    const [one, two, three] = [await api.makeKey(), await api.makeKey(), await api.makeKey()]
    const begin = (key: string) => beginBody(api.origin, key, 32 * MEBIBYTE)
    const untilStatus = (key: string, status: number) =>
      until(async () => (await probe(api, key)).status === status)
    const sockets = [begin(one), begin(one)]
    await untilStatus(one, 503)
    expect((await probe(api, two)).status).toBe(400)
    sockets.push(begin(two), begin(two))
    await untilStatus(three, 503)
    expect((await probe(api, three)).headers.get('Retry-After')).toBe('5')
    const late = begin(three)
    expect(String((await once(late, 'data'))[0])).toMatch(/^HTTP\/1\.1 503 /)

    sockets[0]?.destroy()
    await untilStatus(three, 400)
    for (const socket of [...sockets, late]) socket.destroy()
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
    await until(async () => (await probe(api, key)).status === 400)
  })
})
