/** CONTRACT 4.6: conditional requests, and waits in Retry-After. */
import { describe, expect, it } from 'vitest'
import { isMismatch, isNotModified, isRangeOf, retryAfterMs } from '../../../api/http/headers.ts'

const validators = { etag: '"a.1"', lastModified: new Date('2026-11-20T02:00:00Z') }

describe('isNotModified', () => {
  it.each([
    [{}, false],
    [{ 'if-none-match': '"a.1"' }, true],
    [{ 'if-none-match': 'W/"a.1"' }, true],
    [{ 'if-none-match': '"b", "a.1" , "c"' }, true],
    [{ 'if-none-match': '*' }, true],
    [{ 'if-none-match': '"b"' }, false],
    [{ 'if-none-match': 'a.1' }, false],
    [{ 'if-none-match': '' }, false],
    [{ 'if-modified-since': 'Fri, 20 Nov 2026 02:00:00 GMT' }, true],
    [{ 'if-modified-since': 'Fri, 20 Nov 2026 01:59:59 GMT' }, false],
    [{ 'if-modified-since': 'Friday, 20-Nov-26 02:00:00 GMT' }, false],
    [{ 'if-modified-since': 'Fri Nov 20 02:00:00 2026' }, false],
    [{ 'if-modified-since': 'Fri, 20 Nov 2026 02:00:01 GMT' }, false],
    [{ 'if-modified-since': 'yesterday' }, false],
    [{ 'if-modified-since': '2027' }, false],
    [{ 'if-modified-since': '2026-11-20T02:00:00Z' }, false],
    [{ 'if-modified-since': 'Fri, 20 Nov 2026 04:00:00 +0200' }, false],
    [{ 'if-modified-since': 'Fri, 20 Abc 2026 04:00:00 GMT' }, false],
    [{ 'if-none-match': '"b"', 'if-modified-since': 'Fri, 20 Nov 2026 02:00:00 GMT' }, false],
  ])('of %j is %j', (headers, unchanged) => {
    expect(isNotModified(headers, validators)).toBe(unchanged)
  })
})

describe('isMismatch', () => {
  it.each([
    [undefined, false],
    ['*', false],
    ['"a.1"', false],
    ['"b", "a.1"', false],
    ['W/"a.1"', true],
    ['W/"a.1", "b"', true],
    ['"b"', true],
    ['', true],
  ])('of If-Match %j is %j', (field, mismatch) => {
    expect(isMismatch(field === undefined ? {} : { 'if-match': field }, validators)).toBe(mismatch)
  })
})

describe('isRangeOf', () => {
  it.each([
    [undefined, true],
    ['"a.1"', true],
    ['W/"a.1"', false],
    ['"b"', false],
    ['Fri, 20 Nov 2026 02:00:00 GMT', true],
    ['Fri, 20 Nov 2026 02:00:01 GMT', false],
    ['Fri, 20 Nov 2026 01:59:59 GMT', false],
    ['tomorrow', false],
  ])('of If-Range %j is %j', (field, isOf) => {
    expect(isRangeOf(field, validators)).toBe(isOf)
  })
})

describe('retryAfterMs', () => {
  it.each(['soon 5', '60s', '5, 5', '-1', '+5', 'May 2026', ''])('ignores %j', (header) => {
    expect(retryAfterMs(header)).toBeUndefined()
  })

  it('reads seconds and dates; a past date is no wait', () => {
    expect(retryAfterMs('2')).toBe(2000)
    expect(retryAfterMs('1.5')).toBe(1500)
    expect(retryAfterMs(String(Math.ceil(Date.now() / 1000) + 60))).toBeLessThanOrEqual(61_000)
    expect(retryAfterMs(['2', '3'])).toBe(2000)
    expect(retryAfterMs('Wed, 21 Oct 2099 07:28:00 GMT')).toBeGreaterThan(0)
    expect(retryAfterMs('Wed, 21 Oct 2015 07:28:00 GMT')).toBe(0)
  })
})
