/** What a route declares: its path, who may call it, and what the application does around its handler. */
import type { Request } from 'express'
import type { KeyKind } from '../accounts/keys.ts'
import type { Operation } from '../openapi/operation.ts'
import type { Handler, Reply } from './call.ts'

/** The keys that a route accepts: none needed, any valid one, or one kind. */
export type Access = 'open' | 'any' | KeyKind

/** One operation. A GET also answers HEAD. */
export type Route = {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly access: Access
  /** Whether scripts of any page may read the reply (CORS); under BASE_PATH they always may. */
  readonly cors?: boolean
  /** Whether the rate limits apply: the handler counts, and every reply states them. */
  readonly limited?: boolean
  /** Whether the handler bounds its own time: its connection may be silent for longer than others. */
  readonly slow?: boolean
  /** Runs for each request to the path, before its method and key are checked: for what every reply has. */
  readonly begin?: (request: Request, reply: Reply) => void
  /** The description for the OpenAPI document; a route without one is left out. */
  readonly operation?: Operation
  readonly handle: Handler
}
