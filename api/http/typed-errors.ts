/** Stable names of errors, for routes whose clients tell them apart by more than the status (CONTRACT 6). */
import type { ApiError } from './errors.ts'

/** Of the errors that name no type themselves, as those about providers do. */
const BY_STATUS: Readonly<Record<number, string>> = {
  400: 'invalid_request',
  401: 'authentication',
  413: 'payload_too_large',
  415: 'invalid_request',
  500: 'server',
}

/** The metadata of an error with its type in it. */
export function typedMetadata({ status, metadata }: ApiError): Readonly<Record<string, unknown>> {
  return { error_type: BY_STATUS[status] ?? 'unmapped', ...metadata }
}
