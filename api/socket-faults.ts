/** Faults that never become a request: what the HTTP parser refuses is answered on the socket itself. */
import { randomUUID } from 'node:crypto'
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { ApiError, errorEnvelope } from './errors.ts'
import type { Log } from './log.ts'

const REFUSALS: Readonly<Record<string, ApiError>> = {
  HPE_HEADER_OVERFLOW: new ApiError(431, 'The request line and headers are too large'),
  ERR_HTTP_REQUEST_TIMEOUT: new ApiError(408, 'The request did not arrive in time'),
}
const MALFORMED = new ApiError(400, 'Malformed HTTP request')

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Answers parser errors, oversized headers and slow requests with the error envelope, and hangs up. */
export function answerSocketFaults(server: Server, log: Log): void {
  const underWay = new WeakMap<Duplex, Exchange>()
  server.on('request', (request, response) => underWay.set(request.socket, { request, response }))
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable || isBeingAnswered(underWay.get(socket))) {
      socket.destroy()
      return
    }
    const requestId = randomUUID()
    const fault = REFUSALS[error.code ?? ''] ?? MALFORMED
    log.info({ request_id: requestId, status: fault.status, code: error.code }, 'request refused')
    socket.end(rawReply(fault, requestId))
  })
}

// The fault may lie in the body of a request that waits for it, or in what came after a whole request; the reply
// to the latter must not get another one into its middle.
function isBeingAnswered(exchange: Exchange | undefined): boolean {
  if (exchange === undefined || exchange.response.writableFinished) return false
  return exchange.request.complete || exchange.response.headersSent
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
