/** Metrics in the text form of Prometheus (CONTRACT 4.6), in a registry of the service's own. */
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Handler } from '../http/call.ts'

/** A registry with the figures of the process: memory, processor time, event loop. */
export function createMetricsRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}

/** GET /metrics. */
export function serveMetrics(registry: Registry): Handler {
  return async (_request, reply) => {
    const text = await registry.metrics()
    reply.status(200).set('Content-Type', registry.contentType).end(text)
  }
}
