/** Writes replies: JSON with exact integers, bodies and errors; and reads the raw query string. */
import type { Request } from 'express'
import type { Reply } from './call.ts'
import { DEFAULT_HEADERS } from './default-headers.ts'
import { errorEnvelope, type ApiError } from './errors.ts'
import { typedMetadata } from './typed-errors.ts'

declare global {
  interface JSON {
    /** Missing in TypeScript's library: a value that is serialized as this text. */
    rawJSON(text: string): unknown
  }
}

/** Serializes a body; a bigint becomes an integer with all its digits. */
export function jsonText(body: unknown): string {
  return JSON.stringify(body, (_key, value: unknown) =>
    typeof value === 'bigint' ? JSON.rawJSON(value.toString()) : value,
  )
}

/** Ends the reply with this body; a HEAD gets the same headers without it. */
export function sendJson(reply: Reply, status: number, body: unknown): void {
  sendBody(reply, status, 'application/json; charset=utf-8', jsonText(body))
}

/** Ends the reply with this body; a string is sent as UTF-8 in one piece with the headers. */
export function sendBody(reply: Reply, status: number, contentType: string, body: Buffer | string): void {
  reply.status(status)
  reply.set({ 'Content-Type': contentType, 'Content-Length': String(Buffer.byteLength(body)) })
  reply.end(body)
}

/** Headers of a representation, which an error must not have. */
const OF_THE_REPRESENTATION = ['ETag', 'Last-Modified', 'Repr-Digest', 'Link', 'Content-Encoding']

/** Ends the reply with the error envelope (CONTRACT 3), without the headers of a representation. */
export function sendError(reply: Reply, fault: ApiError): void {
  beginError(reply, fault)
  const { caller, typesErrors, routerMetadata } = reply.locals
  const { status, message } = fault
  const metadata = typesErrors === true ? typedMetadata(fault) : fault.metadata
  const facts = { accountId: caller?.accountId, routerMetadata: routerMetadata?.() }
  sendJson(reply, status, errorEnvelope({ status, message, metadata }, facts))
}

/** Sets the headers of an error reply, for any body. */
export function beginError(reply: Reply, fault: ApiError): void {
  for (const name of OF_THE_REPRESENTATION) reply.removeHeader(name)
  reply.set({ ...DEFAULT_HEADERS, ...fault.headers })
  if (isStillComing(reply.req)) takeNoMore(reply)
}

function isStillComing({ complete, headers }: Request): boolean {
  const length = headers['content-length'] ?? '0'
  return !complete && (length !== '0' || headers['transfer-encoding'] !== undefined)
}

/** Milliseconds for a client to receive an error before the end of its request. */
const LAST_MS = 1000

/** Closes the connection after this reply: otherwise Node would read and discard the rest of the request. */
function takeNoMore(reply: Reply): void {
  const { req: request } = reply
  reply.set('Connection', 'close')
  // Node does not discard a body once something has started to read it.
  request.read(0)
  // A close with unread bytes resets the connection before a client that is still sending reads the reply.
  request.socket.destroySoon = () => {
    request.socket.end()
    setTimeout(() => request.socket.destroy(), LAST_MS).unref()
  }
}

/** The part of the URL after `?`, still encoded; empty if there is none. */
export function queryString(request: Request): string {
  const start = request.originalUrl.indexOf('?')
  return start === -1 ? '' : request.originalUrl.slice(start + 1)
}
