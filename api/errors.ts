/**
 * The two kinds of expected failure: a request that is refused, and what the operator must put right.
 * Everything else is an ordinary error and means a fault of ours.
 */

/** The body of every error reply (CONTRACT 3). */
export interface ErrorEnvelope {
  readonly error: {
    readonly code: number
    readonly message: string
    readonly metadata: Readonly<Record<string, unknown>> | null
  }
  readonly router_metadata: Readonly<Record<string, unknown>> | null
  readonly user_id: string | null
}

interface ApiErrorOptions {
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Headers the reply carries, `Retry-After` for instance. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A request is refused with this HTTP status; the message is for the caller's eyes. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly metadata: Readonly<Record<string, unknown>> | undefined
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, options: ApiErrorOptions = {}) {
    super(message)
    this.status = status
    this.metadata = options.metadata
    this.headers = options.headers ?? {}
  }
}

/** The operator can put this right: entries print the message alone and exit with 2. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** The envelope of a refusal; `accountId` where the caller is known. */
export function errorEnvelope(fault: ApiError, accountId?: string): ErrorEnvelope {
  return {
    error: { code: fault.status, message: fault.message, metadata: fault.metadata ?? null },
    router_metadata: null,
    user_id: accountId ?? null,
  }
}
