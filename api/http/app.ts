/**
 * The Express application: common steps of every request, the route table, one form for every error, and a record of
 * each reply.
 */
import { randomUUID } from 'node:crypto'
import express, { type ErrorRequestHandler, type Express, type NextFunction, type Request } from 'express'
import { Counter, type Registry } from 'prom-client'
import { createKeyFinder } from '../accounts/keys.ts'
import { fullQuota } from '../accounts/rate-limiter.ts'
import { BASE_PATH, HEALTH_PATH, REFERENCE_PATH } from '../paths.ts'
import { hideKeys, type Log } from '../process/log.ts'
import type { Queries } from '../store/store.ts'
import { shorten } from '../untrusted/json.ts'
import { sendErrorPage, wantsPage } from '../web/document.ts'
import {
  CORS_HEADERS,
  DEFAULT_HEADERS,
  sendError,
  sendPreflight,
  type CallLocals,
  type Clock,
  type Handler,
  type Reply,
} from './call.ts'
import { ApiError } from './errors.ts'
import type { Access, Route } from './route.ts'

type AppDependencies = {
  readonly routes: readonly Route[]
  readonly store: Queries
  readonly clock: Clock
  readonly log: Log
  /** Milliseconds that a connection may be silent. */
  readonly stallMs: number
  readonly metrics: Registry
}

/** Builds the application that serves the routes. */
export function createApp(dependencies: AppDependencies): Express {
  const { routes, log, metrics } = dependencies
  const app = express()
  app.disable('x-powered-by')
  // Entity tags are derived from snapshot and query, not from the body's bytes.
  app.disable('etag')
  // Parameters are read from the URL itself, where repeated and empty ones are visible.
  app.disable('query parser')
  app.enable('case sensitive routing')
  app.enable('strict routing')

  app.use(beginCall(recordReplies(log, metrics)))
  const authenticate = createAuthenticate(dependencies)
  for (const [path, sharing] of Map.groupBy(routes, (route) => route.path))
    app.route(path).all(answerPath(path, sharing, authenticate, dependencies))
  app.use(unknownPath)
  app.use(answerFault(log))
  return app
}

/** A name or an address, and a port (RFC 9112, 3.2). */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]+)(?::\d*)?$/i

/** Gives each request an id for `X-Request-Id`, and records the end of its reply. */
function beginCall(recordReply: (reply: Reply, ms: number) => void) {
  return (request: Request, reply: Reply, next: NextFunction) => {
    const began = performance.now()
    const requestId = randomUUID()
    reply.locals.requestId = requestId
    reply.set({ ...DEFAULT_HEADERS, 'X-Request-Id': requestId })
    reply.on('close', () => recordReply(reply, performance.now() - began))
    const host = request.headersDistinct['host'] ?? []
    // RFC 9112, 3.2; the parser's own reply would have no body.
    const isOld = request.httpVersion === '1.0' && host.length === 0
    if (!isOld && (host.length !== 1 || !HOST.test(host[0] ?? '')))
      throw new ApiError(400, 'Send one Host header, with a name or an address, and a port')
    next()
  }
}

type Authenticate = ReturnType<typeof createAuthenticate>

/**
 * A function that accepts callers with a suitable key (CONTRACT 2), and notes who they are. It throws a 401 for all others,
 * which names the fault of the sent credentials, never valid ones.
 */
function createAuthenticate({ store, clock }: AppDependencies) {
  const findKey = createKeyFinder(store)
  return async (access: Exclude<Access, 'open'>, request: Request, reply: Reply): Promise<void> => {
    const key = await findKey(tokenOf(request.headersDistinct['authorization']))
    if (key === undefined) throw unauthorized('Unknown key: send a key of this service')
    if (key.revoked_at !== null) throw unauthorized('This key was revoked: send another one')
    if (key.expires_at !== null && key.expires_at <= clock().toISOString())
      throw unauthorized(`This key expired at ${key.expires_at}: send another one`)
    // Noted before the check of the kind: the caller is known even if its key is of the wrong kind.
    reply.locals.caller = key
    if (access !== 'any' && key.kind !== access)
      throw unauthorized(`This path needs a key of kind ${access}; the one sent is of kind ${key.kind}`)
  }
}

const BEARER = /^bearer +(\S+) *$/i

function tokenOf(headers: readonly string[] = []): string {
  const [header, ...others] = new Set(headers)
  if (others.length > 0)
    throw unauthorized('There are several Authorization headers with different values: send one')
  if (header === undefined)
    throw unauthorized('No credentials: send the header "Authorization: Bearer <API_KEY>"')
  const token = BEARER.exec(header)?.[1]
  if (token === undefined)
    throw unauthorized('Malformed Authorization header: it must read "Bearer <API_KEY>"')
  return token
}

