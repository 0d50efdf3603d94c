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

/** The 503 of a lack that passes: try again after these seconds. */
export function busy(reason: string, seconds = 2): ApiError {
  const headers = { 'Retry-After': String(seconds) }
  return new ApiError(503, `${reason}; try again in ${seconds} seconds`, { headers })
}
