/** Metrics in the text form of Prometheus (CONTRACT 4.6), in a registry of the service's own. */
import type { Request } from 'express'
import { collectDefaultMetrics, Counter, Registry } from 'prom-client'
import type { Handler, Reply } from '../http/call.ts'

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

const METHODS = ['GET', 'HEAD', 'POST', 'OPTIONS']

// By media type; whatever a client asks for, the values of the label are these.
const FORMATS: Readonly<Record<string, string>> = {
  'application/json': 'json',
  'text/csv': 'csv',
  'application/vnd.apache.parquet': 'parquet',
  'application/vnd.apache.arrow.stream': 'arrow',
  'text/event-stream': 'event-stream',
  'text/html': 'html',
  'text/plain': 'text',
}

/** Counts replies by method, route (the pattern, never the path as sent), status and format; called as each ends. */
export function createReplyCounter(registry: Registry): (request: Request, reply: Reply) => void {
  const replies = new Counter({
    name: 'http_replies_total',
    help: 'Replies; status is aborted where the client left before the end.',
    labelNames: ['method', 'route', 'status', 'format'],
    registers: [registry],
  })
  return (request, reply) => {
    const method = METHODS.includes(request.method) ? request.method : 'other'
    const route = reply.locals.route ?? 'unknown'
    const status = reply.writableFinished ? String(reply.statusCode) : 'aborted'
    replies.inc({ method, route, status, format: formatOf(reply) })
  }
}

function formatOf(reply: Reply): string {
  const type = reply.get('Content-Type')?.split(';', 1)[0]
  return type === undefined ? 'none' : (FORMATS[type] ?? 'other')
}
