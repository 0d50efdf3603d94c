import {
  createServer,
  IncomingMessage,
  ServerResponse,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http'
import type { Duplex } from 'node:stream'
import type { Express } from 'express'
import { headLines, type HeadLines } from '../ready-head.ts'

/**
 * An application with what is done about a request that it leaves unanswered. Ours answers all; but when Express is told
 * of nothing, it makes ready for that with each request.
 */
type AppListener = (
  request: IncomingMessage,
  response: ServerResponse,
  unanswered: (error?: unknown) => void,
) => void

/** A server and what it answers. */
interface ExpressServer {
  readonly server: Server
  readonly latestReply: LatestReply
}

/** The latest reply on a connection, ended or not; undefined before the first. */
export type LatestReply = (socket: Duplex) => ServerResponse | undefined

/**
 * The server of an Express application. Express changes the prototypes of each request and reply to its own, after
 * which the engine is slow to find their members; made with these prototypes, they are left as they are.
 */
export function createExpressServer(app: Express, options: ServerOptions): ExpressServer {
  const keepAlive = keepAliveLines(options)
  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse {
    /** Express would take an object without prototype, whose members are slow to find. */
    readonly locals = { keepAlive }
  }
  app.request = Object.setPrototypeOf(AppRequest.prototype, app.request)
  app.response = Object.setPrototypeOf(AppResponse.prototype, app.response)
  const server = createServer({
    ...options,
    // A request without a body is whole with its head: nothing reads it, so nobody need be told of its end.
    optimizeEmptyRequests: true,
    IncomingMessage: AppRequest,
    ServerResponse: AppResponse,
  })
  const handle: AppListener = app
  const latest = new WeakMap<Duplex, ServerResponse>()
  const answer: RequestListener = (request, response) => {
    latest.set(request.socket, response)
    const target = request.url ?? '/'
    if (!target.startsWith('/')) request.url = originForm(target)
    handle(request, response, (error) => response.writeHead(error === undefined ? 404 : 500).end())
  }
  server.on('request', answer)
  // An expectation we do not know may be ignored (RFC 9110, 10.1.1); Node's own refusal would have no body.
  server.on('checkExpectation', answer)
  return { server, latestReply: (socket) => latest.get(socket) }
}

function keepAliveLines({ keepAliveTimeout }: ServerOptions): HeadLines | undefined {
  if (keepAliveTimeout === undefined) return undefined
  return headLines({
    Connection: 'keep-alive',
    'Keep-Alive': `timeout=${Math.floor(keepAliveTimeout / 1000)}`,
  })
}

/**
 * What is asked for, without the origin that it may begin with (RFC 9112, 3.2.2). Express reads that too, but one that
 * is no address it answers by itself, past the application.
 */
function originForm(target: string): string {
  const path = target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '')
  return path.startsWith('/') || path === '*' ? path : `/${path}`
}
