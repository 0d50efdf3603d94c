/** The route table: everything the service answers, as data. */
import { createRateLimiter } from './accounts/rate-limits.ts'
import { createSpend } from './accounts/spend.ts'
import type { Clock } from './call.ts'
import type { Snapshots } from './datasets/choose-snapshot.ts'
import { datasetRoutes } from './datasets/routes.ts'
import type { Log } from './log.ts'
import { sendJson } from './respond.ts'
import type { Route } from './route.ts'
import type { Store } from './store.ts'

/** What the handlers stand on. */
export interface RouteDependencies {
  readonly store: Store
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
  /** Cron expression in UTC. */
  readonly schedule: string
}

/** All routes of the service. */
export function createRoutes({
  store,
  snapshots,
  clock,
  log,
  schedule,
}: RouteDependencies): readonly Route[] {
  const spend = createSpend(createRateLimiter(store), clock)
  return [
    ...datasetRoutes({ snapshots, spend, clock, log, schedule }),
    {
      method: 'GET',
      path: '/healthz',
      access: 'open',
      handle: (_request, reply) => sendJson(reply, 200, { status: 'ok' }),
    },
  ]
}
