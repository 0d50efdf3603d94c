/** Tells requests that met a connection which the other side was closing just then from those that were received. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Socket } from 'node:net'
import { isObject } from '../../untrusted/json.ts'

/** What breaks later than this was no stale connection: the other side had the request and worked on it. */
const STALE_MS = 1000

/** A request when its first byte went out. */
interface Sent {
  readonly socket: Socket
  /** Whether the connection had carried a request before. */
  readonly isReused: boolean
  /** Bytes that had come on the connection, those of replies to requests before. */
  readonly bytesRead: number
  readonly at: number
}

export interface StaleConnections {
  /** Whether a request ended with this error on a used connection, soon and before a byte of its reply. */
  isStale(error: unknown): boolean
  /** Watches no longer. */
  close(): void
}

/** Watches the requests of undici from now on; `now` gives milliseconds of a clock that never goes back. */
export function watchStaleConnections(now: () => number): StaleConnections {
  const used = new WeakSet<Socket>()
  const requests = new WeakMap<object, Sent>()
  const stale = new WeakSet<Error>()

  // The two channels tell of every request in the process, fetch's own too.
  function sent(message: unknown): void {
    if (!isObject(message)) return
    const { request, socket } = message
    if (!isObject(request) || !(socket instanceof Socket)) return
    requests.set(request, { socket, isReused: used.has(socket), bytesRead: socket.bytesRead, at: now() })
    used.add(socket)
  }

  function failed(message: unknown): void {
    if (!isObject(message)) return
    const { request, error } = message
    const one = isObject(request) ? requests.get(request) : undefined
    if (one?.isReused !== true || !(error instanceof Error)) return
    if (one.socket.bytesRead === one.bytesRead && now() - one.at < STALE_MS) stale.add(error)
  }

  subscribe('undici:client:sendHeaders', sent)
  subscribe('undici:request:error', failed)
  return {
    isStale: (error) => error instanceof Error && stale.has(error),
    close() {
      unsubscribe('undici:client:sendHeaders', sent)
      unsubscribe('undici:request:error', failed)
    },
  }
}
