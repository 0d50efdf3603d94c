/** Counts requests against the rate limits, in the store, so that restarts and further processes agree (CONTRACT 4.5). */
import type { Caller } from '../../http/call.ts'
import type { Store } from '../../store/store.ts'
import { createStatementLimiter } from './count-by-statement.ts'
import { MemoryLimiter } from './count-in-memory.ts'
import type { Verdict } from './policies.ts'

/** Counts requests against the limits; `now` is the time of the request. */
export interface RateLimiter {
  /** Counts one request, unless a limit is used up: a refused request counts against none. */
  take(caller: Caller, now: Date): Promise<Verdict>
  /** The verdict for a request that does not count, such as a HEAD. */
  peek(caller: Caller, now: Date): Promise<Verdict>
}

/** The rate limiter over a store, in the way that costs least there. */
export function createRateLimiter(store: Store): RateLimiter {
  const { atOnce } = store
  if (atOnce === undefined) return createStatementLimiter(store)
  return new MemoryLimiter(atOnce, () => store.version())
}
