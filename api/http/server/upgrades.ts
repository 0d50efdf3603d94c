/**
 * Ignores protocol upgrades (RFC 9110, 7.8). Without an upgrade listener, Node loses the requests that follow in the
 * same packet, and does not report malformed ones.
 */
import type { IncomingMessage, Server } from 'node:http'
import type { LatestReply } from './express-server.ts'

/** Whether nothing follows the head of a request; Node reads other bodies before it emits them. */
export function isWithoutBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] === undefined && headers['transfer-encoding'] === undefined
}

/**
 * Puts such a request back in front of the following bytes, without its upgrade, and lets the server read the
 * connection again.
 */
export function ignoreUpgrades(server: Server, latestReply: LatestReply): void {
  server.on('upgrade', (request, socket, rest) => {
    const readAnew = () => {
      socket.unshift(Buffer.concat([headWithoutWish(request), rest]))
      server.emit('connection', socket)
    }
    const earlier = latestReply(socket)
    if (earlier === undefined || earlier.writableFinished) readAnew()
    else earlier.once('finish', readAnew)
  })
}

function headWithoutWish({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = rawHeaders.flatMap((name, index) =>
    index % 2 === 1 || name.toLowerCase() === 'upgrade' ? [] : [`${name}: ${rawHeaders[index + 1]}`],
  )
  const head = [`${method} ${url} HTTP/${httpVersion}`, ...lines, '', '']
  return Buffer.from(head.join('\r\n'), 'latin1')
}
