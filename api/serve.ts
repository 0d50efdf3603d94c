/** The running service: store, snapshots and HTTP server, opened in order and closed in the reverse one. */
import { createApp } from './app.ts'
import type { Clock } from './call.ts'
import type { Settings } from './config.ts'
import { followSnapshots } from './datasets/current-snapshot.ts'
import { createDatasetMetrics } from './datasets/dataset-metrics.ts'
import { HTTP_LIMITS, listen, type HttpLimits, type HttpServer } from './http-server.ts'
import type { Log } from './log.ts'
import { createMetricsRegistry } from './metrics.ts'
import { openStore } from './open-store.ts'
import { createRoutes } from './routes.ts'
import type { Store } from './store.ts'

/** A service that answers requests. */
export interface Service {
  /** Where it listens, `http://host:port`. */
  readonly origin: string
  readonly store: Store
  /** Finishes requests in flight, then closes snapshot and store. */
  close(): Promise<void>
}

interface ServeEffects {
  readonly log: Log
  readonly clock?: Clock
  readonly limits?: HttpLimits
}

/**
 * Opens everything the API stands on and listens.
 * @throws {OperatorError} when the data folder or the address cannot be had.
 */
export async function serve(
  settings: Settings,
  { log, clock = () => new Date(), limits = HTTP_LIMITS }: ServeEffects,
): Promise<Service> {
  const store = await openStore(settings.DATA_DIR, clock())
  const metrics = createMetricsRegistry()
  const dataset = createDatasetMetrics(metrics, () => snapshots.facts())
  const snapshots = await followSnapshots(settings.DATA_DIR, { log, onOpen: () => dataset.snapshotOpened() })
  const closeData = async () => {
    await snapshots.close()
    await store.close()
  }
  const routes = createRoutes({ store, snapshots, clock, schedule: settings.NIGHTLY_SCHEDULE, metrics })
  const app = createApp({ routes, store, clock, log, metrics })

  let server: HttpServer
  try {
    server = await listen(app, { host: settings.HOST, port: settings.PORT, log, limits })
  } catch (error) {
    await closeData()
    throw error
  }
  log.info({ origin: server.origin }, 'listening')
  return {
    origin: server.origin,
    store,
    async close() {
      await server.close()
      await closeData()
      log.info('stopped')
    },
  }
}
