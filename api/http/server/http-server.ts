/** The HTTP server around an application: its limits, start and graceful end. */
import { once } from 'node:events'
import type { Server, ServerResponse } from 'node:http'
import { createServer, type AddressInfo, type Server as SocketServer, type Socket } from 'node:net'
import type { Express } from 'express'
import { OperatorError } from '../errors.ts'
import { createExpressServer, type LatestReply } from './express-server.ts'
import type { Log } from '../../process/log.ts'
import { answerSocketFaults } from './socket-faults.ts'
import { ignoreUpgrades, isWithoutBody } from './upgrades.ts'
import { codeOf } from '../../process/system-errors.ts'

/** Limits for one client. */
export interface HttpLimits {
  /** Bytes of request line and headers together. */
  readonly headerBytes: number
  /** Milliseconds for the headers to arrive. */
  readonly headersMs: number
  /** Milliseconds for the whole request to arrive. */
  readonly requestMs: number
  /** Milliseconds within which a client must read a part of a reply of known length. */
  readonly stallMs: number
  /** Milliseconds that an idle connection is kept. */
  readonly idleMs: number
  /** Milliseconds for a load balancer to poll readiness once more before a stopping service closes its port. */
  readonly unreadyMs: number
  /** Milliseconds for requests in flight to finish when the service stops. */
  readonly stopMs: number
}

export const HTTP_LIMITS: HttpLimits = {
  headerBytes: 16_384,
  headersMs: 15_000,
  requestMs: 60_000,
  stallMs: 60_000,
  // Above the minute of most proxies, since the side that sends requests should close first.
  idleMs: 65_000,
  // Load balancers poll every few seconds.
  unreadyMs: 10_000,
  // With the last second, and five more for chat to record its calls (CHAT_LIMITS), 30 in all.
  stopMs: 24_000,
}

/** A listening server. */
export interface HttpServer {
  /** Its address for clients, `http://host:port`. */
  readonly origin: string
  /** Stops accepting, lets requests in flight finish, closes idle connections. */
  close(): Promise<void>
}

interface ListenOptions {
  readonly host: string
  readonly port: number
  readonly log: Log
  readonly limits: HttpLimits
  /** Called when a stopping service waits no longer; open replies have a second to send an error. */
  readonly beforeCut?: () => void
}

const LAST_MS = 1000

/**
 * Serves `app` on host and port.
 * @throws {OperatorError} if the address is not available.
 */
export async function listen(
  app: Express,
  { host, port, log, limits, beforeCut = () => undefined }: ListenOptions,
): Promise<HttpServer> {
  const { server, latestReply } = createExpressServer(app, {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: Math.min(limits.headersMs, 5000),
    // The application rejects these requests with the error envelope.
    requireHostHeader: false,
    shouldUpgradeCallback: isWithoutBody,
  })
  breakOffStalled(server, latestReply, limits.stallMs)
  ignoreUpgrades(server, latestReply)
  answerSocketFaults(server, latestReply, log)
  await bind(server, host, port)
  return {
    origin: originOf(host, server.address()),
    close: () => closeGracefully(server, limits.stopMs, beforeCut),
  }
}

/** How often a silent connection is checked before it is cut: Node's timer may skip its first turn. */
const LOOKS = 6

/** Closes idle connections, and clients that stop reading their reply, which would hold a file or a body for ever. */
function breakOffStalled(server: Server, latestReply: LatestReply, stallMs: number): void {
  const stepMs = Math.ceil(stallMs / LOOKS)
  const silent = new WeakMap<Socket, { readonly looks: number; readonly at: number }>()
  // Called after a time without any byte in or out. One timer per connection is cheaper than one per reply.
  server.setTimeout(stepMs, (socket) => {
    // Node sets another timeout for connections that wait for their next request.
    if (socket.timeout !== stepMs) return void socket.destroy()
    const at = performance.now()
    const last = silent.get(socket)
    // A byte restarts the timer, so the next check after it is late.
    const looks = last !== undefined && at - last.at < 1.5 * stepMs ? last.looks + 1 : 1
    const response = latestReply(socket)
    const isOver = response === undefined || response.writableFinished || isStalled(response, socket)
    if (looks >= LOOKS && isOver) return void socket.destroy()
    silent.set(socket, { looks, at })
    socket.setTimeout(stepMs)
  })
}

/**
 * Streams may be slow in both directions; they have their own limits. Without waiting bytes the service is the slow
 * side.
 */
function isStalled(response: ServerResponse, { writableLength }: Socket): boolean {
  const hasLength = response.writableEnded || response.hasHeader('Content-Length')
  return hasLength && writableLength > 0
}

/** Why the server cannot listen on host and port, such as a port in use; empty if it can. */
export async function addressFaults(host: string, port: number): Promise<string[]> {
  const server = createServer()
  try {
    await bind(server, host, port)
    return []
  } catch (error) {
    if (error instanceof OperatorError) return [error.message]
    throw error
  } finally {
    server.close()
  }
}

async function bind(server: SocketServer, host: string, port: number): Promise<void> {
  try {
    await once(server.listen(port, host), 'listening')
  } catch (error) {
    throw new OperatorError(bindFault(error, host, port), { cause: error })
  }
}

function bindFault(error: unknown, host: string, port: number): string {
  const code = codeOf(error)
  if (code === 'EADDRINUSE') return `Port ${port} is already in use: set PORT to a free one, or to 0 for any`
  if (code === 'EACCES')
    return `Port ${port} needs permissions that the service lacks: set PORT to one above 1023`
  return `Cannot listen on HOST ${host}, PORT ${port}: ${String(error)}`
}

/** The address where clients reach a server that listens on `host`. */
export function originOf(host: string, address: AddressInfo | string | null): string {
  if (address === null || typeof address === 'string') throw new TypeError('The server listens on no port')
  // Clients cannot send requests to the wildcard addresses.
  const reachable = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${address.port}`
}

async function closeGracefully(server: Server, stopMs: number, beforeCut: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  // A kept-alive connection becomes idle after its reply, and would block the end.
  server.prependListener('request', (_request, response) => response.setHeader('Connection', 'close'))
  const sweep = setInterval(() => server.closeIdleConnections(), 50)
  const deadline = setTimeout(beforeCut, stopMs)
  const cut = setTimeout(() => server.closeAllConnections(), stopMs + LAST_MS)
  server.close(() => resolve())
  await promise
  clearInterval(sweep)
  clearTimeout(deadline)
  clearTimeout(cut)
}
