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

export interface Readiness {
  /**
   * Answers 200, also while an older snapshot replaces the newest or usage records wait for a disk (degraded), or 503
   * with the reasons.
   */
  readonly handle: Handler
  /** Answers 503 from here on. If a balancer polls regularly, resolves after its next poll. */
  stop(): Promise<void>
}

const RETRY_AFTER_SECONDS = 5

/** A client that polled within this time counts as a load balancer. */
const WATCHED_MS = 30_000

export function createReadiness({ store, snapshots, chat, unreadyMs }: ReadinessDependencies): Readiness {
  let isStopping = false
  let polledAt = Number.NEGATIVE_INFINITY
  const { promise: polled, resolve: markPolled } = Promise.withResolvers<void>()
  return {
    async handle(_request, reply) {
      polledAt = performance.now()
      if (isStopping) reply.once('close', markPolled)
      const storeAnswers = await store.query('SELECT 1 AS one').then(
        () => true,
        () => false,
      )
      const reasons = [
        ...(isStopping ? ['the service is stopping'] : []),
        ...(storeAnswers ? [] : ['the store does not answer']),
        ...(snapshots.current() === undefined ? ['no snapshot is open'] : []),
      ]
      const fault = snapshots.fault()
      const waiting = chat.recordsWaiting()
      const degraded = [
        ...(fault === undefined ? [] : [`${fault.thing} ${fault.message}`]),
        ...(waiting === 0 ? [] : [`${waiting} usage records cannot be written`]),
      ]
      const state = degraded.length === 0 ? { status: 'ready' } : { status: 'degraded', reasons: degraded }
      if (reasons.length === 0) return sendJson(reply, 200, state)
      throw new ApiError(503, `Not ready: ${reasons.join(', ')}`, {
        metadata: { reasons },
        headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
      })
    },
    async stop() {
      isStopping = true
      if (performance.now() - polledAt > WATCHED_MS) return
      const timer = setTimeout(markPolled, unreadyMs)
      await polled
      clearTimeout(timer)
    },
  }
}