function unauthorized(message: string): ApiError {
  return new ApiError(401, message, { headers: { 'WWW-Authenticate': 'Bearer' } })
}

/** Answers requests to `path` with the route of their method, after a check of the key. */
function answerPath(
  path: string,
  routes: readonly Route[],
  authenticate: Authenticate,
  { clock, stallMs }: AppDependencies,
): Handler {
  const isLimited = routes.some((route) => route.limited === true)
  const begins = routes.flatMap(({ begin }) => begin ?? [])
  const hasCors = isApiPath(path) || routes.some((route) => route.cors === true)
  const byMethod = new Map(routes.map((route) => [route.method as string, route]))
  const get = byMethod.get('GET')
  if (get !== undefined) byMethod.set('HEAD', get)
  const allow = [...byMethod.keys(), 'OPTIONS'].join(', ')
  return async (request, reply) => {
    reply.locals.route = path
    if (hasCors) reply.set(CORS_HEADERS)
    if (isLimited) reply.set(fullQuota(clock()))
    for (const begin of begins) begin(request, reply)
    const { method } = request
    const route = byMethod.get(method)
    if (route === undefined && method === 'OPTIONS') return sendPreflight(reply, allow)
    if (route === undefined) {
      const headers = { Allow: allow }
      throw new ApiError(405, `Method ${method} is not allowed here; allowed: ${allow}`, { headers })
    }
    const { access, slow, handle } = route
    if (access !== 'open') await authenticate(access, request, reply)
    if (slow === true) request.socket.setTimeout(0)
    await handle(request, reply)
    // The rest of the reply is subject to the limit again.
    if (slow === true && !reply.writableFinished) request.socket.setTimeout(stallMs)
  }
}

const unknownPath: Handler = (request, reply) => {
  // Browsers send a preflight also to unknown paths: only after it does a script see the 404.
  if (request.method === 'OPTIONS' && isApiPath(request.path))
    return sendPreflight(reply.set(CORS_HEADERS), 'GET, HEAD, POST, OPTIONS')
  throw new ApiError(404, `No such path: ${shorten(request.path)}; ${REFERENCE_PATH} lists all paths`)
}

function answerFault(log: Log): ErrorRequestHandler<object, unknown, unknown, unknown, CallLocals> {
  return (error: unknown, request, reply, _next) => {
    const { requestId } = reply.locals
    const fault = asApiError(error, requestId)
    if (fault.status === 500) log.error({ request_id: requestId, err: error }, 'request failed')
    // Half a reply cannot be taken back, but a broken connection does not pass for a whole one.
    if (reply.headersSent) return void reply.destroy()
    if (isApiPath(request.path)) return sendError(reply.set(CORS_HEADERS), fault)
    reply.vary('Accept')
    if (wantsPage(request)) sendErrorPage(reply, fault)
    else sendError(reply, fault)
  }
}

function asApiError(error: unknown, requestId: string): ApiError {
  if (error instanceof ApiError) return error
  // Of Express: a parameter in the path that is not encoded correctly.
  if (error instanceof URIError)
    return new ApiError(400, `${error.message}: a % must be followed by UTF-8 in hexadecimal`)
  return new ApiError(500, `Unexpected server error; quote request id ${requestId} when you report it`)
}

/** Whether the path is below the base path, existing or not. */
function isApiPath(path: string): boolean {
  return path === BASE_PATH || path.startsWith(`${BASE_PATH}/`)
}

/**
 * Writes the log line of a finished or aborted reply, `ms` after its request, without query and headers, and counts it by
 * method, route (the pattern, never the path), status and format.
 */
function recordReplies(log: Log, registry: Registry) {
  const replies = new Counter({
    name: 'http_replies_total',
    help: 'Replies; status is aborted if the client left before the end.',
    labelNames: ['method', 'route', 'status', 'format'],
    registers: [registry],
  })
  return (reply: Reply, ms: number): void => {
    const { req: request, statusCode: status, writableFinished: isWhole } = reply
    const { requestId, route = 'unknown', caller } = reply.locals
    const line = {
      request_id: requestId,
      method: request.method,
      path: hideKeys(request.path),
      status,
      ms: Math.round(ms),
      account_id: caller?.account_id ?? null,
      key_id: caller?.id ?? null,
    }
    // Balancers poll it all the time.
    if (route !== HEALTH_PATH) log.info(isWhole ? line : { ...line, aborted: true }, 'request')
    const sent = isWhole ? String(status) : 'aborted'
    replies.inc({ method: request.method, route, status: sent, format: formatOf(reply) })
  }
}

/** The last word of the media type, such as json, csv, parquet or html: ours alone, so a closed set. */
function formatOf(reply: Reply): string {
  const type = reply.get('Content-Type')?.split(';', 1)[0]?.replace('.stream', '')
  return type?.split(/[/.]/).at(-1) ?? 'none'
}
