/** The two rate limits (CONTRACT 4.5), counted in the store so that restarts and further processes agree. */
import { millisecondsInDay } from 'date-fns/constants'
import { z } from 'zod'
import type { Caller } from '../call.ts'
import type { Store } from '../store/store.ts'

interface Policy {
  readonly name: string
  /** Requests allowed in one window. */
  readonly limit: number
  readonly windowSeconds: number
  /** Whose requests are counted together. */
  subject(caller: Caller): string
  /** End of a window whose first request comes at `now`. */
  windowEnd(now: Date): Date
}

/** The limits in force, in the order in which the headers state them. */
export const POLICIES: readonly Policy[] = [
  {
    name: 'per-minute',
    limit: 30,
    windowSeconds: 60,
    subject: (caller) => caller.keyId,
    windowEnd: (now) => new Date(now.getTime() + 60_000),
  },
  {
    name: 'per-day',
    limit: 500,
    windowSeconds: 86_400,
    subject: (caller) => caller.accountId,
    windowEnd: (now) => new Date((Math.floor(now.getTime() / millisecondsInDay) + 1) * millisecondsInDay),
  },
]

/** What is left of one policy. */
export interface Quota {
  readonly policy: Policy
  readonly remaining: number
  /** Whole seconds until the window ends, at least 1. */
  readonly resetSeconds: number
}

/** The answer to one request: what is left, and the policy that refuses it, if one does. */
export interface Verdict {
  readonly quotas: readonly Quota[]
  readonly exhausted: Quota | undefined
}

/** Counts requests against the limits; `now` is the time of the request. */
export interface RateLimiter {
  /** Counts one request, unless a limit is used up: a refused request counts against none. */
  take(caller: Caller, now: Date): Promise<Verdict>
  /** The verdict for a request that does not count, such as a HEAD. */
  peek(caller: Caller, now: Date): Promise<Verdict>
}

/** The places of a policy's values in COUNT, after the time of the request. */
const PLACES = POLICIES.map(({ name, limit }, index) => {
  const first = 3 * index + 2
  return { name, limit, subject: `$${first}`, windowEnds: `$${first + 1}`, latestEnd: `$${first + 2}` }
})
const ASKED = PLACES.map(
  ({ name, limit, subject, windowEnds, latestEnd }) =>
    `('${name}', ${subject}, ${windowEnds}, ${latestEnd}, ${limit})`,
)
const ALLOWED = PLACES.map(({ name, limit }) => `WHEN '${name}' THEN ${limit}`)
const LATEST_END = PLACES.map(({ name, latestEnd }) => `WHEN '${name}' THEN ${latestEnd}`)
const IS_OVER = `(quotas.window_ends <= $1 OR quotas.window_ends > CASE excluded.policy ${LATEST_END.join(' ')} END)`

