/** Answers errors of the HTTP parser on the socket itself, since they never become a request. */
import { randomUUID } from 'node:crypto'
import { STATUS_CODES, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { CORS_HEADERS } from '../cors.ts'
import { ApiError, errorEnvelope } from '../errors.ts'
import type { Log } from '../../process/log.ts'
import type { LatestReply } from './express-server.ts'

const REFUSALS: Readonly<Record<string, ApiError>> = {
  HPE_HEADER_OVERFLOW: new ApiError(431, 'The request line and headers are too large'),
  ERR_HTTP_REQUEST_TIMEOUT: new ApiError(408, 'The request did not arrive in time'),
}
const NO_TUNNEL = new ApiError(400, 'This is not a proxy: CONNECT is not served')
const MALFORMED = new ApiError(400, 'Malformed HTTP request')

/** Answers parser errors, oversized headers and slow requests with the error envelope, and closes the connection. */
export function answerSocketFaults(server: Server, latestReply: LatestReply, log: Log): void {
  server.on('connect', (_request, socket) => sayLast(socket, rawReply(NO_TUNNEL, randomUUID())))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const latest = latestReply(socket)
    // A client that left needs no reply.
    if (!socket.writable || isAnsweredBeforeItsEnd(latest)) {
      socket.destroy()
      return
    }
    const requestId = randomUUID()
    const fault = REFUSALS[error.code ?? ''] ?? MALFORMED
    log.info({ request_id: requestId, status: fault.status, code: error.code }, 'request refused')
    const refuse = () => sayLast(socket, rawReply(fault, requestId))
    // Malformed bytes may follow a whole request: its reply is sent first.
    if (isAwaited(latest)) latest.once('finish', refuse)
    else refuse()
  })
}

/** Milliseconds for a client to read the error and close. */
const LAST_MS = 1000

/** Sends the reply and closes: a client may never close its side, which would hold the connection for ever. */
function sayLast(socket: Duplex, reply: string): void {
  // A client that has left needs no reply; a tunnel's socket has no other listener.
  socket.on('error', () => socket.destroy())
  socket.end(reply)
  setTimeout(() => socket.destroy(), LAST_MS).unref()
}

// The reply is sent or in progress, so an error in the rest of the body cannot be reported.
function isAnsweredBeforeItsEnd(reply: ServerResponse | undefined): boolean {
  return reply !== undefined && !reply.req.complete && reply.headersSent
}

function isAwaited(reply: ServerResponse | undefined): reply is ServerResponse {
  return reply !== undefined && reply.req.complete && !reply.writableFinished
}

function rawReply(fault: ApiError, requestId: string): string {
  const body = JSON.stringify(errorEnvelope(fault))
  return [
    `HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Cache-Control: no-store',
    // The path is not known, which may be one of the API.
    ...Object.entries(CORS_HEADERS).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}
