/** The route table: everything the service answers, as data. */
import { createSpend } from './accounts/spend.ts'
import { createRateLimiter } from './accounts/rate-limits.ts'
import type { Clock } from './call.ts'
import { appRankings } from './datasets/app-rankings.ts'
import type { CurrentSnapshot } from './datasets/current-snapshot.ts'
import { cronSchedule } from './cron-schedule.ts'
import { datasetStatus } from './datasets/status.ts'
import { sendJson } from './respond.ts'
import { BASE_PATH, type Route } from './route.ts'
import type { SyncJobs } from './scim/jobs.ts'
import { scimRoutes } from './scim/routes.ts'
import type { Store } from './store.ts'

/** What the handlers stand on. */
export interface RouteDependencies {
  readonly store: Store
  readonly snapshots: CurrentSnapshot
  readonly syncJobs: SyncJobs
  readonly clock: Clock
  /** Cron expression in UTC. */
  readonly schedule: string
}

/** All routes of the service. */
export function createRoutes(dependencies: RouteDependencies): readonly Route[] {
  const { store, snapshots, syncJobs, clock, schedule } = dependencies
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
      handle: datasetStatus(snapshots, cronSchedule(schedule), clock),
    },
    ...scimRoutes(store, syncJobs),
    {
      method: 'GET',
      path: '/healthz',
      access: 'open',
      handle: (_request, reply) => sendJson(reply, 200, { status: 'ok' }),
    },
  ]
}
