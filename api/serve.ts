/** The running service: opens store, snapshots, chat and HTTP server in order, and closes them in reverse. */
import { setTimeout as sleep } from 'node:timers/promises'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { localUrl } from '../pipeline/program/settings.ts'
import { createRateLimiter } from './accounts/rate-limiter.ts'
import { chatRoutes } from './chat/routes.ts'
import { CHAT_LIMITS, openChat, type ChatLimits } from './chat/service.ts'
import type { Settings } from './config.ts'
import { datasetRoutes } from './datasets/routes.ts'
import { Snapshots } from './datasets/snapshots/current.ts'
import { measureDataset } from './datasets/status.ts'
import { createApp } from './http/app.ts'
import type { Clock } from './http/call.ts'
import { HTTP_LIMITS, listen, type HttpLimits } from './http/server.ts'
import { openApiRoutes } from './openapi/routes.ts'
import { cronSchedule } from './process/cron-schedule.ts'
import type { Log } from './process/log.ts'
import { createReadiness } from './readiness.ts'
import { createJobCounter, createSyncJobs, syncDefaults, type JobDependencies } from './scim/jobs.ts'
import { scimRoutes } from './scim/routes.ts'
import { openStore } from './store/open-store.ts'
import { createRequestStore } from './store/store.ts'
import { createWeb } from './web/routes.ts'

/** Milliseconds for syncs to record that they were interrupted. */
const SYNC_STOP_MS = 10_000

/** The most frequent views, which are prepared before a new snapshot is served: a ready page, and a proof that it answers. */
const USUAL = [{}, { sort: 'trending' }]

export type Service = Awaited<ReturnType<typeof serve>>

export type ServeDependencies = {
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
 * @throws UsageError if the data folder, the database, the routing configuration or the address is unusable.
 */
export async function serve(settings: Settings, given: ServeDependencies) {
  const { log, clock = () => new Date(), limits = HTTP_LIMITS, environment } = given
  const { HOST: host, PORT: port } = settings
  // Closes what is open if a later part fails.
  await using opened = new AsyncDisposableStack()
  const store = opened.use(await openStore(settings))
  const requestStore = createRequestStore(store, log)
  const limiter = createRateLimiter(requestStore, clock, log)
  const metrics = new Registry()
  collectDefaultMetrics({ register: metrics })
  const dataset = await openDataset(settings, { log, clock }, opened)
  measureDataset(metrics, dataset.snapshots)
  const shared = { settings, store, keyLimits: limiter, clock, log, metrics, environment }
  const chat = await openChat({ ...shared, limits: { ...CHAT_LIMITS, ...given.chat } })
  opened.defer(() => chat.close())
  const syncs = {
    ...syncDefaults(settings.SCIM_SYNC_MINUTES),
    jobCounter: createJobCounter(metrics),
    webhook: settings.NOTICE_WEBHOOK,
  }
  const syncJobs = createSyncJobs({ ...shared, ...syncs, ...given.sync }, settings.SCIM_CONCURRENT_SYNCS)
  const request = (accountId: string) => requestStore.bounded(syncJobs.request(accountId))
  const { unreadyMs, stallMs } = limits
  const readiness = createReadiness({ ...dataset, store: requestStore, chat, metrics, unreadyMs })
  const described = [
    ...datasetRoutes({ ...dataset, ...limiter, clock }),
    ...chatRoutes(chat),
    ...scimRoutes(requestStore, { ...syncJobs, request }),
  ]
  const routes = [...described, ...openApiRoutes(described), ...dataset.web.routes, ...readiness.routes]
  const app = createApp({ routes, store: requestStore, clock, log, stallMs, metrics })
  const server = await listen(app, { host, port, beforeCut: () => chat.cancel() }, { log, limits })
  // Syncs are interrupted at once: they would only be cut after the requests in flight. A silent database may hold one.
  opened.defer(async () => {
    const interrupted = Promise.race([syncJobs.close(), sleep(SYNC_STOP_MS, undefined, { ref: false })])
    await Promise.all([server.close(), interrupted])
  })
  syncJobs.begin()
  log.info({ origin: server.origin }, 'listening')
  const running = opened.move()
  return {
    /** Its own address, `http://host:port`. */
    origin: server.origin,
    store,
    routes,
    /** Reloads the routing configuration of chat. */
    reload: () => chat.models.reload(),
    /** Finishes requests in flight, then closes snapshot and store. */
    async close() {
      await readiness.stop()
      await running.disposeAsync()
      log.info('stopped')
    },
  }
}

/** The snapshots, and what is made of them once: replies and pages. */
async function openDataset(
  { DATA_DIR: dataDir, API_MEMORY: memory, PUBLIC_URL: publicUrl, PORT, NIGHTLY_SCHEDULE }: Settings,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
  opened: AsyncDisposableStack,
) {
  const snapshots = new Snapshots(dataDir, memory, log)
  opened.defer(() => snapshots.close())
  const schedule = cronSchedule(NIGHTLY_SCHEDULE)
  const origin = publicUrl ?? localUrl(PORT)
  const web = createWeb({ snapshots, schedule, clock, origin, publicUrl })
  await snapshots.follow(async (snapshot) => {
    for (const query of USUAL) await web.warm(snapshot, query)
  })
  return { schedule, web, snapshots }
}
