/** The two rate limits (CONTRACT 4.5), counted in the store so that restarts and further processes agree. */
import { z } from 'zod'
import { addDays, utcDay } from '../../pipeline/contract.ts'
import type { Caller } from '../call.ts'
import type { Queries, Store } from '../store.ts'

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
    windowEnd: (now) => new Date(`${addDays(utcDay(now), 1)}T00:00:00Z`),
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

const TAKE = `
  INSERT INTO quotas (policy, subject, window_ends, used) VALUES ($1, $2, $3, 1)
  ON CONFLICT (policy, subject) DO UPDATE SET
    used = CASE WHEN quotas.window_ends <= $4 THEN 1 ELSE quotas.used + 1 END,
    window_ends = CASE WHEN quotas.window_ends <= $4 THEN excluded.window_ends ELSE quotas.window_ends END
  RETURNING window_ends, used`
const PEEK = 'SELECT window_ends, used FROM quotas WHERE policy = $1 AND subject = $2 AND window_ends > $3'

const windowSchema = z.object({ window_ends: z.iso.datetime(), used: z.number() })
type Window = z.infer<typeof windowSchema>

/** The rate limiter over a store. */
export function createRateLimiter(store: Store): RateLimiter {
  return {
    async take(caller, now) {
      try {
        return await store.transaction((queries) => takeOne(queries, caller, now))
      } catch (error) {
        if (error instanceof Refusal) return error.verdict
        throw error
      }
    },
    async peek(caller, now) {
      const quotas = await Promise.all(POLICIES.map((policy) => peekOne(store, policy, caller, now)))
      return { quotas, exhausted: longestWait(quotas.filter((quota) => quota.remaining === 0)) }
    },
  }
}

/** The quotas of a caller that has used nothing, or is not known. */
export function fullQuotas(now: Date): readonly Quota[] {
  return POLICIES.map((policy) => quotaOf(policy, freshWindow(policy, now), now))
}

// Thrown to undo the transaction: what the other policy counted must not stay.
class Refusal extends Error {
  readonly verdict: Verdict

  constructor(verdict: Verdict) {
    super('A rate limit is used up')
    this.verdict = verdict
  }
}

async function takeOne(queries: Queries, caller: Caller, now: Date): Promise<Verdict> {
  const windows: { policy: Policy; window: Window }[] = []
  for (const policy of POLICIES) {
    const values = [policy.name, policy.subject(caller), policy.windowEnd(now).toISOString()]
    const [row] = await queries.query(TAKE, [...values, now.toISOString()])
    windows.push({ policy, window: windowSchema.parse(row) })
  }
  const over = windows.filter(({ policy, window }) => window.used > policy.limit)
  if (over.length === 0) {
    return { quotas: windows.map(({ policy, window }) => quotaOf(policy, window, now)), exhausted: undefined }
  }
  const undone = windows.map(({ policy, window }) =>
    quotaOf(policy, { ...window, used: window.used - 1 }, now),
  )
  throw new Refusal({
    quotas: undone,
    exhausted: longestWait(undone.filter((quota) => quota.remaining === 0)),
  })
}

async function peekOne(store: Store, policy: Policy, caller: Caller, now: Date): Promise<Quota> {
  const [row] = await store.query(PEEK, [policy.name, policy.subject(caller), now.toISOString()])
  return quotaOf(policy, row === undefined ? freshWindow(policy, now) : windowSchema.parse(row), now)
}

function freshWindow(policy: Policy, now: Date): Window {
  return { window_ends: policy.windowEnd(now).toISOString(), used: 0 }
}

function quotaOf(policy: Policy, window: Window, now: Date): Quota {
  const seconds = Math.ceil((Date.parse(window.window_ends) - now.getTime()) / 1000)
  return {
    policy,
    remaining: Math.max(0, policy.limit - window.used),
    resetSeconds: Math.max(1, seconds),
  }
}

// With both limits used up, waiting for the nearer end would only earn the other refusal.
function longestWait(quotas: readonly Quota[]): Quota | undefined {
  return quotas.toSorted((a, b) => b.resetSeconds - a.resetSeconds)[0]
}
