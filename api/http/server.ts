/** The HTTP server around the application: limits of connections, start, graceful end, and errors without a request. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type * as http from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Express } from 'express'
import { z } from 'zod'
import type { Log } from '../process/log.ts'
import { messageOf } from '../process/system-errors.ts'
import { CORS_HEADERS, DEFAULT_HEADERS, errorEnvelope } from './call.ts'
import { ApiError } from './errors.ts'

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

/** Requests of one connection; the last reply says that it closes. */
const REQUESTS_PER_SOCKET = 1000

/** File descriptors that no client can take: the store, snapshots, records and providers need some. */
const RESERVED_DESCRIPTORS = 64

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
  server.maxRequestsPerSocket = REQUESTS_PER_SOCKET
  limitConnections(server, log)
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
    const earlier = replies.get(request.socket)
    replies.set(request.socket, response)
    // A target with an origin (RFC 9112, 3.2.2): Express would answer an invalid one itself.
    request.url = request.url?.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*\/?/i, '/')
    // Node drops what follows such a request in its packet: the next packet may begin in the middle of a request.
    if (request.headers.upgrade !== undefined) response.setHeader('Connection', 'close')
    if (earlier === undefined || earlier.writableFinished) app(request, response)
    // Thousands of pipelined requests fit into one packet: they take turns with those of other connections.
    else earlier.once('close', () => setImmediate(() => request.socket.destroyed || app(request, response)))
  }

  // An unknown expectation may be ignored (RFC 9110, 10.1.1); Node's own error would have no body. The reader of the body
  // sends the 100 (request-body.ts).
  server.on('request', answer).on('checkExpectation', answer).on('checkContinue', answer)
  // Node would answer each request beyond the limit with a 503, and keep the connection.
  server.on('dropRequest', (_request, socket) => {
    const last = replies.get(socket)
    replies.delete(socket)
    if (last?.closed === true) socket.destroy()
    else last?.once('close', () => socket.destroy())
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const reply = replies.get(socket)
    const send = () => {
      // The parser reports each further packet too.
      if (socket.writableEnded) return
      const fault = parserFault(error.code, requestMs)
      const requestId = randomUUID()
      log.info({ request_id: requestId, status: fault.status, code: error.code }, 'request refused')
      socket.end(rawReply(fault, requestId))
      // A client may never close its side, which would hold the connection for ever.
      setTimeout(() => socket.destroy(), LINGER_MS).unref()
    }
    if (socket.writableEnded) return
    // A client that has left needs no reply, nor does one whose request is already being answered.
    if (!socket.writable || (reply?.headersSent === true && !reply.req.complete)) socket.destroy()
    // Malformed bytes may follow a whole request: its reply is sent first.
    else if (reply !== undefined && reply.req.complete && !reply.writableFinished) reply.once('finish', send)
    else send()
  })
}

const reportSchema = z.object({ userLimits: z.object({ open_files: z.object({ soft: z.int() }) }) })

/** Closes connections beyond the limit of open files at once: without descriptors no snapshot can be opened. */
function limitConnections(server: http.Server, log: Log): void {
  // `unlimited` is no number.
  const report = reportSchema.safeParse(process.report.getReport()).data
  if (report === undefined) return
  server.maxConnections = Math.max(1, report.userLimits.open_files.soft - RESERVED_DESCRIPTORS)
  const message = 'too many connections: new ones are closed; raise the limit of open files (ulimit -n)'
  server.once('drop', () => log.warn({ connections: server.maxConnections }, message))
}

/** Why the server cannot listen on host and port, such as a port in use; empty if it can. */
export async function addressFaults(host: string, port: number): Promise<string[]> {
  const server = createServer()
  try {
    await once(server.listen(port, host), 'listening')
    return []
  } catch (error) {
    return [
      `HOST and PORT cannot be used: ${messageOf(error)}. Set PORT to a free one above 1023, or 0 for any, and HOST to an address of this machine`,
    ]
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
