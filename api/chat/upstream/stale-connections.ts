/** Detects requests that were sent on a connection just as the server closed it. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { Socket } from 'node:net'
import { isObject } from '../../untrusted/json.ts'

/** A later break is not a stale connection: the server had the request and worked on it. */
const STALE_MS = 1000

/** A request at its first byte. */
interface Sent {
  readonly socket: Socket
  /** Whether the connection had carried an earlier request. */
  readonly isReused: boolean
  /** Bytes of earlier replies on the connection. */
  readonly bytesRead: number
  readonly at: number
}

export interface StaleConnections {
  /** Whether a request failed on a reused connection, early and before a byte of its reply. */
  isStale(error: unknown): boolean
  /** Stops watching. */
  close(): void
}

/** Watches the requests of undici; `now` is a monotonic clock in milliseconds. */
export function watchStaleConnections(now: () => number): StaleConnections {
  const used = new WeakSet<Socket>()
  const requests = new WeakMap<object, Sent>()
  const stale = new WeakSet<Error>()

  // Both channels report every request in the process, also fetch's.
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
