import { describe, expect, it } from 'vitest'
import { retryAfterMs } from '../../../../api/http/protocol/retry-after.ts'

describe('retryAfterMs', () => {
  it.each(['1.5', 'soon 5', '60s', '5, 5', '-1', '+5', 'May 2026', ''])('ignores %j', (header) => {
    expect(retryAfterMs(header)).toBeUndefined()
  })

  it('reads seconds and dates; a past date is no wait', () => {
    expect(retryAfterMs('2')).toBe(2000)
    expect(retryAfterMs(['2', '3'])).toBe(2000)
    expect(retryAfterMs('Wed, 21 Oct 2099 07:28:00 GMT')).toBeGreaterThan(0)
    expect(retryAfterMs('Wed, 21 Oct 2015 07:28:00 GMT')).toBe(0)
  })
})
