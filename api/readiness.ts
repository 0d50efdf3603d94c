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
  /** Milliseconds that whoever asks gets to ask once more when the service stops. */
  readonly tellMs: number
}

export interface Readiness {
  /** Answers 200, also while an older snapshot replaces the newest (degraded), or 503 with the reasons. */
  readonly handle: Handler
  /** Answers 503 from now on. If a balancer asks regularly, resolves when it has been told. */
  stop(): Promise<void>
}

const RETRY_AFTER_SECONDS = 5

/** Who asked within this time is taken for a balancer. */
const WATCHED_MS = 30_000

export function createReadiness({ store, snapshots: { current }, tellMs }: ReadinessDependencies): Readiness {
  let isStopping = false
  let askedAt = Number.NEGATIVE_INFINITY
  const { promise: told, resolve: tell } = Promise.withResolvers<void>()
  return {
    async handle(_request, reply) {
      askedAt = performance.now()
      if (isStopping) reply.once('close', tell)
      const storeAnswers = await store.query('SELECT 1 AS one').then(
        () => true,
        () => false,
      )
      const reasons = [
        ...(isStopping ? ['the service is stopping'] : []),
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
    },
    async stop() {
      isStopping = true
      if (performance.now() - askedAt > WATCHED_MS) return
      const timer = setTimeout(tell, tellMs)
      await told
      clearTimeout(timer)
    },
  }
}
