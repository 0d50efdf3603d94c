import {
  createServer,
  IncomingMessage,
  ServerResponse,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http'
import type { Express } from 'express'

/**
 * The server of an Express application. Express changes the prototypes of each request and reply to its own, after
 * which the engine is slow to find their members; made with these prototypes, they are left as they are.
 */
export function createExpressServer(app: Express, options: ServerOptions): Server {
  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse {
    /** Express would take an object without prototype, whose members are slow to find. */
    readonly locals = {}
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
  const answer: RequestListener = (request, response) => {
    request.url = originForm(request.url ?? '/')
    app(request, response)
  }
  server.on('request', answer)
  // An expectation we do not know may be ignored (RFC 9110, 10.1.1); Node's own refusal would have no body.
  server.on('checkExpectation', answer)
  return server
}

/**
 * What is asked for, without the origin that it may begin with (RFC 9112, 3.2.2). Express reads that too, but one that
 * is no address it answers by itself, past the application.
 */
function originForm(target: string): string {
  const path = target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '')
  return path.startsWith('/') || path === '*' ? path : `/${path}`
}
