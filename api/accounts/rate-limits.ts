/** The two rate limits (CONTRACT 4.5), counted in the store so that restarts and further processes agree. */
import { millisecondsInDay } from 'date-fns/constants'
import { z } from 'zod'
import type { Caller } from '../call.ts'
import type { Store } from '../store.ts'

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

/**
 * The limits in force, in the order in which the headers state them and requests are counted: the narrower first,
 * so that a request which that one refuses never takes a place of the account's other keys.
 */
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

// One statement, so that of many requests at once, in whatever processes, exactly the allowed ones are counted.
const COUNT = `
  INSERT INTO quotas (policy, subject, window_ends, used) VALUES ($1, $2, $3, 1)
  ON CONFLICT (policy, subject) DO UPDATE SET
    used = CASE WHEN quotas.window_ends <= $4 THEN 1 ELSE quotas.used + 1 END,
    window_ends = CASE WHEN quotas.window_ends <= $4 THEN excluded.window_ends ELSE quotas.window_ends END
    WHERE quotas.window_ends <= $4 OR quotas.used < $5
  RETURNING window_ends, used`
const GIVE_BACK = `
  UPDATE quotas SET used = used - 1 WHERE policy = $1 AND subject = $2 AND window_ends = $3`
const SUBJECTS = POLICIES.map((_policy, index) => `($${2 * index + 2}, $${2 * index + 3})`).join(', ')
const PEEK = `
  SELECT policy, window_ends, used FROM quotas
  WHERE window_ends > $1 AND (policy, subject) IN (VALUES ${SUBJECTS})`

const windowSchema = z.object({ window_ends: z.iso.datetime(), used: z.number() })
type Window = z.infer<typeof windowSchema>
const namedWindowsSchema = z.array(windowSchema.extend({ policy: z.string() }))

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
  return POLICIES.map((policy) => quotaOf(policy, freshWindow(policy, now), now))
}

// Undefined when a limit is used up. A process that dies before it gives back what the narrower limit counted
// leaves one request too many there, until that window ends.
async function countAll(store: Store, caller: Caller, now: Date): Promise<readonly Quota[] | undefined> {
  const counted: { policy: Policy; window: Window }[] = []
  for (const policy of POLICIES) {
    const window = await countOne(store, policy, caller, now)
    if (window === undefined) {
      for (const each of counted) await giveBack(store, each.policy, caller, each.window)
      return undefined
    }
    counted.push({ policy, window })
  }
  return counted.map(({ policy, window }) => quotaOf(policy, window, now))
}

async function countOne(
  store: Store,
  policy: Policy,
  caller: Caller,
  now: Date,
): Promise<Window | undefined> {
  const windowEnd = policy.windowEnd(now).toISOString()
  const values = [policy.name, policy.subject(caller), windowEnd, now.toISOString(), policy.limit]
  const [row] = await store.query(COUNT, values)
  return row === undefined ? undefined : windowSchema.parse(row)
}

async function giveBack(store: Store, policy: Policy, caller: Caller, window: Window): Promise<void> {
  await store.query(GIVE_BACK, [policy.name, policy.subject(caller), window.window_ends])
}

async function peekAll(store: Store, caller: Caller, now: Date): Promise<Verdict> {
  const subjects = POLICIES.flatMap((policy) => [policy.name, policy.subject(caller)])
  const windows = namedWindowsSchema.parse(await store.query(PEEK, [now.toISOString(), ...subjects]))
  const quotas = POLICIES.map((policy) => {
    const window = windows.find((each) => each.policy === policy.name)
    return quotaOf(policy, window ?? freshWindow(policy, now), now)
  })
  return { quotas, exhausted: longestWait(quotas.filter((quota) => quota.remaining === 0)) }
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
