import { randomUUID } from 'node:crypto'
import { hideKeys } from '../accounts/credentials.ts'
import type { Gate } from '../call.ts'
import type { Log } from '../log.ts'

/**
 * Gives each request an id, told in `X-Request-Id`, and writes one log line when its reply has ended. The query
 * and the headers stay out of the log.
 */
export function logRequests(log: Log): Gate {
  return (request, reply, next) => {
    const began = performance.now()
    const requestId = randomUUID()
    reply.locals.requestId = requestId
    reply.set('X-Request-Id', requestId)
    const { method } = request
    const path = hideKeys(request.path)
    reply.once('close', () => {
      const { caller } = reply.locals
      log.info(
        {
          request_id: requestId,
          method,
          path,
          status: reply.statusCode,
          ms: Math.round(performance.now() - began),
          account_id: caller?.accountId ?? null,
          key_id: caller?.keyId ?? null,
          ...(reply.writableFinished ? {} : { aborted: true }),
        },
        'request',
      )
    })
    next()
  }
}
