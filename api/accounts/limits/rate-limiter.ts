/**
 * Counts requests in the store, with one statement each, so that restarts and several processes agree (CONTRACT 4.5).
 */
import { z } from 'zod'
import type { Caller, Clock, Reply } from '../../http/call.ts'
import type { RequestStore } from '../../store/request-store.ts'
import type { Value } from '../../store/store.ts'
import {
  POLICIES,
  quotaHeaders,
  quotasOf,
  tooManyRequests,
  type Policy,
  type Quota,
  type Window,
} from './policies.ts'

/** Counts requests against the limits; `now` is the time of the request. */
export interface RateLimiter {
  /** Counts one request, unless a limit is used up: a rejected request does not count. */
  consume(caller: Caller, now: Date): Promise<Decision>
  /** The state of the limits for a request that does not count, such as a HEAD. */
  peek(caller: Caller, now: Date): Promise<Decision>
}

/** The result for one request: the remaining quotas, and the exhausted one, if any. */
export interface Decision {
  readonly quotas: readonly Quota[]
  readonly exhausted: Quota | undefined
}

/** The parameters of a policy in COUNT, after the time of the request. */
const PLACES = POLICIES.map(({ name, limit }, index) => {
  const first = 3 * index + 2
  return { name, limit, subject: `$${first}`, windowEnds: `$${first + 1}`, latest: `$${first + 2}` }
})
const REQUESTED = PLACES.map(
  ({ name, limit, subject, windowEnds, latest }) =>
    `('${name}', ${subject}, ${windowEnds}, ${latest}, ${limit})`,
)
const ALLOWED = PLACES.map(({ name, limit }) => `WHEN '${name}' THEN ${limit}`)
const LATEST_END = PLACES.map(({ name, latest }) => `WHEN '${name}' THEN ${latest}`)
const IS_OVER = `(quotas.window_ends <= $1 OR quotas.window_ends > CASE excluded.policy ${LATEST_END.join(' ')} END)`

// One statement, so that concurrent requests of any process are counted exactly: against all limits, or, if one is used
// up, against none.
const COUNT = `
  WITH requested (policy, subject, window_ends, latest_end, allowed) AS (VALUES ${REQUESTED.join(', ')})
  INSERT INTO quotas (policy, subject, window_ends, used)
  SELECT a.policy, a.subject, a.window_ends, 1 FROM requested AS a
  WHERE NOT EXISTS (
    SELECT 1 FROM requested AS b JOIN quotas AS q ON q.policy = b.policy AND q.subject = b.subject
    WHERE q.window_ends > $1 AND q.window_ends <= b.latest_end AND q.used >= b.allowed
  )
  ON CONFLICT (policy, subject) DO UPDATE SET
    used = CASE WHEN ${IS_OVER} THEN 1 ELSE quotas.used + 1 END,
    window_ends = CASE WHEN ${IS_OVER} THEN excluded.window_ends ELSE quotas.window_ends END
    WHERE ${IS_OVER} OR quotas.used < CASE excluded.policy ${ALLOWED.join(' ')} END
  RETURNING policy, window_ends, used`
const GIVE_BACK = `
  UPDATE quotas SET used = used - 1 WHERE policy = $1 AND subject = $2 AND window_ends = $3`
const SUBJECTS = POLICIES.map(
  ({ name }, index) =>
    `policy = '${name}' AND subject = $${2 * index + 2} AND window_ends <= $${2 * index + 3}`,
)
const PEEK = `
  SELECT policy, window_ends, used FROM quotas WHERE window_ends > $1 AND (${SUBJECTS.join(' OR ')})`

const windowsSchema: z.ZodType<readonly Window[]> = z.array(
  z.object({ policy: z.string(), window_ends: z.iso.datetime(), used: z.number() }),
)

export function createRateLimiter(store: RequestStore): RateLimiter {
  const ask = async (sql: string, values: readonly Value[]) =>
    windowsSchema.parse(await store.query(sql, values))

  async function peek(caller: Caller, now: Date): Promise<Decision> {
    const subjects = POLICIES.flatMap((policy) => [caller[policy.subject], latestEnd(policy, now)])
    return decide(await ask(PEEK, [now.toISOString(), ...subjects]), now)
  }

  return {
    peek,
    async consume(caller, now) {
      const places = POLICIES.flatMap((policy) => [
        caller[policy.subject],
        new Date(policy.windowEnd(now.getTime())).toISOString(),
        latestEnd(policy, now),
      ])
      for (;;) {
        const windows = await ask(COUNT, [now.toISOString(), ...places])
        // Nothing may be left: the last place may have just been taken.
        if (windows.length === POLICIES.length)
          return { quotas: quotasOf(windows, now.getTime()), exhausted: undefined }
        await giveBack(store, caller, windows)
        const decision = await peek(caller, now)
        // Otherwise others have returned their counts, so there is room again.
        if (decision.exhausted !== undefined) return decision
      }
    },
  }
}

/**
 * The latest plausible end of an open window. A later end comes from a wrong clock that was set back since, and would
 * lock callers out for as long. Clocks of several machines may differ by less than a window.
 */
function latestEnd({ windowEnd, windowSeconds }: Policy, now: Date): string {
  return new Date(windowEnd(now.getTime() + windowSeconds * 1000)).toISOString()
}

// A concurrent request may have used up a limit since the statement read it. A process that dies before it returns its
// count leaves one request too many until the window ends.
async function giveBack(store: RequestStore, caller: Caller, windows: readonly Window[]): Promise<void> {
  for (const { name, subject } of POLICIES) {
    const window = windows.find(({ policy }) => policy === name)
    if (window !== undefined) await store.query(GIVE_BACK, [name, caller[subject], window.window_ends])
  }
}

/** The decision, given the open windows. */
export function decide(windows: readonly Window[], now: Date): Decision {
  const quotas = quotasOf(windows, now.getTime())
  // If both limits are used up, waiting for the nearer end would only give another 429.
  const [exhausted] = quotas
    .filter(({ remaining }) => remaining === 0)
    .toSorted((one, other) => other.resetSeconds - one.resetSeconds)
  return { quotas, exhausted }
}

/**
 * Applies the caller's rate limits to one request: counts it unless it is free, and sets the headers. A free request
 * passes even if a limit is used up (CONTRACT 4.5).
 * @throws {ApiError} 429 if a limit is used up.
 */
export type ApplyLimits = (reply: Reply, cost: 'counted' | 'free') => Promise<void>

/** Call the result once per request, after authentication. */
export function createApplyLimits(limiter: RateLimiter, clock: Clock): ApplyLimits {
  return async (reply, cost) => {
    const { caller } = reply.locals
    if (caller === undefined) throw new TypeError('Only an authenticated request can be counted')
    const isCounted = cost === 'counted'
    const { quotas, exhausted } = await limiter[isCounted ? 'consume' : 'peek'](caller, clock())
    reply.set(quotaHeaders(quotas))
    if (isCounted && exhausted !== undefined) throw tooManyRequests(exhausted)
  }
}
