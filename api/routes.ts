/** The route table of the service, as data. */
import type { Registry } from 'prom-client'
import { createApplyLimits, type RateLimiter } from './accounts/rate-limiter.ts'
import type { Clock } from './http/call.ts'
import type { Route } from './http/route.ts'
import type { Chat } from './chat/service.ts'
import { chatRoutes } from './chat/routes.ts'
import type { CronSchedule } from './process/cron-schedule.ts'
import type { Bodies } from './datasets/reply.ts'
import type { Snapshots } from './datasets/snapshots/current.ts'
import { datasetRoutes } from './datasets/routes.ts'
import { serveMetrics } from './process/metrics.ts'
import { openApiRoutes } from './openapi/routes.ts'
import { sendJson } from './http/respond.ts'
import type { SyncJobs } from './scim/jobs.ts'
import { scimRoutes } from './scim/routes.ts'
import { HEALTH_PATH } from './paths.ts'
import type { Readiness } from './readiness.ts'
import type { Store } from './store/store.ts'
import { webRoutes } from './web/routes.ts'
import type { Views } from './web/views.ts'

/** What the handlers need. */
export interface RouteDependencies {
  /** The store, with every wait bounded. */
  readonly store: Store
  readonly limiter: RateLimiter
  readonly snapshots: Snapshots
  readonly bodies: Bodies
  readonly chat: Chat
  readonly syncJobs: SyncJobs
  readonly clock: Clock
  /** The times of the nightly run. */
  readonly schedule: CronSchedule
  readonly views: Views
  /** Public origin of the service; undefined to use the request's host. */
  readonly publicUrl: string | undefined
  /** The setting PORT. */
  readonly port: number
  readonly metrics: Registry
  readonly readiness: Readiness
}

export function createRoutes({
  store,
  limiter,
  snapshots,
  bodies,
  chat,
  syncJobs,
  clock,
  schedule,
  views,
  publicUrl,
  port,
  metrics,
  readiness,
}: RouteDependencies): readonly Route[] {
  const applyLimits = createApplyLimits(limiter, clock)
  const described = [
    ...datasetRoutes({ snapshots, bodies, applyLimits, clock, schedule }),
    ...chatRoutes(chat),
    ...scimRoutes(store, syncJobs),
  ]
  return [
    ...described,
    ...openApiRoutes(described),
    ...webRoutes({ snapshots, views, publicUrl, port }),
    {
      method: 'GET',
      path: HEALTH_PATH,
      access: 'open',
      handle: (_request, reply) => sendJson(reply, 200, { status: 'ok' }),
    },
    {
      method: 'GET',
      path: '/readyz',
      access: 'open',
      handle: readiness.handle,
    },
    { method: 'GET', path: '/metrics', access: 'open', handle: serveMetrics(metrics) },
  ]
}
