/** Records each finished reply: a line in the log, and a count. */
import { Counter, type Registry } from 'prom-client'
import { hideKeys } from '../accounts/keys/credentials.ts'
import type { Log } from '../process/log.ts'
import { HEALTH_PATH } from '../paths.ts'
import type { Reply } from './call.ts'

/** Records a finished or aborted reply, `ms` after its request. */
export type RecordReply = (reply: Reply, ms: number) => void

const METHODS = ['GET', 'HEAD', 'POST', 'OPTIONS']

// By media type: a closed set of label values.
const FORMATS: Readonly<Record<string, string>> = {
  'application/json': 'json',
  'text/csv': 'csv',
  'application/vnd.apache.parquet': 'parquet',
  'application/vnd.apache.arrow.stream': 'arrow',
  'text/event-stream': 'event-stream',
  'text/html': 'html',
  'text/plain': 'text',
}

/**
 * Writes the log line of a reply, without query and headers, and counts it by method, route (the pattern, never the
 * path), status and format.
 */
export function recordReplies(log: Log, registry: Registry): RecordReply {
  const replies = new Counter({
    name: 'http_replies_total',
    help: 'Replies; status is aborted if the client left before the end.',
    labelNames: ['method', 'route', 'status', 'format'],
    registers: [registry],
  })
  return (reply, ms) => {
    const { req: request, statusCode: status, writableFinished: isWhole } = reply
    const { requestId, route = 'unknown', caller } = reply.locals
    const line = {
      request_id: requestId,
      method: request.method,
      path: hideKeys(request.path),
      status,
      ms: Math.round(ms),
      account_id: caller?.accountId ?? null,
      key_id: caller?.keyId ?? null,
    }
    // Balancers poll it all the time.
    if (route !== HEALTH_PATH) log.info(isWhole ? line : { ...line, aborted: true }, 'request')
    replies.inc({
      method: METHODS.includes(request.method) ? request.method : 'other',
      route,
      status: isWhole ? String(status) : 'aborted',
      format: formatOf(reply),
    })
  }
}

function formatOf(reply: Reply): string {
  const type = reply.get('Content-Type')?.split(';', 1)[0]
  return type === undefined ? 'none' : (FORMATS[type] ?? 'other')
}
