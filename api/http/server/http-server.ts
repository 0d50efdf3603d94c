/** The HTTP server around an application: its limits, start and graceful end. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import { createServer, type AddressInfo, type Server as SocketServer } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Express } from 'express'
import { z } from 'zod'
import { OperatorError } from '../errors.ts'
import { createExpressServer, type LatestReply } from './express-server.ts'
import type { Log } from '../../process/log.ts'
import { answerSocketFaults } from './socket-faults.ts'
import { codeOf } from '../../process/system-errors.ts'

/** Limits for one client. */
export interface HttpLimits {
  /** Bytes of request line and headers together. */
  readonly headerBytes: number
  /** Milliseconds for the headers to arrive. */
  readonly headersMs: number
  /** Milliseconds for the whole request to arrive. */
  readonly requestMs: number
  /** Milliseconds without a byte in or out after which a connection is closed, but for requests that may wait. */
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

/** Requests of one connection; the last reply says that it closes. */
const REQUESTS_PER_SOCKET = 1000

/** File descriptors that no client can take: the store, snapshots, records and providers need some. */
const RESERVED_DESCRIPTORS = 64

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
    // An upgrade may be ignored (RFC 9110, 7.8).
    shouldUpgradeCallback: () => false,
  })
  server.setTimeout(limits.stallMs)
  server.maxRequestsPerSocket = REQUESTS_PER_SOCKET
  closeOverrun(server, latestReply)
  limitConnections(server, log)
  answerSocketFaults(server, latestReply, log)
  await bind(server, host, port)
  return {
    origin: originOf(host, server.address()),
    close: () => closeGracefully(server, limits.stopMs, beforeCut),
  }
}

/** Closes a connection after its last reply if the client has sent more requests: Node would answer each with a 503. */
function closeOverrun(server: Server, latestReply: LatestReply): void {
  const overrun = new WeakSet<Duplex>()
  server.on('dropRequest', (_request, socket) => {
    if (overrun.has(socket)) return
    overrun.add(socket)
    const last = latestReply(socket)
    if (last === undefined || last.closed) socket.destroy()
    else last.once('close', () => socket.destroy())
  })
}

/** Closes connections beyond the limit of open files at once: without descriptors no snapshot can be opened. */
function limitConnections(server: Server, log: Log): void {
  const limit = openFilesLimit()
  if (limit === undefined) return
  server.maxConnections = Math.max(1, limit - RESERVED_DESCRIPTORS)
  let isReported = false
  server.on('drop', () => {
    if (!isReported)
      log.warn({ connections: server.maxConnections }, 'too many connections: new ones are closed')
    isReported = true
    setTimeout(() => (isReported = false), 60_000).unref()
  })
}

/** The process's limit of open files; undefined if it has none. */
function openFilesLimit(): number | undefined {
  const report: unknown = process.report.getReport()
  const limits = z
    .object({ userLimits: z.object({ open_files: z.object({ soft: z.union([z.number(), z.string()]) }) }) })
    .safeParse(report).data
  const soft = Number(limits?.userLimits.open_files.soft)
  return Number.isInteger(soft) ? soft : undefined
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
