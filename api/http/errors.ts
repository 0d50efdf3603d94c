/** The error of a rejected request, and the body in which it is sent (CONTRACT 3). */
import { z } from 'zod'

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

type Facts = Readonly<Record<string, unknown>>

/** Rejects a request with this HTTP status; the caller sees the message. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly metadata: Facts | undefined
  /** Headers of the reply, such as `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    message: string,
    { metadata, headers = {} }: { metadata?: Facts; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(message)
    this.status = status
    this.metadata = metadata
    this.headers = headers
  }
}

/** The envelope of an error, with what is known of its request. */
export function errorEnvelope(
  { status, message, metadata }: Pick<ApiError, 'status' | 'message' | 'metadata'>,
  { accountId, routerMetadata }: { accountId?: string | undefined; routerMetadata?: Facts | undefined } = {},
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
export function typedMetadata({ status, metadata }: ApiError): Facts {
  return { error_type: TYPES[status] ?? 'unmapped', ...metadata }
}
