import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { Server as HttpServer } from 'node:http'
import { Server as HttpsServer } from 'node:https'
import { createServer, type Server } from 'node:net'
import { atEnd } from './folders.ts'

/** The system gives out ports from 32768 on; it gives nobody else one of these. */
const [FIRST_PORT, PORTS] = [12_000, 20_000]

/** A free TCP port of the loopback interface, for a program that takes no 0. */
export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer()
    const port = FIRST_PORT + randomInt(PORTS)
    const isFree = await once(server.listen(port, '127.0.0.1'), 'listening').then(
      () => true,
      () => false,
    )
    server.close()
    if (isFree) return port
  }
}

/**
 * Listens on a free port of the loopback interface until `close`, `using` or the end of the test file; an HTTP server that is
 * closed breaks its connections.
 */
export async function listen(server: Server) {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('The server has no port')
  let closed: Promise<unknown> | undefined
  const close = async () => {
    closed ??= once(server, 'close')
    server.close()
    if (server instanceof HttpServer || server instanceof HttpsServer) server.closeAllConnections()
    await closed
  }
  atEnd(close)
  return { port: address.port, close, [Symbol.asyncDispose]: close }
}
