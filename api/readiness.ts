/** GET /healthz, /readyz and /metrics: whether the process runs, whether it can serve requests, and its figures. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import type { Chat } from './chat/service.ts'
import type { Snapshots } from './datasets/snapshots/current.ts'
import { sendJson, type Handler } from './http/call.ts'
import { ApiError } from './http/errors.ts'
import type { Route } from './http/route.ts'
import { HEALTH_PATH } from './paths.ts'
import type { Queries } from './store/store.ts'

type ReadinessDependencies = {
  readonly store: Queries
  readonly snapshots: Pick<Snapshots, 'current' | 'fault'>
  readonly chat: Pick<Chat, 'recordsWaiting'>
  readonly metrics: Registry
  /** Milliseconds for a load balancer to poll once more before the service stops. */
  readonly unreadyMs: number
}

/** A client that polled within this time counts as a load balancer. */
const WATCHED_MS = 30_000

/** Readiness of a running service, with the routes for its operators. */
export function createReadiness(dependencies: ReadinessDependencies) {
  const { store, snapshots, chat, metrics, unreadyMs } = dependencies
  let isStopping = false
  let polledAt = Number.NEGATIVE_INFINITY

  /**
   * Answers 200, also while an older snapshot replaces the newest or usage records wait for a disk (degraded), or 503
   * with the reasons.
   */
  const ready: Handler = async (_request, reply) => {
    polledAt = performance.now()
    const reasons = isStopping ? ['the service is stopping'] : []
    await store.query('SELECT 1 AS one').catch(() => reasons.push('the store does not answer'))
    if (snapshots.current() === undefined) reasons.push('no snapshot is open')
    if (reasons.length > 0) {
      throw new ApiError(503, `Not ready: ${reasons.join(', ')}`, {
        metadata: { reasons },
        headers: { 'Retry-After': '5' },
      })
    }
    const degraded: string[] = []
    const [fault, waiting] = [snapshots.fault(), chat.recordsWaiting()]
    if (fault !== undefined) degraded.push(`${fault.thing} ${fault.message}`)
    if (waiting > 0) degraded.push(`${waiting} usage records cannot be written`)
    const state = degraded.length > 0 ? { status: 'degraded', reasons: degraded } : { status: 'ready' }
    sendJson(reply, 200, state)
  }

  const routes: readonly Route[] = [
    route(HEALTH_PATH, (_request, reply) => sendJson(reply, 200, { status: 'ok' })),
    route('/readyz', ready),
    route('/metrics', async (_request, reply) => {
      reply.set('Content-Type', metrics.contentType).end(await metrics.metrics())
    }),
  ]

  /** Answers 503 from here on; if a balancer polls regularly, resolves once it will have seen that. */
  async function stop(): Promise<void> {
    isStopping = true
    if (performance.now() - polledAt < WATCHED_MS) await sleep(unreadyMs)
  }
  return { routes, stop }
}

function route(path: string, handle: Handler): Route {
  return { method: 'GET', path, access: 'open', handle }
}
