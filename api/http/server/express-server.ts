import {
  createServer,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import type { Duplex } from 'node:stream'
import type { Express } from 'express'

/** A server and what it answers. */
interface ExpressServer {
  readonly server: Server
  readonly latestReply: LatestReply
}

/** The latest reply on a connection, ended or not; undefined before the first. */
export type LatestReply = (socket: Duplex) => ServerResponse | undefined

/** The server of an Express application. */
export function createExpressServer(app: Express, options: ServerOptions): ExpressServer {
  const latest = new WeakMap<Duplex, ServerResponse>()
  const answer: RequestListener = (request, response) => {
    latest.set(request.socket, response)
    const target = request.url ?? '/'
    if (!target.startsWith('/')) request.url = originForm(target)
    app(request, response)
  }
  const server = createServer(options, answer)
  // An expectation we do not know may be ignored (RFC 9110, 10.1.1); Node's own refusal would have no body.
  server.on('checkExpectation', answer)
  // Who reads the body says that it may come (protocol/request-body.ts).
  server.on('checkContinue', answer)
  return { server, latestReply: (socket) => latest.get(socket) }
}

/**
 * What is asked for, without the origin that it may begin with (RFC 9112, 3.2.2). Express reads that too, but one that
 * is no address it answers by itself, past the application.
 */
function originForm(target: string): string {
  const path = target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '')
  return path.startsWith('/') || path === '*' ? path : `/${path}`
}
