/** The route table: everything the service answers, as data. */
import type { Registry } from 'prom-client'
import type { Access } from './accounts/authenticate.ts'
import { createSpend } from './accounts/spend.ts'
import { createRateLimiter } from './accounts/rate-limits.ts'
import type { Clock, Handler } from './call.ts'
import { appRankings } from './datasets/app-rankings.ts'
import type { CurrentSnapshot } from './datasets/current-snapshot.ts'
import { nightlySchedule } from './datasets/nightly-schedule.ts'
import { datasetStatus } from './datasets/status.ts'
import { serveMetrics } from './metrics.ts'
import { sendJson } from './respond.ts'
import type { Store } from './store.ts'

/** One operation. A GET answers HEAD as well. */
export interface Route {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly access: Access
  /** Whether the rate limits apply: the handler settles them, and every reply states them. */
  readonly limited?: boolean
  /** Takes a JSON body of at most this many bytes; without it a body is not read. */
  readonly bodyLimit?: number
  readonly handle: Handler
}

/** What the handlers stand on. */
export interface RouteDependencies {
  readonly store: Store
  readonly snapshots: CurrentSnapshot
  readonly clock: Clock
  /** Cron expression in UTC. */
  readonly schedule: string
  readonly metrics: Registry
}

/** Where the API begins; *origin* paths of the contract lie outside it. */
export const BASE_PATH = '/api/v1'

/** All routes of the service. */
export function createRoutes(dependencies: RouteDependencies): readonly Route[] {
  const { store, snapshots, clock, schedule, metrics } = dependencies
  const spend = createSpend(createRateLimiter(store), clock)
  return [
    {
      method: 'GET',
      path: `${BASE_PATH}/datasets/app-rankings`,
      access: 'any',
      limited: true,
      handle: appRankings(snapshots, spend),
    },
    {
      method: 'GET',
      path: `${BASE_PATH}/status`,
      access: 'open',
      handle: datasetStatus(snapshots, nightlySchedule(schedule), clock),
    },
    {
      method: 'GET',
      path: '/healthz',
      access: 'open',
      handle: (_request, reply) => sendJson(reply, 200, { status: 'ok' }),
    },
    { method: 'GET', path: '/metrics', access: 'open', handle: serveMetrics(metrics) },
  ]
}
