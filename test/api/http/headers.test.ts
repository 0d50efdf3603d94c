/** CONTRACT 4.6: conditional requests, and waits in Retry-After. */
import { expect, it } from 'vitest'
import { isMismatch, isNotModified, isRangeOf, retryAfterMs } from '../../../api/http/headers.ts'

const TIME = 'Fri, 20 Nov 2026 02:00:00 GMT'
const validators = { etag: '"a.1"', lastModified: new Date(TIME) }

/** Whether the representation is sent (200), has not changed (304), is another one (412), or may be sent in part (206). */
function outcome(field: string, value: string): number {
  const headers = { [field]: value }
  if (field === 'if-range') return isRangeOf(value, validators) ? 206 : 200
  if (isMismatch(headers, validators)) return 412
  return isNotModified(headers, validators) ? 304 : 200
}

it.each([
  ['if-none-match', 304, ['"a.1"', 'W/"a.1"', '"b", "a.1" , "c"', '*']],
  ['if-none-match', 200, ['"b"', 'a.1', '']],
  ['if-modified-since', 304, [TIME]],
  // Times are compared for equality, and have one form.
  ['if-modified-since', 200, ['Fri, 20 Nov 2026 01:59:59 GMT', 'Fri, 20 Nov 2026 02:00:01 GMT']],
  ['if-modified-since', 200, ['Friday, 20-Nov-26 02:00:00 GMT', 'Fri Nov 20 02:00:00 2026', 'yesterday']],
  ['if-modified-since', 200, ['2027', '2026-11-20T02:00:00Z', 'Fri, 20 Nov 2026 04:00:00 +0200']],
  ['if-modified-since', 200, ['Fri, 20 Abc 2026 04:00:00 GMT']],
  ['if-match', 200, ['*', '"a.1"', '"b", "a.1"']],
  ['if-match', 412, ['W/"a.1"', 'W/"a.1", "b"', '"b"', '']],
  ['if-range', 206, ['"a.1"', TIME]],
  ['if-range', 200, ['W/"a.1"', '"b"', 'Fri, 20 Nov 2026 02:00:01 GMT', 'tomorrow']],
  ['if-range', 200, ['Fri, 20 Nov 2026 01:59:59 GMT']],
])('%s leads to %i: %j', (field, status, values) => {
  for (const value of values) expect(outcome(field, value), value).toBe(status)
})

it('If-None-Match outweighs If-Modified-Since, and without a field everything is sent', () => {
  expect(isNotModified({ 'if-none-match': '"b"', 'if-modified-since': TIME }, validators)).toBe(false)
  expect([isNotModified({}, validators), isMismatch({}, validators)]).toEqual([false, false])
  expect(isRangeOf(undefined, validators)).toBe(true)
})

it('Retry-After has seconds, a date or seconds since 1970, of which a past one is no wait; other texts are ignored', () => {
  for (const text of ['soon 5', '60s', '5, 5', '-1', '+5', 'May 2026', ''])
    expect(retryAfterMs(text), text).toBeUndefined()
  expect(['2', ['2', '3'], '1.5'].map(retryAfterMs)).toEqual([2000, 2000, 1500])
  expect(retryAfterMs(String(Math.ceil(Date.now() / 1000) + 60))).toBeLessThanOrEqual(61_000)
  expect(retryAfterMs('Wed, 21 Oct 2099 07:28:00 GMT')).toBeGreaterThan(0)
  expect(retryAfterMs('Wed, 21 Oct 2015 07:28:00 GMT')).toBe(0)
})
