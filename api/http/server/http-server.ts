/** The HTTP server around an application: its limits, its start and its graceful end. */
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

/** What one client may cost. */
export interface HttpLimits {
  /** Bytes of request line and headers together. */
  readonly headerBytes: number
  /** Milliseconds within which the headers must have arrived. */
  readonly headersMs: number
  /** Milliseconds within which the whole request must have arrived. */
  readonly requestMs: number
  /** Milliseconds within which a client must take some of a reply whose length it was told. */
  readonly stallMs: number
  /** Milliseconds an idle connection is kept for the next request. */
  readonly idleMs: number
  /** Milliseconds that requests in flight get to finish when the service stops. */
  readonly stopMs: number
}

/** The limits in force unless a test brings its own. */
export const HTTP_LIMITS: HttpLimits = {
  headerBytes: 16_384,
  headersMs: 15_000,
  requestMs: 60_000,
  stallMs: 60_000,
  // More than the minute after which proxies give theirs up: the side that sends requests should be the one to hang up.
  idleMs: 65_000,
  // With the last second, and the five that chat has after it to record what is left (CHAT_LIMITS), 30 in all.
  stopMs: 24_000,
}

/** A server that is accepting connections. */
export interface HttpServer {
  /** Where it listens, `http://host:port`, in a form that a client can use. */
  readonly origin: string
  /** Stops accepting, lets requests in flight finish, closes idle connections. */
  close(): Promise<void>
}

interface ListenOptions {
  readonly host: string
  readonly port: number
  readonly log: Log
  readonly limits: HttpLimits
  /** Called when a service that stops waits no longer: who is still answering may say so, for a second. */
  readonly beforeCut?: () => void
}

const LAST_MS = 1000

/**
 * Serves `app` on host and port.
 * @throws {OperatorError} when the address cannot be had.
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
    // Refused by the application instead, in the one shape of errors.
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

/** How often a silent connection is looked at before it is cut: Node's timer may skip its first turn. */
const LOOKS = 6

/**
 * Hangs up on connections that are idle, and on clients that take nothing more of their reply, which would hold an open
 * file, or a body, for good.
 */
function breakOffStalled(server: Server, latestReply: LatestReply, stallMs: number): void {
  const stepMs = Math.ceil(stallMs / LOOKS)
  const silent = new WeakMap<Socket, { readonly looks: number; readonly at: number }>()
  // Told after a time without any byte in or out, for a whole connection: to ask it of each reply anew would cost more.
  server.setTimeout(stepMs, (socket) => {
    // Node sets another time for a connection that waits for its next request.
    if (socket.timeout !== stepMs) return void socket.destroy()
    const at = performance.now()
    const last = silent.get(socket)
    // A byte begins the time anew, so the next look after it is late.
    const looks = last !== undefined && at - last.at < 1.5 * stepMs ? last.looks + 1 : 1
    const response = latestReply(socket)
    const isOver = response === undefined || response.writableFinished || isStalled(response, socket)
    if (looks >= LOOKS && isOver) return void socket.destroy()
    silent.set(socket, { looks, at })
    socket.setTimeout(stepMs)
  })
}

/** A stream may be long in coming and in being read; its limits are its own. Where no byte waits, it is us who are slow. */
function isStalled(response: ServerResponse, { writableLength }: Socket): boolean {
  const hasLength = response.writableEnded || response.hasHeader('Content-Length')
  return hasLength && writableLength > 0
}

/** Why nothing can listen on host and port, such as a port that is taken; empty where something can. */
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
  if (code === 'EACCES') return `Port ${port} needs more rights than we have: set PORT to one above 1023`
  return `Cannot listen on HOST ${host}, PORT ${port}: ${String(error)}`
}

/** Where a server that listens on `host` can be reached. */
export function originOf(host: string, address: AddressInfo | string | null): string {
  if (address === null || typeof address === 'string') throw new TypeError('The server listens on no port')
  // The addresses that stand for all of them are no place to send a request to.
  const reachable = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${address.port}`
}

async function closeGracefully(server: Server, stopMs: number, beforeCut: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  // A connection becomes idle when its reply has ended, and a kept-alive one would hold us up.
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
