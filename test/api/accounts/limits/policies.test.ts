import { describe, expect, it } from 'vitest'
import { quotaHeaders, quotasOf, tooManyRequests } from '../../../../api/accounts/limits/policies.ts'

const NOON = new Date('2026-11-20T12:00:00Z')

describe('quotaHeaders', () => {
  it('states policies and quotas in the form of the IETF draft', () => {
    expect(quotaHeaders(quotasOf([], NOON.getTime()))).toEqual({
      'RateLimit-Policy': '"per-minute";q=30;w=60, "per-day";q=500;w=86400',
      RateLimit: '"per-minute";r=30;t=60, "per-day";r=500;t=43200',
    })
  })
})

describe('tooManyRequests', () => {
  it('names the limit, and the same time in header and metadata', () => {
    const [perMinute] = quotasOf([], NOON.getTime())
    if (perMinute === undefined) throw new TypeError('There is no policy')
    const fault = tooManyRequests({ ...perMinute, remaining: 0, resetSeconds: 41 })
    expect(fault.status).toBe(429)
    expect(fault.headers).toEqual({ 'Retry-After': '41' })
    expect(fault.metadata).toEqual({ policy: 'per-minute', limit: 30, window_seconds: 60, retry_after: 41 })
  })
})
