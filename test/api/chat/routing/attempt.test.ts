import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Attempt } from '../../../../api/chat/routing/attempt.ts'
import { AttemptFailure } from '../../../../api/chat/routing/failure.ts'

const TOTAL_MS = 1000
const CANDIDATE = { model: 'a/one', provider: 'acme' }

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** An attempt at a provider with TOTAL_MS, for a request with `leftMs` left. */
function begin(leftMs = 10 * TOTAL_MS) {
  const upstream = {
    name: 'acme',
    url: new URL('http://127.0.0.1/v1/chat/completions'),
    model: 'one',
    headers: {},
    timeouts: { firstTokenMs: TOTAL_MS, keepAliveMs: TOTAL_MS, idleMs: TOTAL_MS, totalMs: TOTAL_MS },
    includeUsage: true,
    drop: [],
  }
  const attempt = new Attempt({ ...CANDIDATE, upstream }, { candidate: CANDIDATE, openings: 0 }, leftMs)
  return {
    attempt,
    /** Its failure; undefined while it goes on. */
    ending: (): unknown => attempt.signal.reason,
  }
}

it.each([
  ['has more time left', TOTAL_MS + 1, TOTAL_MS, 'timeout'],
  ['has just as much time left', TOTAL_MS, TOTAL_MS, 'timeout'],
  ['has less time left', TOTAL_MS - 1, TOTAL_MS - 1, 'outOfTime'],
])('gives a provider its own time if the request %s', (_name, leftMs, ms, kind) => {
  const { ending } = begin(leftMs)
  vi.advanceTimersByTime(ms - 1)
  expect(ending()).toBeUndefined()
  vi.advanceTimersByTime(1)
  expect(ending()).toMatchObject({ kind })
})

it('counts silence from the last part', () => {
  const { attempt, ending } = begin()
  attempt.expectWithin(100)
  vi.advanceTimersByTime(99)
  attempt.progressed()
  vi.advanceTimersByTime(99)
  // After the first token another limit applies.
  attempt.expectWithin(50)
  vi.advanceTimersByTime(49)
  expect(ending()).toBeUndefined()
  vi.advanceTimersByTime(1)
  expect(ending()).toMatchObject({ kind: 'timeout' })
})

it('lets a stream that nobody reads be silent, and does not blame the provider for that time', () => {
  const { attempt, ending } = begin()
  attempt.expectWithin(100)
  attempt.suspend()
  vi.advanceTimersByTime(TOTAL_MS - 1)
  expect(ending()).toBeUndefined()
  vi.advanceTimersByTime(1)
  expect(ending()).toMatchObject({ kind: 'notRead' })
})

it('is over with its end, and its record has the status and the time', () => {
  const { attempt, ending } = begin()
  attempt.expectWithin(100)
  attempt.answered(200)
  vi.advanceTimersByTime(40.4)
  const served = { ...CANDIDATE, status: 200, error_type: null, duration_ms: 40 }
  expect(attempt.end(undefined)).toEqual(served)
  expect(vi.getTimerCount()).toBe(0)
  vi.advanceTimersByTime(TOTAL_MS)
  expect(ending()).toBeUndefined()
})

it.each([
  ['of the failure, which may be in the reply', new AttemptFailure('rateLimited', { status: 429 }), 429],
  ['of the reply where the failure has none', new AttemptFailure('timeout'), 200],
])('records the status %s', (_name, failure, status) => {
  const { attempt } = begin()
  attempt.answered(200)
  expect(attempt.end(failure)).toMatchObject({ status, error_type: failure.errorType })
})

it('records no status without a reply', () => {
  expect(begin().attempt.end(new AttemptFailure('connection')).status).toBeNull()
})
