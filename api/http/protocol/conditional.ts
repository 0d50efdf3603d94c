import type { IncomingHttpHeaders } from 'node:http'
import { httpDate } from './http-date.ts'

/** What identifies a representation: a strong entity tag, quotes included, and when it last changed. */
export interface Validators {
  readonly etag: string
  readonly lastModified?: Date
}

const ENTITY_TAG = /(?:W\/)?"[^"]*"/g

/**
 * Whether a GET or HEAD with these headers is answered with 304 (RFC 9110, 13.2.2): `If-None-Match` decides
 * where it is present, `If-Modified-Since` otherwise.
 */
export function isNotModified(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const wanted = headers['if-none-match']
  if (wanted !== undefined) return wanted.trim() === '*' || entityTags(wanted).includes(etag)
  return isTimeOf(headers['if-modified-since'], lastModified)
}

/**
 * Whether `If-Match`, or else `If-Unmodified-Since`, names another representation (412; RFC 9110, 13.1.1 and 13.1.4). A weak
 * tag never matches: it does not say that the bytes are the same.
 */
export function isMismatch(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const wanted = headers['if-match']
  if (wanted !== undefined) return wanted.trim() !== '*' && !strongTags(wanted).includes(etag)
  const since = headers['if-unmodified-since']
  return since !== undefined && httpDate(since) !== undefined && !isTimeOf(since, lastModified)
}

/** Whether `If-Range`, where it is sent, names this representation (RFC 9110, 13.1.5): its tag or its time. */
export function isRangeOf(ifRange: string | undefined, { etag, lastModified }: Validators): boolean {
  return ifRange === undefined || ifRange.trim() === etag || isTimeOf(ifRange, lastModified)
}

/** Times are compared for equality: a retraction makes an older representation current again (CONTRACT 4.6). */
function isTimeOf(field: string | undefined, lastModified: Date | undefined): boolean {
  return field !== undefined && lastModified !== undefined && httpDate(field) === lastModified.getTime()
}

function strongTags(list: string): string[] {
  return (list.match(ENTITY_TAG) ?? []).filter((tag) => !tag.startsWith('W/'))
}

// The comparison is weak (RFC 9110, 13.1.2): a proxy that compressed the body may have marked the tag as weak.
function entityTags(list: string): string[] {
  return (list.match(ENTITY_TAG) ?? []).map((tag) => tag.replace(/^W\//, ''))
}
