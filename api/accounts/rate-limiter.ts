/** The rate limits (CONTRACT 4.5 and 6), counted in the store, so that restarts and several processes agree. */
import { z } from 'zod'
import type { Clock, Headers, Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import type { Log } from '../process/log.ts'
import { collectTurn, places, type Queries } from '../store/store.ts'
import type { StoredKey } from './keys.ts'

/** A limit of something in each window of the clock: a minute, or a UTC day. */
type Policy = {
  readonly name: string
  readonly limit: number
  readonly windowSeconds: number
  /** What is counted, in the plural. */
  readonly unit: 'requests' | 'tokens'
}

/** Between the parts of a window's key; none of them contains it. */
const SEPARATOR = '\n'

const MINUTE = { windowSeconds: 60, unit: 'requests' } as const
const DAY = { windowSeconds: 86_400, unit: 'requests' } as const

/** The limits of the dataset's paths, in the order of the headers: whose requests they count, and the unit for documents. */
export const POLICIES = [
  { ...MINUTE, name: 'per-minute', limit: 30, subject: 'id', sentence: 'per minute and key' },
  { ...DAY, name: 'per-day', limit: 500, subject: 'account_id', sentence: 'per UTC day and account' },
] as const

/** What a request counts against: a limit, and the present window of the key or account that it is counted for. */
type Claim = ReturnType<typeof claimOf>

/** A claim, and what is used of its limit in its window. */
type Quota = Claim & { readonly used: number }

function claimOf(policy: Policy, subject: string, now: Date) {
  const windowMs = policy.windowSeconds * 1000
  const ends = (Math.floor(now.getTime() / windowMs) + 1) * windowMs
  return {
    ...policy,
    /** The key of its row. */
    window: [policy.name, subject, new Date(ends).toISOString()].join(SEPARATOR),
    /** Whole seconds until the window ends, at least 1. */
    wait: Math.ceil((ends - now.getTime()) / 1000),
  }
}

/** The claims of a chat request: on the requests and on the tokens that its key is limited to, if any. */
function keyClaims({ id, requests_per_minute, tokens_per_day }: StoredKey, now: Date) {
  const claims = (limit: number | null, policy: Omit<Policy, 'limit'>): readonly Claim[] =>
    limit === null ? [] : [claimOf({ ...policy, limit }, id, now)]
  return {
    requests: claims(requests_per_minute, { ...MINUTE, name: 'key-requests-per-minute' }),
    tokens: claims(tokens_per_day, { ...DAY, name: 'key-tokens-per-day', unit: 'tokens' }),
  }
}

/** The fields of draft-ietf-httpapi-ratelimit-headers: policies and their remaining quotas. */
function quotaHeaders(quotas: readonly Quota[]): Headers {
  const policies = quotas.map(({ name, limit, windowSeconds }) => `"${name}";q=${limit};w=${windowSeconds}`)
  const rests = quotas.map(
    ({ name, limit, used, wait }) => `"${name}";r=${Math.max(0, limit - used)};t=${wait}`,
  )
  return { 'RateLimit-Policy': policies.join(', '), RateLimit: rests.join(', ') }
}

/** The headers of a reply that ends before its request is counted, such as a 401: the full quota. */
export function fullQuota(now: Date): Headers {
  return quotaHeaders(POLICIES.map((policy) => ({ ...claimOf(policy, '', now), used: 0 })))
}

/** The 429 for `quotas`, of which `exhausted` is used up; names the limit and the wait. */
function tooManyRequests(quotas: readonly Quota[], exhausted: Quota): ApiError {
  const { name, limit, unit, windowSeconds, wait } = exhausted
  const rule = `${limit} ${unit} in ${windowSeconds} seconds`
  return new ApiError(429, `Rate limit "${name}" is used up: ${rule}; retry in ${wait} seconds`, {
    headers: { ...quotaHeaders(quotas), 'Retry-After': String(wait) },
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
  function peek(claims: readonly Claim[]): Promise<readonly Quota[]> {
    return Promise.all(claims.map(async (claim) => ({ ...claim, used: await usedIn(claim.window) })))
  }

  /** Throws a 429 if a claim is used up. Minutes come before days: of two, the one with the longer wait is named. */
  async function check(claims: readonly Claim[]): Promise<void> {
    const quotas = await peek(claims)
    const exhausted = quotas.findLast(({ limit, used }) => used >= limit)
    if (exhausted !== undefined) throw tooManyRequests(quotas, exhausted)
  }

  /** Counts one request against all `claims`, unless a limit of them or of `others` is used up. */
  async function consume(claims: readonly Claim[], others: readonly Claim[] = []) {
    deletePast(clock().getTime())
    // A rejected request counts against no limit.
    await check([...claims, ...others])
    const quotas: Quota[] = []
    for (const claim of claims) {
      const used = await count({ window: claim.window, amount: 1 })
      // Others have taken the last place since the check. The count beyond the limit changes nothing: this window is used
      // up, and an earlier, shorter one ends no later.
      if (used > claim.limit) await check(claims)
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
      const now = clock()
      const claims = POLICIES.map((policy) => claimOf(policy, caller[policy.subject], now))
      reply.set(quotaHeaders(await (cost === 'counted' ? consume(claims) : peek(claims))))
    },
    /**
     * Counts a chat request that begins.
     * @throws ApiError 429 if a limit of its key is used up.
     */
    async begin(caller: StoredKey): Promise<void> {
      const { requests, tokens } = keyClaims(caller, clock())
      if (requests.length + tokens.length > 0) await consume(requests, tokens)
    },
    /** Counts the tokens of a chat request that has ended. Never rejects: a failure is logged. */
    async spend(caller: StoredKey, tokens: number): Promise<void> {
      if (tokens <= 0) return
      try {
        for (const { window } of keyClaims(caller, clock()).tokens) await count({ window, amount: tokens })
      } catch (error) {
        log.error({ err: error, key_id: caller.id, tokens }, 'tokens could not be counted for a limit')
      }
    },
  }
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
