/** Reads conditional headers and Retry-After. Only the preferred form of an HTTP date is read (RFC 9110, 5.6.7). */
import type { IncomingHttpHeaders } from 'node:http'

/** The validators of a representation: a strong entity tag, with quotes, and the time of its last change. */
export type Validators = { readonly etag: string; readonly lastModified?: Date }

const tagsIn = (list: string): readonly string[] => list.match(/(?:W\/)?"[^"]*"/g) ?? []

/**
 * Whether a GET or HEAD with these headers gets a 304 (RFC 9110, 13.2.2): `If-None-Match` takes precedence over
 * `If-Modified-Since`. Tags match weakly: a proxy that compressed the body may have weakened one.
 */
export function isNotModified(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const wanted = headers['if-none-match']
  if (wanted === undefined) return isTimeOf(headers['if-modified-since'], lastModified)
  return wanted.trim() === '*' || tagsIn(wanted).some((tag) => tag.replace(/^W\//, '') === etag)
}

/**
 * Whether `If-Match`, or else `If-Unmodified-Since`, names another representation (412; RFC 9110, 13.1.1 and 13.1.4). A
 * weak tag never matches, since it does not identify the bytes.
 */
export function isMismatch(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const { 'if-match': wanted, 'if-unmodified-since': since } = headers
  if (wanted !== undefined) return wanted.trim() !== '*' && !tagsIn(wanted).includes(etag)
  return since !== undefined && httpDate(since) !== undefined && !isTimeOf(since, lastModified)
}

/** Whether `If-Range`, if sent, names this representation by tag or time (RFC 9110, 13.1.5). */
export function isRangeOf(ifRange: string | undefined, { etag, lastModified }: Validators): boolean {
  return ifRange === undefined || ifRange.trim() === etag || isTimeOf(ifRange, lastModified)
}

/** More seconds than this are a time since 1970. */
const EPOCH_SECONDS = 1e9

/**
 * Reads the header Retry-After (RFC 9110, 10.2.3): seconds or a date, and as some send it fractions of seconds, seconds
 * with their unit, or the seconds or milliseconds since 1970.
 * @returns milliseconds from now; undefined if it is missing or has none of these.
 */
export function retryAfterMs(header: string | string[] | undefined): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? ''
  const seconds = /^\d+(?:\.\d+)?s?$/.test(text) ? Number.parseFloat(text) : undefined
  if (seconds !== undefined && seconds < EPOCH_SECONDS) return seconds * 1000
  const isInMs = seconds !== undefined && seconds > EPOCH_SECONDS * 1000
  const time = seconds === undefined ? httpDate(text) : seconds * (isInMs ? 1 : 1000)
  return time === undefined ? undefined : Math.max(0, time - Date.now())
}

/** Times are compared for equality, since a retraction makes an older representation current again (CONTRACT 4.6). */
function isTimeOf(field: string | undefined, lastModified: Date | undefined): boolean {
  return field !== undefined && lastModified !== undefined && httpDate(field) === lastModified.getTime()
}

/** The time of `Fri, 20 Nov 2026 02:00:00 GMT` in ms since 1970; undefined for any other text. */
function httpDate(text: string): number | undefined {
  const time = Date.parse(text)
  return !Number.isNaN(time) && new Date(time).toUTCString() === text ? time : undefined
}
