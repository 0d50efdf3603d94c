/** Writes replies: default headers, JSON with exact integers, bodies and errors; and reads the raw query string. */
import type { Request } from 'express'
import type { Headers, Reply } from './call.ts'
import { errorEnvelope, typedMetadata, type ApiError } from './errors.ts'

declare global {
  interface JSON {
    /** Missing in TypeScript's library: a value that is serialized as this text. */
    rawJSON(text: string): unknown
  }
}

/** Headers for browsers and caches, unless a handler sets others. */
export const DEFAULT_HEADERS: Headers = {
  // Errors and current states must not be cached; cacheable replies set their own value.
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'",
  // Open data may be read from any page.
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'X-Content-Type-Options': 'nosniff',
}

/** Lets scripts of any page read the reply and its headers (CONTRACT 4.6): keys are sent explicitly, cookies are not used. */
export const CORS_HEADERS: Headers = {
  'Access-Control-Allow-Origin': '*',
  // The star exposes all headers; some clients look for names.
  'Access-Control-Expose-Headers': '*, ETag, Last-Modified, Link, RateLimit',
}

/** Answers the preflight request of a browser. */
export function sendPreflight(reply: Reply, methods: string): void {
  reply.status(204).set({
    ...CORS_HEADERS,
    Allow: methods,
    'Access-Control-Allow-Methods': methods,
    // Clients send their own headers, such as the SDKs the app's name. `*` does not include Authorization.
    'Access-Control-Allow-Headers':
      'Accept, Authorization, If-Modified-Since, If-None-Match, If-Range, Range, *',
    'Access-Control-Max-Age': '86400',
  })
  reply.end()
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
}

/** The part of the URL after `?`, still encoded; empty if there is none. */
export function queryString(request: Request): string {
  const start = request.originalUrl.indexOf('?')
  return start === -1 ? '' : request.originalUrl.slice(start + 1)
}
