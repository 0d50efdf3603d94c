/** The HTTP server around the application: limits of connections, start, graceful end, and errors without a request. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type * as http from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Express } from 'express'
import type { Log } from '../process/log.ts'
import { messageOf } from '../process/system-errors.ts'
import { CORS_HEADERS, DEFAULT_HEADERS } from './call.ts'
import { ApiError, errorEnvelope } from './errors.ts'

// An import reads every name of the module, and some of them load the code of fetch and WebSocket: 6 MB.
const { createServer: createHttpServer, maxHeaderSize, STATUS_CODES } = process.getBuiltinModule('node:http')

/** Limits for one client, in milliseconds. */
export const HTTP_LIMITS = {
  /** For the whole request to arrive. */
  requestMs: 60_000,
  /** Without a byte in or out a connection is closed, but for requests that may wait. */
  stallMs: 60_000,
  /** For an idle connection; above the minute of most proxies, since the side that sends requests should close first. */
  idleMs: 65_000,
  /** For a load balancer to poll readiness once more before a stopping service closes its port. */
  unreadyMs: 10_000,
  /**
   * For requests in flight to finish once the port is closed. With the last second, and five more for chat to record its
   * calls (CHAT_LIMITS), 30 seconds; with `unreadyMs` 40.
   */
  stopMs: 24_000,
}
export type HttpLimits = Readonly<typeof HTTP_LIMITS>

/** Milliseconds for a client to receive a final error and close. */
const LINGER_MS = 1000

/**
 * Serves `app`; resolves to the address for clients, `http://host:port`, and to a function that stops accepting, lets
 * requests in flight finish and closes idle connections.
 * @param address.beforeCut called when a stopping service waits no longer; open replies have a second to send an error.
 * @throws if the address is not available.
 */
export async function listen(
  app: Express,
  { host, port, beforeCut }: { readonly host: string; readonly port: number; readonly beforeCut: () => void },
  { log, limits }: { readonly log: Log; readonly limits: HttpLimits },
) {
  const server = createHttpServer({
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: Math.min(limits.requestMs, 5000),
    // The application rejects these requests with the error envelope.
    requireHostHeader: false,
  })
  answerRequests(server, app, log, limits.requestMs)
  server.setTimeout(limits.stallMs)
  await once(server.listen(port, host), 'listening')
  return {
    origin: originOf(host, server.address()),
    close: () => closeGracefully(server, limits.stopMs, beforeCut),
  }
}

/** The error for a request that the parser gives up, by its code. */
function parserFault(code: string | undefined, requestMs: number): ApiError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new ApiError(408, `The request did not arrive within ${requestMs / 1000} seconds`)
  if (code === 'HPE_HEADER_OVERFLOW')
    return new ApiError(431, `The request line and headers are too large: at most ${maxHeaderSize} bytes`)
  return new ApiError(400, 'Malformed HTTP request')
}

/**
 * Hands requests to `app`. Parser errors, oversized headers and slow requests, which never reach it, get the error
 * envelope, and their connection is closed.
 */
function answerRequests(server: http.Server, app: Express, log: Log, requestMs: number): void {
  /** The reply to the latest request of each connection. */
  const replies = new WeakMap<Duplex, http.ServerResponse>()

  function answer(request: http.IncomingMessage, response: http.ServerResponse): void {
    replies.set(request.socket, response)
    // A target with an origin (RFC 9112, 3.2.2): Express would answer an invalid one itself.
    request.url = request.url?.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*\/?/i, '/')
    app(request, response)
  }

  // An unknown expectation may be ignored (RFC 9110, 10.1.1); Node's own error would have no body.
  server.on('request', answer).on('checkExpectation', answer)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // The final error has been sent: the parser reports each further packet too.
    if (socket.writableEnded) return
    const reply = replies.get(socket)
    const isBeingAnswered =
      reply?.req.complete === true ? !reply.writableFinished : reply?.headersSent === true
    if (!socket.writable || isBeingAnswered) return void socket.destroy()
    const fault = parserFault(error.code, requestMs)
    const requestId = randomUUID()
    log.info({ request_id: requestId, status: fault.status, code: error.code }, 'request refused')
    socket.end(rawReply(fault, requestId))
    // A client may never close its side, which would hold the connection for ever.
    setTimeout(() => socket.destroy(), LINGER_MS).unref()
  })
}

/** Why the server cannot listen on host and port, such as a port in use; empty if it can. */
export async function addressFaults(host: string, port: number): Promise<string[]> {
  const server = createServer()
  try {
    await once(server.listen(port, host), 'listening')
    return []
  } catch (error) {
    return [`HOST and PORT cannot be used: ${messageOf(error)}`]
  } finally {
    server.close()
  }
}

/** The address where clients reach a server that listens on `host`. */
function originOf(host: string, address: AddressInfo | string | null): string {
  if (address === null || typeof address === 'string') throw new TypeError('The server listens on no port')
  // Clients cannot send requests to the wildcard addresses.
  const reachable = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${address.port}`
}

async function closeGracefully(server: http.Server, stopMs: number, beforeCut: () => void): Promise<void> {
  // A kept-alive connection becomes idle after its reply, and would block the end.
  server.prependListener('request', (_request, response) => response.setHeader('Connection', 'close'))
  const timers = [
    setInterval(() => server.closeIdleConnections(), 50),
    setTimeout(beforeCut, stopMs),
    setTimeout(() => server.closeAllConnections(), stopMs + LINGER_MS),
  ]
  server.close()
  await once(server, 'close')
  for (const timer of timers) clearTimeout(timer)
}

function rawReply(fault: ApiError, requestId: string): string {
  const body = JSON.stringify(errorEnvelope(fault))
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    'X-Request-Id': requestId,
    ...DEFAULT_HEADERS,
    // The path is not known, which may be one of the API.
    ...CORS_HEADERS,
    Connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status]}`, ...lines, '', body].join('\r\n')
}
