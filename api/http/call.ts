import type { Request, Response } from 'express'
import type { KeyKind } from '../accounts/keys/credentials.ts'

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
  requestId: string
  /** Path of the route that matched, with its parameters by name. */
  route?: string
  caller?: Caller
  /** Whether errors state their type. */
  typesErrors?: boolean
  /** What the caller wants to be told of how its request was routed. */
  routerMetadata?: () => Readonly<Record<string, unknown>>
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
