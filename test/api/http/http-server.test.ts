import { once } from 'node:events'
import { connect } from 'node:net'
import express from 'express'
import { describe, expect, it } from 'vitest'
import { HTTP_LIMITS, listen, type HttpLimits } from '../../../api/http/http-server.ts'
import { memoryLog } from '../../support/api.ts'

/** A server with these limits that finds nothing. */
async function start(limits: Partial<HttpLimits>) {
  const { log } = memoryLog()
  return await listen(express(), { host: '127.0.0.1', port: 0, log, limits: { ...HTTP_LIMITS, ...limits } })
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
    const server = await start({ headersMs: 100, requestMs: 200, stopMs: 100 })
    const socket = stubbornClient(server.origin, text)
    const [answer] = await once(socket, 'data')
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    await server.close()
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
