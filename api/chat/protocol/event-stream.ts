/** Writes server-sent events to a client. */
import type { Reply } from '../../http/call.ts'
import type { JsonObject } from '../../untrusted/json.ts'

export interface EventStream {
  /**
   * Sends these chunks together. Returns a promise if the client reads slowly; it rejects with the reason of `signal`
   * if that ends the wait.
   */
  send(chunks: readonly JsonObject[], signal: AbortSignal): Promise<void> | undefined
  /** Whether anything was sent: then the status is fixed. */
  hasBegun(): boolean
  /**
   * Sends the rest, with [DONE] if the stream is whole, and ends the reply. If it is not whole, a client that has not
   * read everything is disconnected instead.
   */
  end(last: JsonObject, isWhole: boolean): void
  /** Stops the comments of a stream that fails. */
  stop(): void
}

interface EventStreamOptions {
  readonly silenceMs: number
  /** Resolves once the headers are complete; awaited before a comment sends the head. */
  readonly beforeHead: () => Promise<unknown>
}

/**
 * The reply as a stream. Its head is sent with the first chunk, so that an earlier error can have its own status. After
 * `silenceMs` a comment sends it, since proxies hang up on silence.
 */
export function openEventStream(reply: Reply, { silenceMs, beforeHead }: EventStreamOptions): EventStream {
  const timer = setInterval(() => void comment(), silenceMs).unref()
  let isOver = false
  reply.once('close', stop)

  function stop(): void {
    isOver = true
    clearInterval(timer)
  }

  async function comment(): Promise<void> {
    if (!reply.headersSent) await beforeHead()
    if (!isOver) write(': waiting for the provider\n\n')
  }

  function write(text: string): boolean {
    if (reply.destroyed) return true
    if (!reply.headersSent) {
      reply.status(200).set({
        'Content-Type': 'text/event-stream; charset=utf-8',
        'X-Accel-Buffering': 'no',
      })
    }
    timer.refresh()
    return reply.write(text)
  }

  return {
    send: (chunks, signal) =>
      chunks.length === 0 || write(textOf(chunks)) ? undefined : untilDrained(reply, signal),
    hasBegun: () => reply.headersSent,
    end(last, isWhole) {
      stop()
      if (!isWhole && reply.writableNeedDrain) return void reply.destroy()
      write(textOf([last]) + (isWhole ? 'data: [DONE]\n\n' : ''))
      reply.end()
    },
    stop,
  }
}

function textOf(chunks: readonly JsonObject[]): string {
  return chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
}

async function untilDrained(reply: Reply, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const goOn = () => resolve()
  reply.once('drain', goOn).once('close', goOn)
  signal.addEventListener('abort', goOn)
  if (!signal.aborted) await promise
  reply.off('drain', goOn).off('close', goOn)
  signal.removeEventListener('abort', goOn)
  signal.throwIfAborted()
}
