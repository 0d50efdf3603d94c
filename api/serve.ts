/** The running service: opens store, snapshots, chat and HTTP server in order, and closes them in reverse. */
import { setTimeout as sleep } from 'node:timers/promises'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { localUrl } from '../pipeline/program/settings.ts'
import { createApplyLimits, createKeyLimits, createRateLimiter } from './accounts/rate-limiter.ts'
import { chatRoutes } from './chat/routes.ts'
import { CHAT_LIMITS, openChat, type ChatLimits } from './chat/service.ts'
import type { Settings } from './config.ts'
import { RANKINGS } from './datasets/rankings.ts'
import { Bodies } from './datasets/reply.ts'
import { datasetRoutes } from './datasets/routes.ts'
import { openSnapshots } from './datasets/snapshots/current.ts'
import { measureDataset } from './datasets/status.ts'
import { createApp } from './http/app.ts'
import type { Clock, Handler } from './http/call.ts'
import { sendJson } from './http/respond.ts'
import type { Route } from './http/route.ts'
import { HTTP_LIMITS, listen, type HttpLimits } from './http/server.ts'
import { openApiRoutes } from './openapi/routes.ts'
import { HEALTH_PATH } from './paths.ts'
import { cronSchedule } from './process/cron-schedule.ts'
import type { Log } from './process/log.ts'
import { createWebhook } from './process/webhook.ts'
import { createReadiness } from './readiness.ts'
import { SYNC_LIMITS } from './scim/client.ts'
import { createSyncJobs, LEASE_MS, type JobDependencies } from './scim/jobs.ts'
import { createScimMetrics } from './scim/metrics.ts'
import { scimRoutes } from './scim/routes.ts'
import { openStore } from './store/open-store.ts'
import { createRequestStore } from './store/request-store.ts'
import type { Store } from './store/store.ts'
import { listView, PAGES } from './web/list-page.ts'
import { webRoutes } from './web/routes.ts'
import { createViews } from './web/views.ts'

/** Milliseconds for syncs to record that they were interrupted. */
const SYNC_STOP_MS = 10_000

/** The most frequent requests and views, which are prepared before a new snapshot is served. */
const USUAL = [{}, { sort: 'trending' }]

export interface Service {
  /** Its own address, `http://host:port`. */
  readonly origin: string
  readonly store: Store
  readonly routes: readonly Route[]
  /** Reloads the routing configuration of chat. */
  reload(): Promise<void>
  /** Finishes requests in flight, then closes snapshot and store. */
  close(): Promise<void>
}

export interface ServeDependencies {
  readonly log: Log
  readonly clock?: Clock
  readonly limits?: HttpLimits
  /** Holds the tokens of directories and the keys of providers. */
  readonly environment: NodeJS.ProcessEnv
  /** Overrides of syncs for tests. */
  readonly sync?: Partial<Pick<JobDependencies, 'limits' | 'leaseMs' | 'wait' | 'syncMs'>>
  /** Overrides of chat for tests. */
  readonly chat?: Partial<ChatLimits>
}

/**
 * Opens all parts of the API and listens.
 * @throws {OperatorError} if the data folder, the database, the routing configuration or the address is unusable.
 */
