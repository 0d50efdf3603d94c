/** The state of one request while it is answered. */
import type { Request, Response } from 'express'
import type { KeyKind } from '../accounts/credentials.ts'
import type { StoredLimits } from '../accounts/key-store.ts'
import { ApiError } from './errors.ts'

/** Returns the time; a parameter, so that tests can move it. */
export type Clock = () => Date

/** The sender of a request, once its key was accepted. */
export interface Caller {
  readonly accountId: string
  readonly keyId: string
  readonly kind: KeyKind
  /** Limits of the key for chat. */
  readonly limits: StoredLimits
}

export type Headers = Readonly<Record<string, string>>

/** What is known of the request so far. */
export type CallLocals = {
  requestId: string
  /** Path of the matched route, with the names of its parameters. */
  route?: string
  caller?: Caller
  /** Whether errors state their type. */
  typesErrors?: boolean
  /** The metadata about routing that the caller requested. */
  routerMetadata?: () => Readonly<Record<string, unknown>>
}

/** A reply in progress; `locals` has the state of its call. */
export type Reply = Response<unknown, CallLocals>

export interface Call {
  readonly request: Request
  readonly reply: Reply
}

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
