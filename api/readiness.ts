/**
 * GET /readyz: whether requests can be served, for load balancers and rolling restarts. /healthz covers the process
 * alone.
 */
import type { Chat } from './chat/service.ts'
import type { Snapshots } from './datasets/snapshots/current.ts'
import type { Handler } from './http/call.ts'
import { ApiError } from './http/errors.ts'
import { sendJson } from './http/respond.ts'
import type { RequestStore } from './store/request-store.ts'

interface ReadinessDependencies {
  readonly store: RequestStore
  readonly snapshots: Pick<Snapshots, 'current' | 'fault'>
  readonly chat: Pick<Chat, 'recordsWaiting'>
  /** Milliseconds for a load balancer to poll once more when the service stops. */
  readonly unreadyMs: number
}

const RETRY_AFTER_SECONDS = 5

/** A client that polled within this time counts as a load balancer. */
const WATCHED_MS = 30_000

/** Readiness of a running service. */
export function createReadiness({ store, snapshots, chat, unreadyMs }: ReadinessDependencies) {
  let isStopping = false
  let polledAt = Number.NEGATIVE_INFINITY
  const { promise: polled, resolve: markPolled } = Promise.withResolvers<void>()

  /**
   * Answers 200, also while an older snapshot replaces the newest or usage records wait for a disk (degraded), or 503
   * with the reasons.
   */
  const handle: Handler = async (_request, reply) => {
    polledAt = performance.now()
    if (isStopping) reply.once('close', markPolled)
    const reasons = isStopping ? ['the service is stopping'] : []
    await store.query('SELECT 1 AS one').catch(() => reasons.push('the store does not answer'))
    if (snapshots.current() === undefined) reasons.push('no snapshot is open')
    if (reasons.length > 0) {
      throw new ApiError(503, `Not ready: ${reasons.join(', ')}`, {
        metadata: { reasons },
        headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
      })
    }
    const [fault, waiting] = [snapshots.fault(), chat.recordsWaiting()]
    const degraded: string[] = []
    if (fault !== undefined) degraded.push(`${fault.thing} ${fault.message}`)
    if (waiting > 0) degraded.push(`${waiting} usage records cannot be written`)
    sendJson(
      reply,
      200,
      degraded.length > 0 ? { status: 'degraded', reasons: degraded } : { status: 'ready' },
    )
  }

  /** Answers 503 from here on. If a balancer polls regularly, resolves after its next poll. */
  async function stop(): Promise<void> {
    isStopping = true
    if (performance.now() - polledAt > WATCHED_MS) return
    const timer = setTimeout(markPolled, unreadyMs)
    await polled
    clearTimeout(timer)
  }
  return { handle, stop }
}
