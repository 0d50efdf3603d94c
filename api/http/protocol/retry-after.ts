import { httpDate } from './http-date.ts'

/**
 * The header Retry-After of a server that wants to be left alone for a while (RFC 9110, 10.2.3).
 *
 * @returns milliseconds from now; undefined where the header is missing or says neither seconds nor a date.
 */
export function retryAfterMs(header: string | string[] | undefined): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim()
  if (text === undefined) return undefined
  if (/^\d+$/.test(text)) return Number(text) * 1000
  const time = httpDate(text)
  return time === undefined ? undefined : Math.max(0, time - Date.now())
}
