/** The ways to request a list of groups, the best first. */
import type { Query } from './http/client.ts'
import type { PagingOffer } from './messages.ts'

/** Fallback page sizes if a directory rejects a larger page, or its reply is too large. */
const SMALLER_PAGES = [50, 10, 2]

export interface PagingOptions {
  readonly offer: PagingOffer
  /** Preferred rows per page. */
  readonly pageSize: number
  /** Whether to request members with the groups. */
  readonly withMembers: boolean
}

/** The queries of a first page. */
export function waysToList({ offer, pageSize, withMembers }: PagingOptions): Query[] {
  const largest = Math.min(pageSize, offer.maxPage ?? pageSize)
  const sizes = [largest, ...SMALLER_PAGES.filter((size) => size < largest)].map(String)
  const cursor = [...sizes.map((count) => ({ cursor: '', count })), { cursor: '' }]
  const index = [...sizes.map((count) => ({ startIndex: '1', count })), { startIndex: '1' }]
  // Some directories have cursors without announcing them: cursors are tried when index requests fail.
  const ways: Query[] = offer.cursor ? [...cursor, ...index, {}] : [...index, ...cursor.slice(0, 1), {}]
  return withMembers ? ways : ways.flatMap((way) => [{ ...way, excludedAttributes: 'members' }, way])
}

/** The query of the next page; undefined after the last one. */
export function nextQuery(
  query: Query,
  { nextCursor, rows }: { readonly nextCursor: string | undefined; readonly rows: number },
): Query | undefined {
  if (nextCursor !== undefined) {
    const { startIndex: _dropped, ...rest } = query
    return { ...rest, cursor: nextCursor }
  }
  return 'startIndex' in query ? { ...query, startIndex: String(rows + 1) } : undefined
}
