import type { IncomingHttpHeaders } from 'node:http'
import { httpDate } from './http-date.ts'

/** The validators of a representation: a strong entity tag, with quotes, and the time of its last change. */
export interface Validators {
  readonly etag: string
  readonly lastModified?: Date
}

const ENTITY_TAG = /(?:W\/)?"[^"]*"/g

/**
 * Whether a GET or HEAD with these headers gets a 304 (RFC 9110, 13.2.2): `If-None-Match` takes precedence over
 * `If-Modified-Since`.
 */
export function isNotModified(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const wanted = headers['if-none-match']
  if (wanted !== undefined) return wanted.trim() === '*' || entityTags(wanted).includes(etag)
  return isTimeOf(headers['if-modified-since'], lastModified)
}

/**
 * Whether `If-Match`, or else `If-Unmodified-Since`, names another representation (412; RFC 9110, 13.1.1 and 13.1.4). A
 * weak tag never matches, since it does not identify the bytes.
 */
export function isMismatch(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const wanted = headers['if-match']
  if (wanted !== undefined) return wanted.trim() !== '*' && !strongTags(wanted).includes(etag)
  const since = headers['if-unmodified-since']
  return since !== undefined && httpDate(since) !== undefined && !isTimeOf(since, lastModified)
}

/** Whether `If-Range`, if sent, names this representation by tag or time (RFC 9110, 13.1.5). */
export function isRangeOf(ifRange: string | undefined, { etag, lastModified }: Validators): boolean {
  return ifRange === undefined || ifRange.trim() === etag || isTimeOf(ifRange, lastModified)
}

/** Times are compared for equality, since a retraction makes an older representation current again (CONTRACT 4.6). */
function isTimeOf(field: string | undefined, lastModified: Date | undefined): boolean {
  return field !== undefined && lastModified !== undefined && httpDate(field) === lastModified.getTime()
}

function strongTags(list: string): string[] {
  return (list.match(ENTITY_TAG) ?? []).filter((tag) => !tag.startsWith('W/'))
}

// The comparison is weak (RFC 9110, 13.1.2): a proxy that compressed the body may have weakened the tag.
function entityTags(list: string): string[] {
  return (list.match(ENTITY_TAG) ?? []).map((tag) => tag.replace(/^W\//, ''))
}
