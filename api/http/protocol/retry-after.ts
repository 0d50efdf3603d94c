import { httpDate } from './http-date.ts'

/**
 * Reads the header Retry-After (RFC 9110, 10.2.3).
 * @returns milliseconds from now; undefined if it is missing or has neither seconds nor a date.
 */
export function retryAfterMs(header: string | string[] | undefined): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim()
  if (text === undefined) return undefined
  if (/^\d+$/.test(text)) return Number(text) * 1000
  const time = httpDate(text)
  return time === undefined ? undefined : Math.max(0, time - Date.now())
}
