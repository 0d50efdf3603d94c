/** How replies are written: JSON with exact integers, and the query string before anything interprets it. */
import type { Request } from 'express'
import type { Reply } from './call.ts'
import { DEFAULT_HEADERS } from './default-headers.ts'
import { errorEnvelope, type ApiError } from './errors.ts'
import { typedMetadata } from './typed-errors.ts'

declare global {
  interface JSON {
    /** Part of the runtime, not yet of TypeScript's library: a value that is written as this very text. */
    rawJSON(text: string): unknown
  }
}

/** JSON text of a body; a bigint becomes an integer with all its digits. */
export function jsonText(body: unknown): string {
  return JSON.stringify(body, (_key, value: unknown) =>
    typeof value === 'bigint' ? JSON.rawJSON(value.toString()) : value,
  )
}

/** Ends the reply with this body; a HEAD gets the same headers without it. */
export function sendJson(reply: Reply, status: number, body: unknown): void {
  sendBody(reply, status, 'application/json; charset=utf-8', jsonText(body))
}

/** Ends the reply with this body; a text, UTF-8, goes out in one piece with the headers. */
export function sendBody(reply: Reply, status: number, contentType: string, body: Buffer | string): void {
  reply.status(status)
  reply.set({ 'Content-Type': contentType, 'Content-Length': String(Buffer.byteLength(body)) })
  reply.end(body)
}

/** What is said of a representation before it turns out that there is none. */
const OF_THE_REPRESENTATION = ['ETag', 'Last-Modified', 'Repr-Digest', 'Link', 'Content-Encoding']

/** Ends the reply with the error envelope (CONTRACT 3), which must not be kept for what was asked. */
export function sendError(reply: Reply, fault: ApiError): void {
  beginError(reply, fault)
  const { caller, typesErrors, routerMetadata } = reply.locals
  const { status, message } = fault
  const metadata = typesErrors === true ? typedMetadata(fault) : fault.metadata
  const facts = { accountId: caller?.accountId, routerMetadata: routerMetadata?.() }
  sendJson(reply, status, errorEnvelope({ status, message, metadata }, facts))
}

/** Sets the headers of a reply with an error, whatever its body is. */
export function beginError(reply: Reply, fault: ApiError): void {
  for (const name of OF_THE_REPRESENTATION) reply.removeHeader(name)
  reply.set({ ...DEFAULT_HEADERS, ...fault.headers })
  if (isStillComing(reply.req)) takeNoMore(reply)
}

function isStillComing({ complete, headers }: Request): boolean {
  const length = headers['content-length'] ?? '0'
  return !complete && (length !== '0' || headers['transfer-encoding'] !== undefined)
}

/** Milliseconds that a client gets to take a refusal that comes before the end of its request. */
const LAST_MS = 1000

/** Ends the connection after this reply: Node would take in, and throw away, what is still to come of the request. */
function takeNoMore(reply: Reply): void {
  const { req: request } = reply
  reply.set('Connection', 'close')
  // What somebody has begun to read Node leaves to them.
  request.read(0)
  // To close with bytes unread would break the connection before a client that is still sending reads the reply.
  request.socket.destroySoon = () => {
    request.socket.end()
    setTimeout(() => request.socket.destroy(), LAST_MS).unref()
  }
}

/** What follows the `?` of the request's address, still encoded; empty when there is none. */
export function queryString(request: Request): string {
  const start = request.originalUrl.indexOf('?')
  return start === -1 ? '' : request.originalUrl.slice(start + 1)
}