export async function serve(settings: Settings, dependencies: ServeDependencies): Promise<Service> {
  const opened = new AsyncDisposableStack()
  try {
    return await open(settings, dependencies, opened)
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}

async function open(
  settings: Settings,
  given: ServeDependencies,
  opened: AsyncDisposableStack,
): Promise<Service> {
  const { log, clock = () => new Date(), limits = HTTP_LIMITS } = given
  const { HOST: host, PORT: port } = settings
  const store = opened.adopt(await openStore(settings, clock()), (it) => it.close())
  const parts = await openParts(settings, { ...given, clock, store }, opened)
  const { chat, syncJobs, snapshots, metrics, requestStore } = parts
  const readiness = createReadiness({ store: requestStore, snapshots, chat, unreadyMs: limits.unreadyMs })
  const routes = [
    ...parts.routes,
    openRoute(HEALTH_PATH, (_request, reply) => sendJson(reply, 200, { status: 'ok' })),
    openRoute('/readyz', readiness.handle),
    openRoute('/metrics', async (_request, reply) => {
      reply.set('Content-Type', metrics.contentType).end(await metrics.metrics())
    }),
  ]
  const app = createApp({ routes, store: requestStore, clock, log, stallMs: limits.stallMs, metrics })
  const server = await listen(app, { host, port, log, limits, beforeCut: () => chat.cancel() })
  // Syncs are interrupted at once: they would only be cut after the requests in flight. A silent database may hold one.
  opened.defer(async () => {
    const interrupted = Promise.race([syncJobs.close(), sleep(SYNC_STOP_MS, undefined, { ref: false })])
    await Promise.all([server.close(), interrupted])
  })
  syncJobs.begin()
  log.info({ origin: server.origin }, 'listening')
  return {
    origin: server.origin,
    store,
    routes,
    reload: () => chat.models.reload(),
    async close() {
      await readiness.stop()
      await opened.disposeAsync()
      log.info('stopped')
    },
  }
}

function openRoute(path: string, handle: Handler): Route {
  return { method: 'GET', path, access: 'open', handle }
}

type PartDependencies = ServeDependencies & { readonly clock: Clock; readonly store: Store }

/** The dataset with its pages, chat and directory sync, and their routes. */
async function openParts(settings: Settings, given: PartDependencies, opened: AsyncDisposableStack) {
  const { log, clock, store, environment } = given
  const metrics = new Registry()
  collectDefaultMetrics({ register: metrics })
  const requestStore = createRequestStore(store, log)
  const limiter = createRateLimiter(requestStore)
  const dataset = await openDataset(settings, given, opened)
  measureDataset(metrics, dataset.snapshots)
  const keyLimits = createKeyLimits(limiter, clock, log)
  const shared = { settings, store, keyLimits, clock, log, metrics, environment }
  const chat = await openChat({ ...shared, limits: { ...CHAT_LIMITS, ...given.chat } })
  opened.defer(() => chat.close())
  const syncJobs = createSyncJobs(
    {
      ...shared,
      metrics: createScimMetrics(metrics),
      limits: SYNC_LIMITS,
      leaseMs: LEASE_MS,
      syncMs: settings.SCIM_SYNC_MINUTES * 60_000,
      notify: createWebhook(settings.NOTICE_WEBHOOK, log),
      ...given.sync,
    },
    settings.SCIM_CONCURRENT_SYNCS,
  )
  const request = (accountId: string) => requestStore.bounded(syncJobs.request(accountId))
  const described = [
    ...datasetRoutes({ ...dataset, applyLimits: createApplyLimits(limiter, clock), clock }),
    ...chatRoutes(chat),
    ...scimRoutes(requestStore, { ...syncJobs, request }),
  ]
  const { PUBLIC_URL: publicUrl, PORT: port } = settings
  const routes = [...described, ...openApiRoutes(described), ...webRoutes({ ...dataset, publicUrl, port })]
  return { chat, syncJobs, snapshots: dataset.snapshots, metrics, requestStore, routes }
}

async function openDataset(
  { DATA_DIR: dataDir, API_MEMORY: memory, PUBLIC_URL: publicUrl, PORT: port, NIGHTLY_SCHEDULE }: Settings,
  { log, clock }: PartDependencies,
  opened: AsyncDisposableStack,
) {
  const snapshots = await openSnapshots(dataDir, memory, log)
  opened.defer(() => snapshots.close())
  const bodies = new Bodies()
  const schedule = cronSchedule(NIGHTLY_SCHEDULE)
  const views = createViews({ snapshots, schedule, clock, origin: publicUrl ?? localUrl(String(port)) })
  await snapshots.follow(async (snapshot) => {
    await bodies.warm(snapshot, RANKINGS, USUAL)
    for (const query of USUAL) await views.warm(listView('apps'), snapshot, PAGES.apps, query)
  })
  return { bodies, schedule, views, snapshots }
}
