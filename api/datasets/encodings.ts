import type { Request } from 'express'
import type { Format } from './formats.ts'

/** Codings of a reply, by preference. */
export const ENCODINGS = ['br', 'gzip', 'identity'] as const
export type Encoding = (typeof ENCODINGS)[number]

/** The coding a client prefers (RFC 9110, 12.5.3); as it is, where it names none or the format is compressed itself. */
export function chooseEncoding(request: Request, format: Format): Encoding {
  if (format === 'parquet' || request.headers['accept-encoding'] === undefined) return 'identity'
  const accepted = request.acceptsEncodings(...ENCODINGS)
  return ENCODINGS.find((encoding) => encoding === accepted) ?? 'identity'
}
