/**
 * GET /readyz: whether requests can be served, for load balancers and rolling restarts. /healthz covers the process
 * alone.
 */
import type { Snapshots } from './datasets/snapshots/choose.ts'
import type { Handler } from './http/call.ts'
import { ApiError } from './http/errors.ts'
import { sendJson } from './http/respond.ts'
import type { RequestStore } from './store/request-store.ts'

interface ReadinessDependencies {
  readonly store: RequestStore
  readonly snapshots: Pick<Snapshots, 'current'>
  /** Whether the service is stopping. */
  readonly isStopping: () => boolean
}

const RETRY_AFTER_SECONDS = 5

/** Answers 200, also while an older snapshot replaces the newest (degraded), or 503 with the reasons. */
export function readiness({ store, snapshots: { current }, isStopping }: ReadinessDependencies): Handler {
  return async (_request, reply) => {
    const storeAnswers = await store.query('SELECT 1 AS one').then(
      () => true,
      () => false,
    )
    const reasons = [
      ...(isStopping() ? ['the service is stopping'] : []),
      ...(storeAnswers ? [] : ['the store does not answer']),
      ...(current.facts() === undefined ? ['no snapshot is open'] : []),
    ]
    const fault = current.fault()
    const degraded = fault && { status: 'degraded', reasons: [`${fault.thing} ${fault.message}`] }
    if (reasons.length === 0) return sendJson(reply, 200, degraded ?? { status: 'ready' })
    throw new ApiError(503, `Not ready: ${reasons.join(', ')}`, {
      metadata: { reasons },
      headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
    })
  }
}
