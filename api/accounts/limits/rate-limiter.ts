/**
 * Counts requests against the rate limits in the store, with one statement each, so that restarts and further processes
 * agree (CONTRACT 4.5).
 */
import { z } from 'zod'
import type { Caller } from '../../http/call.ts'
import type { RequestStore } from '../../store/request-store.ts'
import { decide, latestEnd, POLICIES, type Decision, type Policy, type RateLimiter } from './policies.ts'

/** The places of a policy's values in COUNT, after the time of the request. */
const PLACES = POLICIES.map(({ name, limit }, index) => {
  const first = 3 * index + 2
  return { name, limit, subject: `$${first}`, windowEnds: `$${first + 1}`, latest: `$${first + 2}` }
})
const ASKED = PLACES.map(
  ({ name, limit, subject, windowEnds, latest }) =>
    `('${name}', ${subject}, ${windowEnds}, ${latest}, ${limit})`,
)
const ALLOWED = PLACES.map(({ name, limit }) => `WHEN '${name}' THEN ${limit}`)
const LATEST_END = PLACES.map(({ name, latest }) => `WHEN '${name}' THEN ${latest}`)
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
type StoredWindow = z.infer<typeof windowsSchema>[number]

/** The rate limiter over a store. */
export function createRateLimiter(store: RequestStore): RateLimiter {
  return {
    peek: (caller, now) => peekAll(store, caller, now),
    async consume(caller, now) {
      for (;;) {
        const counted = await countAll(store, caller, now)
        if (counted !== undefined) return counted
        const decision = await peekAll(store, caller, now)
        // Otherwise there is room again: others have given back what they had counted.
        if (decision.exhausted !== undefined) return decision
      }
    },
  }
}

// Undefined when a limit is used up.
async function countAll(store: RequestStore, caller: Caller, now: Date): Promise<Decision | undefined> {
  const places = POLICIES.flatMap((policy) => [
    policy.subject(caller),
    timeText(policy.windowEnd(now.getTime())),
    latestEndText(policy, now),
  ])
  const windows = windowsSchema.parse(await store.query(COUNT, [now.toISOString(), ...places]))
  // The last place may just have been taken.
  if (windows.length === POLICIES.length) return { ...decisionOn(windows, now), exhausted: undefined }
  // Others write at the same time: one of them may have used up a limit since the statement looked. A process that
  // dies before it gives back what it counted leaves one request too many there, until the window ends.
  for (const policy of POLICIES) {
    const window = windowOf(windows, policy)
    if (window !== undefined) await giveBack(store, policy, caller, window)
  }
  return undefined
}

async function giveBack(
  store: RequestStore,
  policy: Policy,
  caller: Caller,
  window: StoredWindow,
): Promise<void> {
  await store.query(GIVE_BACK, [policy.name, policy.subject(caller), window.window_ends])
}

async function peekAll(store: RequestStore, caller: Caller, now: Date): Promise<Decision> {
  const subjects = POLICIES.flatMap((policy) => [policy.subject(caller), latestEndText(policy, now)])
  return decisionOn(windowsSchema.parse(await store.query(PEEK, [now.toISOString(), ...subjects])), now)
}

function decisionOn(stored: readonly StoredWindow[], now: Date): Decision {
  const windows = POLICIES.map((policy) => {
    const window = windowOf(stored, policy)
    return window && { ends: Date.parse(window.window_ends), used: window.used }
  })
  return decide(windows, now.getTime())
}

function windowOf(windows: readonly StoredWindow[], { name }: Policy): StoredWindow | undefined {
  return windows.find((window) => window.policy === name)
}

function latestEndText(policy: Policy, now: Date): string {
  return timeText(latestEnd(policy, now.getTime()))
}

function timeText(time: number): string {
  return new Date(time).toISOString()
}
