import type { Request } from 'express'
import { hideKeys } from '../accounts/keys/credentials.ts'
import type { Reply } from './call.ts'
import type { Log } from '../process/log.ts'

/**
 * Begins the log line of a request; what it gives writes it, once the reply has ended. The query and the headers stay
 * out of the log.
 */
export function logRequest(log: Log, request: Request): (reply: Reply) => void {
  const began = performance.now()
  const { method, path } = request
  return (reply) => {
    const { requestId, caller } = reply.locals
    const line = {
      request_id: requestId,
      method,
      path: hideKeys(path),
      status: reply.statusCode,
      ms: Math.round(performance.now() - began),
      account_id: caller?.accountId ?? null,
      key_id: caller?.keyId ?? null,
    }
    log.info(reply.writableFinished ? line : { ...line, aborted: true }, 'request')
  }
}
