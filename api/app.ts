/** The Express application: gates that every request passes, the route table, and one shape for every fault. */
import express, { type ErrorRequestHandler, type Express, type IRoute } from 'express'
import helmet from 'helmet'
import type { Registry } from 'prom-client'
import { authenticate } from './accounts/authenticate.ts'
import { createFindKey, type FindKey } from './accounts/key-store.ts'
import { stateLimits } from './accounts/spend.ts'
import type { CallLocals, Clock, Gate, Handler } from './call.ts'
import { openToPages, preflight } from './http/cors.ts'
import { ApiError } from './errors.ts'
import type { Log } from './log.ts'
import { countReplies, noteRoute } from './metrics.ts'
import { logRequests } from './http/request-log.ts'
import { REFERENCE_PATH } from './paths.ts'
import { sendError } from './respond.ts'
import { typeErrors } from './http/typed-errors.ts'
import type { Route } from './route.ts'
import { shorten } from './shorten.ts'
import type { Store } from './store/store.ts'

interface AppDependencies {
  readonly routes: readonly Route[]
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Registry
}

/** Builds the application that answers `routes`. */
export function createApp({ routes, store, clock, log, metrics }: AppDependencies): Express {
  const app = express()
  app.disable('x-powered-by')
  // Entity tags are made of snapshot and query where they mean something, not of a body's bytes.
  app.disable('etag')
  // Parameters are read from the address itself, where repeated and empty ones can be seen.
  app.disable('query parser')
  app.enable('case sensitive routing')
  app.enable('strict routing')

  app.use(logRequests(log), countReplies(metrics), securityHeaders(), refuseBadRequestLine)
  const findKey = createFindKey(store)
  for (const path of new Set(routes.map((route) => route.path))) {
    const here = routes.filter((route) => route.path === path)
    // One layer for a path: each request is matched with every path that comes before its own.
    const layer = app.route(path).all(noteRoute(path))
    if (here.some((route) => route.limited === true)) layer.all(stateLimits(clock))
    for (const route of here) addRoute(layer, route, findKey)
    if (here.some((route) => route.openToPages === true)) layer.options(preflight(methodsOf(here)))
    layer.all(otherMethods(here))
  }
  app.use(unknownPath)
  app.use(answerFault(log))
  return app
}

function addRoute(layer: IRoute, route: Route, findKey: FindKey): void {
  const gates: Gate[] = [authenticate(findKey, route.access)]
  if (route.openToPages === true) gates.unshift(openToPages)
  if (route.typedErrors === true) gates.unshift(typeErrors)
  const method = route.method === 'GET' ? 'get' : 'post'
  layer[method](...gates, route.handle)
}

function securityHeaders(): Gate {
  const secure = helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    // Whether the origin is reached by TLS is the proxy's knowledge, and so is the promise that it will be.
    strictTransportSecurity: false,
    // Open data may be read from any page.
    crossOriginResourcePolicy: { policy: 'cross-origin' },
    // For browsers and plug-ins that are gone.
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xPoweredBy: false,
    xXssProtection: false,
  })
  return (request, reply, next) => {
    // Errors and states of the moment must not be cached; replies that may be say so themselves.
    reply.set('Cache-Control', 'no-store')
    secure(request, reply, next)
  }
}

// The parser is told to let a missing Host through (http/http-server.ts), since its own reply would have no body.
const refuseBadRequestLine: Gate = (request, _reply, next) => {
  if (request.httpVersion === '1.1' && request.headers.host === undefined) {
    throw new ApiError(400, 'The Host header is missing')
  }
  try {
    if (request.path.includes('%')) decodeURIComponent(request.path)
  } catch {
    throw new ApiError(400, 'The path is not encoded correctly: a % must be followed by UTF-8 in hexadecimal')
  }
  next()
}

function otherMethods(routes: readonly Route[]): Handler {
  const allow = methodsOf(routes)
  return (request, reply) => {
    if (request.method !== 'OPTIONS') {
      throw new ApiError(405, `Method ${request.method} is not allowed here; allowed: ${allow}`, {
        headers: { Allow: allow },
      })
    }
    reply.status(204).set('Allow', allow).end()
  }
}

function methodsOf(routes: readonly Route[]): string {
  const methods = routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
  return [...methods, 'OPTIONS'].join(', ')
}

const unknownPath: Handler = (request) => {
  throw new ApiError(404, `No such path: ${shorten(request.path)}; ${REFERENCE_PATH} tells those there are`)
}

function answerFault(log: Log): ErrorRequestHandler<object, unknown, unknown, unknown, CallLocals> {
  return (error: unknown, _request, reply, _next) => {
    const { requestId } = reply.locals
    const fault = asRefusal(error) ?? unexpected(requestId)
    if (fault.status === 500) log.error({ request_id: requestId, err: error }, 'request failed')
    // Half a reply cannot be taken back; a broken connection at least does not pass for a whole one.
    if (reply.headersSent) reply.destroy()
    else sendError(reply, fault)
  }
}

function unexpected(requestId: string): ApiError {
  return new ApiError(500, `Unexpected server error; quote request id ${requestId} when you report it`)
}

// What Express and its body parser throw carries a status; their 4xx are the client's doing.
function asRefusal(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error
  if (!(error instanceof Error) || !('status' in error) || typeof error.status !== 'number') return undefined
  if (error.status < 400 || error.status > 499) return undefined
  return new ApiError(error.status, error.message)
}