// One statement, so that of many requests at once, in whatever processes, exactly the allowed ones are counted:
// against all limits, or, where one is used up, against none.
const COUNT = `
  WITH asked (policy, subject, window_ends, latest_end, allowed) AS (VALUES ${ASKED.join(', ')})
  INSERT INTO quotas (policy, subject, window_ends, used)
  SELECT a.policy, a.subject, a.window_ends, 1 FROM asked AS a
  WHERE NOT EXISTS (
    SELECT 1 FROM asked AS b JOIN quotas AS q ON q.policy = b.policy AND q.subject = b.subject
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

const windowsSchema = z.array(
  z.object({ policy: z.string(), window_ends: z.iso.datetime(), used: z.number() }),
)
type Window = z.infer<typeof windowsSchema>[number]

/** The rate limiter over a store. */
export function createRateLimiter(store: Store): RateLimiter {
  // Callers that were refused last: they are looked at first, so that a client past its limits costs no writing.
  const refused = new Set<string>()
  const suspect = ({ keyId }: Caller) => {
    if (refused.size >= REMEMBERED_CALLERS) refused.clear()
    refused.add(keyId)
  }
  return {
    peek: (caller, now) => peekAll(store, caller, now),
    async take(caller, now) {
      for (;;) {
        if (refused.has(caller.keyId)) {
          const verdict = await peekAll(store, caller, now)
          if (verdict.exhausted !== undefined) return verdict
        }
        const quotas = await countAll(store, caller, now)
        if (quotas !== undefined) {
          refused.delete(caller.keyId)
          return { quotas, exhausted: undefined }
        }
        suspect(caller)
      }
    },
  }
}

/** How many callers are remembered as refused. */
const REMEMBERED_CALLERS = 10_000

/** The quotas of a caller that has used nothing, or is not known. */
export function fullQuotas(now: Date): readonly Quota[] {
  return POLICIES.map((policy) => fullQuota(policy, now))
}

// Undefined when a limit is used up.
async function countAll(store: Store, caller: Caller, now: Date): Promise<readonly Quota[] | undefined> {
  const places = POLICIES.flatMap((policy) => [
    policy.subject(caller),
    policy.windowEnd(now).toISOString(),
    latestEndOf(policy, now),
  ])
  const windows = windowsSchema.parse(await store.query(COUNT, [now.toISOString(), ...places]))
  if (windows.length === POLICIES.length) return quotasOf(windows, now)
  // Where others write at the same time (PostgreSQL), one of them may have used up a limit since the statement looked.
  // A process that dies before it gives back what it counted leaves one request too many there, until the window ends.
  for (const policy of POLICIES) {
    const window = windowOf(windows, policy)
    if (window !== undefined) await giveBack(store, policy, caller, window)
  }
  return undefined
}

async function giveBack(store: Store, policy: Policy, caller: Caller, window: Window): Promise<void> {
  await store.query(GIVE_BACK, [policy.name, policy.subject(caller), window.window_ends])
}

async function peekAll(store: Store, caller: Caller, now: Date): Promise<Verdict> {
  const subjects = POLICIES.flatMap((policy) => [policy.subject(caller), latestEndOf(policy, now)])
  const windows = windowsSchema.parse(await store.query(PEEK, [now.toISOString(), ...subjects]))
  const quotas = quotasOf(windows, now)
  return { quotas, exhausted: longestWait(quotas.filter((quota) => quota.remaining === 0)) }
}

/**
 * A window that ends later was begun by a clock that was wrong and has been set back since: it would shut callers out
 * for as long. The clocks of several machines may differ by less than a window.
 */
function latestEndOf(policy: Policy, now: Date): string {
  return policy.windowEnd(new Date(now.getTime() + policy.windowSeconds * 1000)).toISOString()
}

function windowOf(windows: readonly Window[], { name }: Policy): Window | undefined {
  return windows.find((window) => window.policy === name)
}

function quotasOf(windows: readonly Window[], now: Date): readonly Quota[] {
  return POLICIES.map((policy) => {
    const window = windowOf(windows, policy)
    return window === undefined ? fullQuota(policy, now) : quotaOf(policy, window, now)
  })
}

function fullQuota(policy: Policy, now: Date): Quota {
  return { policy, remaining: policy.limit, resetSeconds: secondsUntil(policy.windowEnd(now).getTime(), now) }
}

function quotaOf(policy: Policy, { window_ends, used }: Window, now: Date): Quota {
  return {
    policy,
    remaining: Math.max(0, policy.limit - used),
    resetSeconds: secondsUntil(Date.parse(window_ends), now),
  }
}

function secondsUntil(time: number, now: Date): number {
  return Math.max(1, Math.ceil((time - now.getTime()) / 1000))
}

// With both limits used up, waiting for the nearer end would only earn the other refusal.
function longestWait(quotas: readonly Quota[]): Quota | undefined {
  return quotas.toSorted((a, b) => b.resetSeconds - a.resetSeconds)[0]
}
