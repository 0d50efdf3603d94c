/** The chat requests under way: those whose caller hung up are read to their end, within limits. */
import type { Reply } from '../http/call.ts'
import type { ChatCall } from './chat-call.ts'

export interface CallLimits {
  /** Milliseconds for which a reply is read on after its caller hung up, to learn its usage. */
  readonly drainMs: number
  /** How many replies are read on at the same time. */
  readonly drains: number
  /** Milliseconds that remain for this when the service stops. */
  readonly stopMs: number
}

export interface CallsUnderWay {
  began(call: ChatCall, reply: Reply): void
  /** A call left its record. */
  ended(call: ChatCall): void
  /** Ends all of them. */
  abandon(): void
  /** Resolves when no call is under way any more; after a while, what is left is ended. */
  close(): Promise<void>
}

/** No call yet. */
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
      // Who left while the key was looked up is not told of again.
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
