/** Writes server-sent events to a client. */
import type { Reply } from '../http/call.ts'
import type { JsonObject } from '../untrusted/json.ts'

/** Time for a client to read the last chunk: some discard what they have not read of a connection that breaks. */
const LAST_MS = 250

/**
 * The reply as a stream. Its head is sent with the first chunk, so that an earlier error can have its own status. In
 * silence a chunk without content keeps clients and proxies connected: comments end the streams of some clients.
 */
export class ClientStream {
  readonly #reply: Reply
  readonly #timer: NodeJS.Timeout

  /** After `silenceMs` without a chunk the client gets `silentChunk`. */
  constructor(reply: Reply, silenceMs: number, silentChunk: () => JsonObject) {
    this.#reply = reply
    this.#timer = setInterval(() => {
      if (!reply.writableNeedDrain) this.#write(textOf([silentChunk()]))
    }, silenceMs).unref()
    reply.once('close', () => this.stop())
  }

  /** Whether anything was sent: then the status is fixed. */
  get hasBegun(): boolean {
    return this.#reply.headersSent
  }

  /**
   * Sends these chunks together. Returns a promise if the client reads slowly; it rejects with the reason of `signal`
   * if that ends the wait.
   */
  send(chunks: readonly JsonObject[], signal: AbortSignal): Promise<void> | undefined {
    const isTaken = chunks.length === 0 || this.#write(textOf(chunks))
    return isTaken ? undefined : untilDrained(this.#reply, signal)
  }

  /** Sends the last chunks and [DONE], and ends the reply. */
  end(chunks: readonly JsonObject[]): void {
    this.stop()
    this.#write(`${textOf(chunks)}data: [DONE]\n\n`)
    this.#reply.end()
  }

  /** Sends the chunk with an error. The last HTTP chunk stays away, so that no client takes the stream for whole. */
  fail(chunk: JsonObject): void {
    this.stop()
    if (this.#reply.writableNeedDrain) this.#reply.destroy()
    else this.#write(textOf([chunk]), () => setTimeout(() => this.#reply.destroy(), LAST_MS).unref())
  }

  /** Sends nothing more by itself. */
  stop(): void {
    clearInterval(this.#timer)
  }

  /** Returns whether the client reads fast enough. */
  #write(text: string, onWritten?: () => void): boolean {
    const reply = this.#reply
    if (reply.destroyed) return true
    if (!reply.headersSent) {
      reply.status(200).set({
        'Content-Type': 'text/event-stream; charset=utf-8',
        'X-Accel-Buffering': 'no',
      })
    }
    this.#timer.refresh()
    return reply.write(text, onWritten)
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
