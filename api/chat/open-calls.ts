/** The chat requests in progress. If a caller hangs up, the response is read to its end, within limits. */
import type { Reply } from '../http/call.ts'
import type { ChatCall } from './chat-call.ts'

export interface CallLimits {
  /** Milliseconds for which a response is read after its caller hung up, to learn its usage. */
  readonly drainMs: number
  /** How many such responses are read at the same time. */
  readonly drains: number
  /** Milliseconds for this when the service stops. */
  readonly stopMs: number
}

export interface CallsUnderWay {
  began(call: ChatCall, reply: Reply): void
  /** The usage record of a call is written. */
  ended(call: ChatCall): void
  /** Ends all calls. */
  abandon(): void
  /** Resolves when no call is in progress; after `stopMs` it ends the rest. */
  close(): Promise<void>
}

export function createCallsUnderWay({ drainMs, drains, stopMs }: CallLimits): CallsUnderWay {
  const calls = new Set<ChatCall>()
  const draining = new Map<ChatCall, NodeJS.Timeout>()
  let whenEmpty: (() => void) | undefined

  function drain(call: ChatCall): void {
    if (!calls.has(call)) return
    call.leave()
    if (draining.size >= drains) return call.abandon()
    draining.set(
      call,
      setTimeout(() => call.abandon(), drainMs),
    )
  }

  function abandon(): void {
    for (const call of calls) call.abandon()
  }

  return {
    abandon,
    began(call, reply) {
      calls.add(call)
      // A caller that left during the key look-up sends no further close event.
      if (reply.closed) return call.leave()
      reply.once('close', () => {
        if (!reply.writableFinished) drain(call)
      })
    },
    ended(call) {
      calls.delete(call)
      clearTimeout(draining.get(call))
      draining.delete(call)
      if (calls.size === 0) whenEmpty?.()
    },
    async close() {
      if (calls.size === 0) return
      const { promise, resolve } = Promise.withResolvers<void>()
      whenEmpty = resolve
      const timer = setTimeout(abandon, stopMs)
      await promise
      clearTimeout(timer)
    },
  }
}
