/** The running service: store, snapshots and HTTP server, opened in order and closed in the reverse one. */
import { createApp } from './app.ts'
import type { Clock } from './call.ts'
import type { Settings } from './config.ts'
import { followSnapshots } from './datasets/current-snapshot.ts'
import { HTTP_LIMITS, listen, type HttpLimits, type HttpServer } from './http-server.ts'
import type { Log } from './log.ts'
import { openStore } from './open-store.ts'
import { createRoutes } from './routes.ts'
import { createSyncJobs } from './scim/jobs.ts'
import { SYNC_LIMITS } from './scim/limits.ts'
import { PULSE, type JobEffects } from './scim/run-job.ts'
import type { Store } from './store.ts'

/** A service that answers requests. */
export interface Service {
  /** Where it listens, `http://host:port`. */
  readonly origin: string
  readonly store: Store
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
 * @throws {OperatorError} when the data folder or the address cannot be had.
 */
export async function serve(
  settings: Settings,
  { log, clock = () => new Date(), limits = HTTP_LIMITS, environment, sync }: ServeEffects,
): Promise<Service> {
  const store = await openStore(settings.DATA_DIR, clock())
  const snapshots = await followSnapshots(settings.DATA_DIR, { log })
  const syncJobs = createSyncJobs(
    {
      store,
      clock,
      log,
      environment,
      limits: SYNC_LIMITS,
      pulse: PULSE,
      syncMs: settings.SCIM_SYNC_MINUTES * 60_000,
      ...sync,
    },
    { concurrent: settings.SCIM_CONCURRENT_SYNCS },
  )
  const closeData = async () => {
    await syncJobs.close()
    await snapshots.close()
    await store.close()
  }
  const routes = createRoutes({ store, snapshots, syncJobs, clock, schedule: settings.NIGHTLY_SCHEDULE })
  const app = createApp({ routes, store, clock, log })

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
    async close() {
      // A sync is interrupted at once: requests in flight may take their time, and it would only be cut later.
      await Promise.all([server.close(), syncJobs.close()])
      await closeData()
      log.info('stopped')
    },
  }
}
