/** Writes server-sent events to a client. */
import type { Reply } from '../http/call.ts'
import type { JsonObject } from '../untrusted/json.ts'

/** Time for a client to read the last chunk: some discard what they have not read of a connection that breaks. */
const LAST_MS = 250

export interface ClientStream {
  /**
   * Sends these chunks together. Returns a promise if the client reads slowly; it rejects with the reason of `signal`
   * if that ends the wait.
   */
  send(chunks: readonly JsonObject[], signal: AbortSignal): Promise<void> | undefined
  /** Whether anything was sent: then the status is fixed. */
  hasBegun(): boolean
  /** Sends the last chunks and [DONE], and ends the reply. */
  end(chunks: readonly JsonObject[]): void
  /** Sends the chunk with an error. The last HTTP chunk stays away, so that no client takes the stream for whole. */
  fail(chunk: JsonObject): void
  /** Sends nothing more by itself. */
  stop(): void
}

interface ClientStreamOptions {
  /** Milliseconds of silence after which the client gets `silentChunk`. */
  readonly silenceMs: number
  readonly silentChunk: () => JsonObject
}

/**
 * The reply as a stream. Its head is sent with the first chunk, so that an earlier error can have its own status. In
 * silence a chunk without content keeps clients and proxies connected: comments end the streams of some clients.
 */
export function openClientStream(
  reply: Reply,
  { silenceMs, silentChunk }: ClientStreamOptions,
): ClientStream {
  const timer = setInterval(() => {
    if (!reply.writableNeedDrain) write(textOf([silentChunk()]))
  }, silenceMs).unref()
  reply.once('close', stop)

  function stop(): void {
    clearInterval(timer)
  }

  function write(text: string, onWritten?: () => void): boolean {
    if (reply.destroyed) return true
    if (!reply.headersSent) {
      reply.status(200).set({
        'Content-Type': 'text/event-stream; charset=utf-8',
        'X-Accel-Buffering': 'no',
      })
    }
    timer.refresh()
    return reply.write(text, onWritten)
  }

  return {
    send: (chunks, signal) =>
      chunks.length === 0 || write(textOf(chunks)) ? undefined : untilDrained(reply, signal),
    hasBegun: () => reply.headersSent,
    end(chunks) {
      stop()
      write(`${textOf(chunks)}data: [DONE]\n\n`)
      reply.end()
    },
    fail(chunk) {
      stop()
      if (reply.writableNeedDrain) reply.destroy()
      else write(textOf([chunk]), () => setTimeout(() => reply.destroy(), LAST_MS).unref())
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
