/** The limits of a single key (CONTRACT 6): requests a minute and tokens a UTC day, for chat. */
import type { Caller, Clock } from '../../http/call.ts'
import type { Log } from '../../process/log.ts'
import { DAY_SECONDS, MINUTE_SECONDS, tooManyRequests, type Claim } from './policies.ts'
import type { RateLimiter } from './rate-limiter.ts'

export interface KeyLimits {
  /**
   * Counts a request that begins.
   * @throws {ApiError} 429 if a limit of its key is used up.
   */
  begin(caller: Caller): Promise<void>
  /** Counts the tokens of a request that has ended. Never rejects: a failure is logged. */
  spend(caller: Caller, tokens: number): Promise<void>
}

export function createKeyLimits(limiter: RateLimiter, clock: Clock, log: Log): KeyLimits {
  return {
    async begin(caller) {
      const [requests, tokens] = [requestClaims(caller), tokenClaims(caller)]
      if (tokens.length > 0) refuse(await limiter.peek([...requests, ...tokens], clock()))
      if (requests.length > 0) refuse(await limiter.consume(requests, clock()))
    },
    async spend(caller, tokens) {
      if (tokens <= 0) return
      try {
        for (const claim of tokenClaims(caller)) await limiter.add(claim, tokens, clock())
      } catch (error) {
        log.error({ err: error, key_id: caller.keyId, tokens }, 'tokens could not be counted for a limit')
      }
    },
  }
}

function requestClaims({ keyId, limits }: Caller): readonly Claim[] {
  const limit = limits?.requestsPerMinute ?? undefined
  if (limit === undefined) return []
  const policy = {
    name: 'key-requests-per-minute',
    limit,
    windowSeconds: MINUTE_SECONDS,
    unit: 'requests',
  } as const
  return [{ policy, subject: keyId }]
}

function tokenClaims({ keyId, limits }: Caller): readonly Claim[] {
  const limit = limits?.tokensPerDay ?? undefined
  if (limit === undefined) return []
  const policy = { name: 'key-tokens-per-day', limit, windowSeconds: DAY_SECONDS, unit: 'tokens' } as const
  return [{ policy, subject: keyId }]
}

function refuse({ exhausted }: Awaited<ReturnType<RateLimiter['peek']>>): void {
  if (exhausted !== undefined) throw tooManyRequests(exhausted)
}
