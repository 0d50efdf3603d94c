import type { Access } from './accounts/authenticate.ts'
import type { Handler } from './call.ts'

/** Where the API begins; *origin* paths of the contract lie outside it. */
export const BASE_PATH = '/api/v1'

/** One operation. A GET answers HEAD as well. */
export interface Route {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly access: Access
  /** Whether the rate limits apply: the handler settles them, and every reply states them. */
  readonly limited?: boolean
  /** Takes a JSON body of at most this many bytes; without it a body is not read. */
  readonly bodyLimit?: number
  readonly handle: Handler
}
