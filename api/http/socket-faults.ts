/** Faults that never become a request: what the HTTP parser refuses is answered on the socket itself. */
import { randomUUID } from 'node:crypto'
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { ApiError, errorEnvelope } from '../errors.ts'
import type { Log } from '../log.ts'

const REFUSALS: Readonly<Record<string, ApiError>> = {
  HPE_HEADER_OVERFLOW: new ApiError(431, 'The request line and headers are too large'),
  ERR_HTTP_REQUEST_TIMEOUT: new ApiError(408, 'The request did not arrive in time'),
}
const NO_TUNNEL = new ApiError(400, 'This is not a proxy: CONNECT is not served')
const MALFORMED = new ApiError(400, 'Malformed HTTP request')

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Answers parser errors, oversized headers and slow requests with the error envelope, and hangs up. */
export function answerSocketFaults(server: Server, log: Log): void {
  const underWay = new WeakMap<Duplex, Exchange>()
  server.on('request', (request, response) => underWay.set(request.socket, { request, response }))
  server.on('connect', (_request, socket) => sayLast(socket, rawReply(NO_TUNNEL, randomUUID())))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const exchange = underWay.get(socket)
    // A client that left needs no reply.
    if (!socket.writable || isAnsweredBeforeItsEnd(exchange)) {
      socket.destroy()
      return
    }
    const requestId = randomUUID()
    const fault = REFUSALS[error.code ?? ''] ?? MALFORMED
    log.info({ request_id: requestId, status: fault.status, code: error.code }, 'request refused')
    const refuse = () => sayLast(socket, rawReply(fault, requestId))
    // What is malformed may follow a whole request, whose reply comes first.
    if (isAwaitingReply(exchange)) exchange.response.once('finish', refuse)
    else refuse()
  })
}

/** Milliseconds that a client gets to take a refusal and hang up. */
const LAST_MS = 1000

/** Sends the reply and hangs up: the client may leave its side open, which would hold the connection for good. */
function sayLast(socket: Duplex, reply: string): void {
  // A client that has left needs no reply; a tunnel's socket is listened to by nobody else.
  socket.on('error', () => socket.destroy())
  socket.end(reply)
  setTimeout(() => socket.destroy(), LAST_MS).unref()
}

// The reply is out or on its way, so a fault in the rest of the body can no longer be told.
function isAnsweredBeforeItsEnd(exchange: Exchange | undefined): boolean {
  return exchange !== undefined && !exchange.request.complete && exchange.response.headersSent
}

function isAwaitingReply(exchange: Exchange | undefined): exchange is Exchange {
  return exchange !== undefined && exchange.request.complete && !exchange.response.writableFinished
}

function rawReply(fault: ApiError, requestId: string): string {
  const body = JSON.stringify(errorEnvelope(fault))
  return [
    `HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Cache-Control: no-store',
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}
