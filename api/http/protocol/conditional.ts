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
  const since = headers['if-modified-since']
  const time = since === undefined ? undefined : httpDate(since)
  return time !== undefined && lastModified !== undefined && time >= lastModified.getTime()
}

// The comparison is weak (RFC 9110, 13.1.2): a proxy that compressed the body may have marked the tag as weak.
function entityTags(list: string): string[] {
  return (list.match(ENTITY_TAG) ?? []).map((tag) => tag.replace(/^W\//, ''))
}
