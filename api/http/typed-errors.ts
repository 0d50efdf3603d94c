/** Stable names of errors, for clients that need more than the status (CONTRACT 6). */
import type { ApiError } from './errors.ts'

/** For errors without a type of their own; errors about providers have one. */
const BY_STATUS: Readonly<Record<number, string>> = {
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
  return { error_type: BY_STATUS[status] ?? 'unmapped', ...metadata }
}
