/** One request while it is answered: its state, and the ways to end its reply. */
import type { Request, Response } from 'express'
import type { StoredKey } from '../accounts/keys.ts'
import { ApiError, type ErrorEnvelope } from './errors.ts'

/** Returns the time; a parameter, so that tests can move it. */
export type Clock = () => Date

/** The app that a request names; anybody may claim anything. */
export type NamedApp = {
  /** UNATTRIBUTED_APP_ID (pipeline/contract/dataset.ts) if nothing names it. */
  readonly id: number
  readonly foundBy: 'address' | 'title' | 'nothing'
  readonly columns: AppColumns
}

/** Columns of raw usage (CONTRACT 7); the nightly run, which alone registers apps, derives the id from them. */
type AppColumns = {
  /** UNATTRIBUTED_APP_ID if the request names no app; otherwise absent. */
  readonly app_id?: number
  /** The address or name of the app, its title, and its categories with commas, as sent; absent without an app. */
  readonly app?: string
  readonly app_title?: string | null
  readonly app_categories?: string | null
}

export type Headers = Readonly<Record<string, string>>

/** What is known of the request so far. */
export type CallLocals = {
  requestId: string
  /** Path of the matched route, with the names of its parameters. */
  route?: string
  /** The accepted key of the sender. */
  caller?: StoredKey
  app?: NamedApp
  /** Whether errors state their type. */
  typedErrors?: boolean
  /** The metadata about routing that the caller requested. */
  routerMetadata?: () => Readonly<Record<string, unknown>>
}

/** A reply in progress; `locals` has the state of its call. */
export type Reply = Response<unknown, CallLocals>

/** Answers a request, or throws an ApiError. */
export type Handler = (request: Request, reply: Reply) => void | Promise<void>

/** Aborts when the client disconnects before the end of its reply: nobody waits for the work any more. */
export function clientDisconnected(reply: Reply): AbortSignal {
  const disconnected = new AbortController()
  const abort = () => {
    if (!reply.writableFinished) disconnected.abort(new ApiError(503, 'The client has disconnected'))
  }
  if (reply.destroyed || reply.closed) abort()
  else reply.once('close', abort)
  return disconnected.signal
}

/** The part of the URL after `?`, still encoded; empty if there is none. */
export function queryString({ originalUrl }: Request): string {
  return originalUrl.replace(/^[^?]*\??/, '')
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

/** Headers for browsers and caches, unless a handler sets others. */
export const DEFAULT_HEADERS: Headers = {
  // Errors and current states must not be cached; cacheable replies set their own value.
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'",
  // Open data may be read from any page.
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'X-Content-Type-Options': 'nosniff',
}

/** Headers of a representation, which an error must not have. */
const REPRESENTATION_HEADERS = ['ETag', 'Last-Modified', 'Repr-Digest', 'Link', 'Content-Encoding']

/** Sets the headers of an error reply, for any body. */
export function beginError(reply: Reply, fault: ApiError): void {
  for (const name of REPRESENTATION_HEADERS) reply.removeHeader(name)
  reply.set({ ...DEFAULT_HEADERS, ...fault.headers })
}

/** The `error_type` of errors without one of their own (CONTRACT 6); errors about providers have one. */
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request',
  401: 'authentication',
  413: 'payload_too_large',
  415: 'invalid_request',
  429: 'rate_limit_exceeded',
  500: 'server',
  503: 'server',
}

/** The envelope of an error, with what is known of its request. */
export function errorEnvelope(
  { status, message, metadata }: ApiError,
  { caller, typedErrors, routerMetadata }: Partial<CallLocals> = {},
): ErrorEnvelope {
  const typed = { error_type: TYPES[status] ?? 'unmapped', ...metadata }
  return {
    error: { code: status, message, metadata: typedErrors === true ? typed : (metadata ?? null) },
    router_metadata: routerMetadata?.() ?? null,
    user_id: caller?.account_id ?? null,
  }
}

/** Ends the reply with the error envelope (CONTRACT 3). */
export function sendError(reply: Reply, fault: ApiError): void {
  beginError(reply, fault)
  sendJson(reply, fault.status, errorEnvelope(fault, reply.locals))
}

/** Lets scripts of any page read the reply and its headers (CONTRACT 4.6): keys are sent explicitly, cookies are not used. */
export const CORS_HEADERS: Headers = {
  'Access-Control-Allow-Origin': '*',
  // The star exposes all headers; some clients look for names.
  'Access-Control-Expose-Headers': '*, ETag, Last-Modified, Link, RateLimit',
}

/** Answers an OPTIONS; with CORS_HEADERS it allows what the preflight of a browser asks for. */
export function sendPreflight(reply: Reply, methods: string): void {
  reply.status(204).set({
    Allow: methods,
    'Access-Control-Allow-Methods': methods,
    // Clients send their own headers, such as the SDKs the app's name. `*` does not include Authorization.
    'Access-Control-Allow-Headers':
      'Accept, Authorization, If-Modified-Since, If-None-Match, If-Range, Range, *',
    'Access-Control-Max-Age': '86400',
  })
  reply.end()
}
