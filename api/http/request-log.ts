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
  const { method } = request
  const path = hideKeys(request.path)
  return (reply) => {
    const { requestId, caller } = reply.locals
    const ms = Math.round(performance.now() - began)
    // Identifiers are made by us, and methods known to the parser: none of them has to be escaped.
    const who = caller === undefined ? 'null' : `"${caller.accountId}"`
    const key = caller === undefined ? 'null' : `"${caller.keyId}"`
    log.infoLine(
      `"request_id":"${requestId}","method":"${method}","path":${JSON.stringify(path)},` +
        `"status":${reply.statusCode},"ms":${ms},` +
        `"account_id":${who},"key_id":${key}` +
        (reply.writableFinished ? '' : ',"aborted":true'),
      'request',
    )
  }
}
