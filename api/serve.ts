/** The running service: store, snapshots and HTTP server, opened in order and closed in the reverse one. */
import { createApp } from './app.ts'
import type { Clock } from './call.ts'
import type { Settings } from './config.ts'
import { followSnapshots } from './datasets/current-snapshot.ts'
import { retainSnapshots } from './datasets/retained-snapshots.ts'
import { createDatasetMetrics } from './datasets/dataset-metrics.ts'
import { HTTP_LIMITS, listen, type HttpLimits, type HttpServer } from './http-server.ts'
import type { Log } from './log.ts'
import { createMetricsRegistry } from './metrics.ts'
import { openStore } from './open-store.ts'
import type { Route } from './route.ts'
import { createRoutes } from './routes.ts'
import { createSyncJobs, type SyncJobs } from './scim/jobs.ts'
import { SYNC_LIMITS } from './scim/limits.ts'
import { PULSE, type JobEffects } from './scim/run-job.ts'
import type { Store } from './store.ts'

/** A service that answers requests. */
export interface Service {
  /** Where it listens, `http://host:port`. */
  readonly origin: string
  readonly store: Store
  /** Everything it answers. */
  readonly routes: readonly Route[]
  /** Finishes requests in flight, then closes snapshot and store. */
  close(): Promise<void>
}

/** What the service needs of the world. */
export interface ServeEffects {
  readonly log: Log
  readonly clock?: Clock
  readonly limits?: HttpLimits
  /** Where the tokens of directories are found. */
  readonly environment: NodeJS.ProcessEnv
  /** What a test sets otherwise of how syncs run. */
  readonly sync?: Partial<Pick<JobEffects, 'limits' | 'pulse' | 'wait' | 'syncMs'>>
}

/**
 * Opens everything the API stands on and listens.
 * @throws {OperatorError} when the data folder, the database or the address cannot be had.
 */
export async function serve(
  settings: Settings,
  { log, clock = () => new Date(), limits = HTTP_LIMITS, environment, sync }: ServeEffects,
): Promise<Service> {
  const store = await openStore(settings, clock())
  const metrics = createMetricsRegistry()
  const dataset = createDatasetMetrics(metrics, () => current.facts())
  const current = await followSnapshots(settings.DATA_DIR, { log, onOpen: () => dataset.snapshotOpened() })
  const retained = retainSnapshots(settings.DATA_DIR, log)
  const snapshots = { current, retained }
  const syncJobs = startSyncJobs(settings, store, { log, clock, environment, ...(sync && { sync }) })
  const closeData = async () => {
    await syncJobs.close()
    await retained.close()
    await current.close()
    await store.close()
  }
  const routes = createRoutes({
    store,
    snapshots,
    syncJobs,
    clock,
    log,
    schedule: settings.NIGHTLY_SCHEDULE,
    publicUrl: settings.PUBLIC_URL,
    metrics,
  })
  const app = createApp({ routes, store, clock, log, metrics })

  let server: HttpServer
  try {
    server = await listen(app, { host: settings.HOST, port: settings.PORT, log, limits })
  } catch (error) {
    await closeData()
    throw error
  }
  syncJobs.begin()
  log.info({ origin: server.origin }, 'listening')
  return {
    origin: server.origin,
    store,
    routes,
    async close() {
      // A sync is interrupted at once: requests in flight may take their time, and it would only be cut later.
      await Promise.all([server.close(), syncJobs.close()])
      await closeData()
      log.info('stopped')
    },
  }
}

function startSyncJobs(
  settings: Settings,
  store: Store,
  { log, clock, environment, sync }: ServeEffects & { readonly clock: Clock },
): SyncJobs {
  const syncMs = settings.SCIM_SYNC_MINUTES * 60_000
  return createSyncJobs(
    { store, clock, log, environment, limits: SYNC_LIMITS, pulse: PULSE, syncMs, ...sync },
    { concurrent: settings.SCIM_CONCURRENT_SYNCS },
  )
}
