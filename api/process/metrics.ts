/** Metrics in Prometheus text format (CONTRACT 4.6), in a registry per service. */
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Handler } from '../http/call.ts'

/** A registry with the process metrics: memory, CPU time, event loop. */
export function createMetricsRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}

export function serveMetrics(registry: Registry): Handler {
  return async (_request, reply) => {
    const text = await registry.metrics()
    reply.status(200).set('Content-Type', registry.contentType).end(text)
  }
}
