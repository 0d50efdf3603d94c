import type { Request, Response } from 'express'
import type { KeyKind } from '../accounts/keys/credentials.ts'
import type { QuotaHeaders } from '../accounts/limits/quota-headers.ts'
import type { HeadLines } from './ready-head.ts'

/** Tells the time; comes in as a parameter so that tests can move it. */
export type Clock = () => Date

/** Who sent the request, once its key was accepted. */
export interface Caller {
  readonly accountId: string
  readonly keyId: string
  readonly kind: KeyKind
}

/** Headers by name. */
export type Headers = Readonly<Record<string, string>>

/** What is known of one request while it is being answered. */
export type CallLocals = {
  /** The lines that a reply's head ends with where the connection is kept; set by the server. */
  readonly keepAlive?: HeadLines
  requestId: string
  /** Headers of every reply to this path, errors included; what answers may give others of the same name. */
  standing: Headers
  /** How the caller stands with the rate limits, as headers; on paths that have limits. */
  limits?: QuotaHeaders
  /** Path of the route that matched, with its parameters by name. */
  route?: string
  caller?: Caller
  /** Whether errors state their type. */
  typesErrors?: boolean
  /** What the caller wants to be told of how its request was routed. */
  routerMetadata?: () => Readonly<Record<string, unknown>>
  /** Content type of a reply whose head was written in one piece. */
  contentType?: string
}

/** A reply under way; `locals` carries what is known of the call. */
export type Reply = Response<unknown, CallLocals>

/** A request and the reply to it. */
export interface Call {
  readonly request: Request
  readonly reply: Reply
}

/** Answers a request, or throws an ApiError. */
export type Handler = (request: Request, reply: Reply) => void | Promise<void>
