/** The running service: opens store, snapshots and HTTP server in order, and closes them in reverse. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import { localUrl } from '../pipeline/program/settings.ts'
import { createApp } from './http/app.ts'
import type { Clock } from './http/call.ts'
import type { Route } from './http/route.ts'
import { CHAT_LIMITS, openChat, type ChatLimits } from './chat/service.ts'
import type { Settings } from './config.ts'
import { Catalogue } from './datasets/snapshots/catalogue.ts'
import { openSnapshots, type Snapshots } from './datasets/snapshots/current.ts'
import { RANKINGS } from './datasets/rankings.ts'
import { createBodies, type Bodies } from './datasets/reply.ts'
import { measureDataset } from './datasets/status.ts'
import { HTTP_LIMITS, listen, type HttpLimits } from './http/server.ts'
import { cronSchedule, type CronSchedule } from './process/cron-schedule.ts'
import type { Log } from './process/log.ts'
import { createMetricsRegistry } from './process/metrics.ts'
import { createWebhook } from './process/webhook.ts'
import { createKeyLimits, createRateLimiter } from './accounts/rate-limiter.ts'
import { openStore } from './store/open-store.ts'
import { createRequestStore } from './store/request-store.ts'
import { createReadiness } from './readiness.ts'
import { createRoutes } from './routes.ts'
import { SYNC_LIMITS } from './scim/client.ts'
import { createSyncJobs, LEASE_MS, type JobDependencies, type SyncJobs } from './scim/jobs.ts'
import { createScimMetrics } from './scim/metrics.ts'
import type { Store } from './store/store.ts'
import { listView, PAGES } from './web/list-page.ts'
import { createViews, type Views } from './web/views.ts'

/** Milliseconds for syncs to record that they were interrupted. */
const SYNC_STOP_MS = 10_000

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
  const { log, clock = () => new Date(), limits = HTTP_LIMITS, environment, sync, chat: chatLimits } = given
  const store = opened.adopt(await openStore(settings, clock()), (it) => it.close())
  const metrics = createMetricsRegistry()
  const bodies = createBodies()
  const base = { metrics, clock, schedule: cronSchedule(settings.NIGHTLY_SCHEDULE) }
  const { snapshots, views } = await openDataset(settings, { ...base, log, bodies, opened })
  const requestStore = createRequestStore(store, log)
  const limiter = createRateLimiter(requestStore)
  const keyLimits = createKeyLimits(limiter, clock, log)
  const shared = { settings, store, keyLimits, clock, log, metrics, environment }
  const chat = opened.adopt(await openChat({ ...shared, limits: { ...CHAT_LIMITS, ...chatLimits } }), (it) =>
    it.close(),
  )
  const syncJobs = startSyncJobs(shared, sync)
  const { PUBLIC_URL: publicUrl, HOST: host, PORT: port } = settings
  const readiness = createReadiness({ store: requestStore, snapshots, chat, unreadyMs: limits.unreadyMs })
  const boundedJobs: SyncJobs = {
    ...syncJobs,
    request: (accountId) => requestStore.bounded(syncJobs.request(accountId)),
  }
  const served = { store: requestStore, readiness, snapshots, views, bodies, chat, syncJobs: boundedJobs }
  const routes = createRoutes({ ...served, ...base, limiter, publicUrl, port })
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

interface SnapshotOptions {
  readonly log: Log
  readonly metrics: Registry
  readonly clock: Clock
  readonly schedule: CronSchedule
  readonly bodies: Bodies
  readonly opened: AsyncDisposableStack
}

/** The snapshots, and the views that are prepared before a new one is served. */
async function openDataset(
  { DATA_DIR: dataDir, API_MEMORY: memory, PUBLIC_URL: publicUrl, PORT: port }: Settings,
  { log, metrics, clock, schedule, bodies, opened }: SnapshotOptions,
): Promise<{ snapshots: Snapshots; views: Views }> {
  const catalogue = new Catalogue(dataDir, log)
  const views = createViews({ catalogue, schedule, clock, origin: publicUrl ?? localUrl(String(port)) })
  const snapshots = await openSnapshots({
    dataDir,
    memory,
    catalogue,
    log,
    async prepare(snapshot) {
      // The most frequent requests and views.
      await bodies.warm(snapshot, RANKINGS, [{}, { sort: 'trending' }])
      for (const given of [{}, { sort: 'trending' }]) {
        await views.warm(snapshot, listView('apps'), PAGES.apps, given)
      }
    },
  })
  measureDataset(metrics, snapshots)
  opened.defer(() => snapshots.close())
  return { snapshots, views }
}

interface SyncDependencies extends Pick<JobDependencies, 'store' | 'clock' | 'log' | 'environment'> {
  readonly settings: Settings
  readonly metrics: Registry
}

function startSyncJobs(
  { settings, metrics, store, clock, log, environment }: SyncDependencies,
  sync: ServeDependencies['sync'],
): SyncJobs {
  return createSyncJobs(
    {
      store,
      clock,
      log,
      environment,
      metrics: createScimMetrics(metrics),
      limits: SYNC_LIMITS,
      leaseMs: LEASE_MS,
      syncMs: settings.SCIM_SYNC_MINUTES * 60_000,
      notify: createWebhook(settings.NOTICE_WEBHOOK, log),
      ...sync,
    },
    { concurrent: settings.SCIM_CONCURRENT_SYNCS },
  )
}
