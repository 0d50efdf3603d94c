import {
  createServer,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import type { Duplex } from 'node:stream'
import type { Express } from 'express'

interface ExpressServer {
  readonly server: Server
  readonly latestReply: LatestReply
}

/** The latest reply on a connection, ended or not; undefined before the first. */
export type LatestReply = (socket: Duplex) => ServerResponse | undefined

export function createExpressServer(app: Express, options: ServerOptions): ExpressServer {
  const latest = new WeakMap<Duplex, ServerResponse>()
  const answer: RequestListener = (request, response) => {
    const earlier = latest.get(request.socket)
    latest.set(request.socket, response)
    // Node may lose requests that follow one with an upgrade in the same packet, so nothing may follow it.
    if (request.headers.upgrade !== undefined) response.setHeader('Connection', 'close')
    const target = request.url ?? '/'
    if (!target.startsWith('/')) request.url = originForm(target)
    if (earlier === undefined || earlier.writableFinished) app(request, response)
    // Pipelined requests take turns with the ones of other connections.
    else earlier.once('close', () => setImmediate(() => request.destroyed || app(request, response)))
  }
  const server = createServer(options, answer)
  // An unknown expectation may be ignored (RFC 9110, 10.1.1); Node's own error would have no body.
  server.on('checkExpectation', answer)
  // The reader of the body sends the 100 (protocol/request-body.ts).
  server.on('checkContinue', answer)
  return { server, latestReply: (socket) => latest.get(socket) }
}

/**
 * The request target without its origin (RFC 9112, 3.2.2). Express supports that too, but answers an invalid one
 * itself, without the application.
 */
function originForm(target: string): string {
  const path = target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '')
  return path.startsWith('/') || path === '*' ? path : `/${path}`
}
