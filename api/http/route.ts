import type { Access } from '../accounts/keys/authenticate.ts'
import type { Handler } from './call.ts'
import type { Operation } from '../openapi/operation.ts'

/** One operation. A GET answers HEAD as well. */
export interface Route {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly access: Access
  /** Whether scripts of any page may read the reply (CORS); under BASE_PATH they always may. */
  readonly cors?: boolean
  /** Whether the rate limits apply: the handler settles them, and every reply states them. */
  readonly limited?: boolean
  /** Whether every error states its `metadata.error_type` (CONTRACT 6). */
  readonly typedErrors?: boolean
  /** What the OpenAPI document says of it; without it the route stays out of the document. */
  readonly operation?: Operation
  readonly handle: Handler
}
