import type { Reply } from './call.ts'
import { ApiError } from './errors.ts'

/** Aborts when the client disconnects before the end of its reply: nobody waits for the work any more. */
export function clientLeft(reply: Reply): AbortSignal {
  const left = new AbortController()
  const abort = () => left.abort(new ApiError(503, 'The client has disconnected'))
  if (reply.destroyed || reply.closed) abort()
  else reply.once('close', abort)
  return left.signal
}
