/**
 * The two kinds of expected errors: a rejected request, and a fault that the operator must fix. Any other error is a
 * bug.
 */
import { z } from 'zod'
import { UsageError } from '../../pipeline/program/program.ts'

/** The body of every error reply (CONTRACT 3). */
export const errorEnvelopeSchema = z.object({
  error: z.object({
    code: z.int().describe('The HTTP status.'),
    message: z.string(),
    metadata: z.record(z.string(), z.unknown()).nullable(),
  }),
  router_metadata: z.record(z.string(), z.unknown()).nullable(),
  user_id: z.string().nullable().describe("The caller's account, if it is known."),
})
export type ErrorEnvelope = z.infer<typeof errorEnvelopeSchema>

interface ApiErrorOptions {
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Headers of the reply, such as `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Rejects a request with this HTTP status; the caller sees the message. */
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

/** The operator can fix this: programs print the message alone and exit with 2. */
export class OperatorError extends UsageError {
  override readonly name = 'OperatorError'
}

/** Known facts of the request beside its error. */
interface EnvelopeFacts {
  readonly accountId?: string | undefined
  readonly routerMetadata?: Readonly<Record<string, unknown>> | undefined
}

/** The envelope of an error. */
export function errorEnvelope(
  { status, message, metadata }: Pick<ApiError, 'status' | 'message' | 'metadata'>,
  { accountId, routerMetadata }: EnvelopeFacts = {},
): ErrorEnvelope {
  return {
    error: { code: status, message, metadata: metadata ?? null },
    router_metadata: routerMetadata ?? null,
    user_id: accountId ?? null,
  }
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

/** The metadata of an error with its type. */
export function typedMetadata({ status, metadata }: ApiError): Readonly<Record<string, unknown>> {
  return { error_type: TYPES[status] ?? 'unmapped', ...metadata }
}
