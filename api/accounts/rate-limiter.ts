/**
 * The rate limits (CONTRACT 4.5 and 6), counted in the store, so that restarts and several processes agree. Times are ms
 * since 1970.
 */
import { z } from 'zod'
import type { Caller, Clock, Headers, Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import type { Log } from '../process/log.ts'
import { collectTurn, places, type Queries } from '../store/store.ts'

/** A limit of something in each window of the clock: a minute, or a UTC day. */
type Policy = {
  readonly name: string
  readonly limit: number
  readonly windowSeconds: number
  /** What is counted, in the plural. */
  readonly unit: 'requests' | 'tokens'
}

const MINUTE = { windowSeconds: 60, unit: 'requests' } as const
const DAY = { windowSeconds: 86_400, unit: 'requests' } as const

/** The limits of the dataset's paths, in the order of the headers, each with its unit for documents. */
export const POLICIES = [
  { ...MINUTE, name: 'per-minute', limit: 30, sentence: 'per minute and key' },
  { ...DAY, name: 'per-day', limit: 500, sentence: 'per UTC day and account' },
] as const

/** What a request counts against: a policy, and the key or account that it is counted for. */
type Claim = Policy & {
  readonly subject: string
}

/** The claims of a request to the dataset's paths. */
function datasetClaims({ keyId, accountId }: Caller): readonly Claim[] {
  const [perMinute, perDay] = POLICIES
  return [
    { ...perMinute, subject: keyId },
    { ...perDay, subject: accountId },
  ]
}

/** The claims of a chat request: on the requests and on the tokens that its key is limited to, if any. */
function keyClaims({ keyId: subject, limits }: Caller) {
  const claims = (limit: number | null, policy: Omit<Policy, 'limit'>): readonly Claim[] =>
    limit === null ? [] : [{ ...policy, limit, subject }]
  return {
    requests: claims(limits.requests_per_minute, { ...MINUTE, name: 'key-requests-per-minute' }),
    tokens: claims(limits.tokens_per_day, { ...DAY, name: 'key-tokens-per-day', unit: 'tokens' }),
  }
}

/** A policy, and what of it is used in the present window. */
type Quota = Policy & {
  readonly used: number
}

/** The end of the window that contains `now`. */
function windowEnd({ windowSeconds }: Policy, now: number): number {
  const windowMs = windowSeconds * 1000
  return (Math.floor(now / windowMs) + 1) * windowMs
}

/** Whole seconds until the window ends, at least 1. */
function resetSeconds(policy: Policy, now: number): number {
  return Math.ceil((windowEnd(policy, now) - now) / 1000)
}

/** The fields of draft-ietf-httpapi-ratelimit-headers: policies and their remaining quotas. */
function quotaHeaders(quotas: readonly Quota[], now: number): Headers {
  const policies = quotas.map(({ name, limit, windowSeconds }) => `"${name}";q=${limit};w=${windowSeconds}`)
  const rests = quotas.map((quota) => {
    const remaining = Math.max(0, quota.limit - quota.used)
    return `"${quota.name}";r=${remaining};t=${resetSeconds(quota, now)}`
  })
  return { 'RateLimit-Policy': policies.join(', '), RateLimit: rests.join(', ') }
}

/** The headers of a reply that ends before its request is counted, such as a 401: the full quota. */
export function fullQuota(now: Date): Headers {
  const unused = POLICIES.map((policy) => ({ ...policy, used: 0 }))
  return quotaHeaders(unused, now.getTime())
}

/** The 429 for `quotas`, of which `exhausted` is used up; names the limit and the wait. */
function tooManyRequests(quotas: readonly Quota[], exhausted: Quota, now: number): ApiError {
  const { name, limit, unit, windowSeconds } = exhausted
  const wait = resetSeconds(exhausted, now)
  const rule = `${limit} ${unit} in ${windowSeconds} seconds`
  return new ApiError(429, `Rate limit "${name}" is used up: ${rule}; retry in ${wait} seconds`, {
    headers: { ...quotaHeaders(quotas, now), 'Retry-After': String(wait) },
    metadata: { policy: name, limit, window_seconds: windowSeconds, retry_after: wait },
  })
}

type RateLimiter = ReturnType<typeof createRateLimiter>

/** Applies the dataset's limits to a request, after authentication. */
export type ApplyLimits = RateLimiter['applyLimits']

/** The limits of a single key for chat: requests a minute and tokens a UTC day. */
export type KeyLimits = Pick<RateLimiter, 'begin' | 'spend'>

/** The limits of all callers, counted in `store`; past windows are deleted from it. */
export function createRateLimiter(store: Queries, clock: Clock, log: Log) {
  const { usedIn, count, deletePast } = createCounts(store)

  /** What is used of the claims, without counting. */
  async function peek(claims: readonly Claim[], now: number): Promise<readonly Quota[]> {
    const used = await Promise.all(claims.map((claim) => usedIn(windowOf(claim, now))))
    return claims.map((claim, index) => ({ ...claim, used: used[index] ?? 0 }))
  }

  /** Throws a 429 if a claim is used up. Minutes come before days: of two, the one with the longer wait is named. */
  async function check(claims: readonly Claim[], now: number): Promise<void> {
    const quotas = await peek(claims, now)
    const exhausted = quotas.findLast(({ limit, used }) => used >= limit)
    if (exhausted !== undefined) throw tooManyRequests(quotas, exhausted, now)
  }

  /** Counts one request against all `claims`, unless a limit of them or of `others` is used up. */
  async function consume(claims: readonly Claim[], others: readonly Claim[], now: number) {
    deletePast(now)
    // A rejected request counts against no limit.
    await check([...claims, ...others], now)
    const quotas: Quota[] = []
    for (const claim of claims) {
      const used = await count({ window: windowOf(claim, now), amount: 1 })
      // Others have taken the last place since the check. The count beyond the limit changes nothing: this window is used
      // up, and an earlier, shorter one ends no later.
      if (used > claim.limit) await check(claims, now)
      quotas.push({ ...claim, used })
    }
    return quotas
  }

  return {
    /**
     * Counts a request to the dataset unless it is free, and sets the headers. A free request passes even if a limit is
     * used up (CONTRACT 4.5).
     * @throws ApiError 429 if a limit is used up.
     */
    async applyLimits(reply: Reply, cost: 'counted' | 'free'): Promise<void> {
      const { caller } = reply.locals
      if (caller === undefined) throw new TypeError('Only an authenticated request can be counted')
      const [claims, now] = [datasetClaims(caller), clock().getTime()]
      const quotas = cost === 'counted' ? await consume(claims, [], now) : await peek(claims, now)
      reply.set(quotaHeaders(quotas, now))
    },
    /**
     * Counts a chat request that begins.
     * @throws ApiError 429 if a limit of its key is used up.
     */
    async begin(caller: Caller): Promise<void> {
      const { requests, tokens } = keyClaims(caller)
      if (requests.length + tokens.length > 0) await consume(requests, tokens, clock().getTime())
    },
    /** Counts the tokens of a chat request that has ended. Never rejects: a failure is logged. */
    async spend(caller: Caller, tokens: number): Promise<void> {
      if (tokens <= 0) return
      try {
        for (const claim of keyClaims(caller).tokens)
          await count({ window: windowOf(claim, clock().getTime()), amount: tokens })
      } catch (error) {
        log.error({ err: error, key_id: caller.keyId, tokens }, 'tokens could not be counted for a limit')
      }
    },
  }
}

/** Between the parts of a window's name; none of them contains it. */
const SEPARATOR = '\n'

/** The window of a claim, named by the key of its row. */
function windowOf(claim: Claim, now: number): string {
  return [claim.name, claim.subject, new Date(windowEnd(claim, now)).toISOString()].join(SEPARATOR)
}

const USED = (rows: number) => `
  SELECT policy, subject, window_ends, used FROM quotas
  WHERE (policy, subject, window_ends) IN (VALUES ${places(3, rows)})`
const COUNT = (rows: number) => `
  INSERT INTO quotas (policy, subject, window_ends, used) VALUES ${places(4, rows)}
  ON CONFLICT (policy, subject, window_ends) DO UPDATE SET used = quotas.used + excluded.used
  RETURNING policy, subject, window_ends, used`
const DELETE_PAST = 'DELETE FROM quotas WHERE window_ends < $1'

/** Past windows are deleted this often, and this late, since the clocks of several machines differ. */
const DELETE_EVERY_MS = 60_000
const DELETE_LATE_MS = 120_000

const rowsSchema = z.array(
  z.object({ policy: z.string(), subject: z.string(), window_ends: z.string(), used: z.number() }),
)

/** The counts in `store`: one statement reads, and one counts, for all requests of a turn of the event loop. */
function createCounts(store: Queries) {
  let deletedAt = 0

  /** What is used by window, after this statement. */
  async function run(sql: string, values: readonly (string | number)[]): Promise<Map<string, number>> {
    const rows = rowsSchema.parse(await store.query(sql, values))
    return new Map(rows.map((row) => [[row.policy, row.subject, row.window_ends].join(SEPARATOR), row.used]))
  }

  return {
    usedIn: collectTurn(async (windows: readonly string[]) => {
      const wanted = [...new Set(windows)]
      const keys = wanted.flatMap((window) => window.split(SEPARATOR))
      const used = await run(USED(wanted.length), keys)
      return (window) => used.get(window) ?? 0
    }),

    /** Counts an amount; resolves to what is used with it and with all that was counted before it, in any process. */
    count: collectTurn(async (counts: readonly { readonly window: string; readonly amount: number }[]) => {
      const sums = new Map<string, number>()
      for (const { window, amount } of counts) sums.set(window, (sums.get(window) ?? 0) + amount)
      // In one order, since PostgreSQL locks one row after the other.
      const rows = [...sums].toSorted(([one], [other]) => (one < other ? -1 : 1))
      const values = rows.flatMap(([window, sum]) => [...window.split(SEPARATOR), sum])
      const used = await run(COUNT(rows.length), values)
      for (const [window, sum] of rows) used.set(window, (used.get(window) ?? 0) - sum)
      return ({ window, amount }) => {
        const total = (used.get(window) ?? 0) + amount
        used.set(window, total)
        return total
      }
    }),

    /** Deletes past windows now and then. */
    deletePast: (now: number): void => {
      if (Math.abs(now - deletedAt) < DELETE_EVERY_MS) return
      deletedAt = now
      // What remains is deleted the next time.
      store.query(DELETE_PAST, [new Date(now - DELETE_LATE_MS).toISOString()]).catch(() => undefined)
    },
  }
}
