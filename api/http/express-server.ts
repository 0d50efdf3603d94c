import { createServer, IncomingMessage, ServerResponse, type Server, type ServerOptions } from 'node:http'
import type { Express } from 'express'

/**
 * The server of an Express application. Express changes the prototypes of each request and reply to its own, after
 * which the engine is slow to find their members; made with these prototypes, they are left as they are.
 */
export function createExpressServer(app: Express, options: ServerOptions): Server {
  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse {}
  app.request = Object.setPrototypeOf(AppRequest.prototype, app.request)
  app.response = Object.setPrototypeOf(AppResponse.prototype, app.response)
  return createServer({ ...options, IncomingMessage: AppRequest, ServerResponse: AppResponse }, app)
}
