/**
 * Posts completions to providers. A request carries its provider's headers and none of the caller's. Redirects are not
 * followed. Of the reply, only status, body, coding and retry times are read.
 */
import type { Readable } from 'node:stream'
import { Agent, EnvHttpProxyAgent, errors, type Dispatcher } from 'undici'
import { parseJson } from '../../untrusted/json.ts'
import { retryAfterMs } from '../../http/protocol/retry-after.ts'
import { codeOf } from '../../process/system-errors.ts'
import type { Provider } from '../routing/configuration.ts'
import { connectDiscardingContinue } from './interim-replies.ts'
import { failureOf } from './provider-error.ts'
import { asFailure, decoded, readText } from './reply-body.ts'
import { watchStaleConnections } from './stale-connections.ts'

/** The head of a successful reply. */
interface UpstreamReply {
  readonly statusCode: number
  /** Decoded bytes. */
  readonly body: Readable
}

export interface Upstream {
  /**
   * Posts `body`, the text of a JSON object; retries once if the kept-alive connection was just being closed.
   * @throws {AttemptFailure} without a successful reply.
   */
  post(provider: Provider, body: string, signal: AbortSignal): Promise<UpstreamReply>
  /** Closes all connections at once. */
  close(): Promise<void>
}

interface UpstreamOptions {
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number
  /** Holds HTTP_PROXY, HTTPS_PROXY and NO_PROXY. */
  readonly environment?: NodeJS.ProcessEnv
}

const CONNECT_MS = 10_000
const ERROR_BYTES = 64 * 1024

export function createUpstream({
  now = () => performance.now(),
  environment = {},
}: UpstreamOptions = {}): Upstream {
  const agent = createAgent(environment)
  const connections = watchStaleConnections(now)

  async function send(
    provider: Provider,
    body: string,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const request = () => agent.request({ ...requestTo(provider), body, signal })
    try {
      return await request()
    } catch (error) {
      // Any other request may have been received, and would be billed twice.
      if (signal.aborted || !isReset(error) || !connections.isStale(error)) throw error
      return await request()
    }
  }

  return {
    async post(provider, body, signal) {
      const reply = await send(provider, body, signal).catch((error: unknown) => {
        throw asFailure(error, signal)
      })
      const { statusCode, headers } = reply
      const unpacked = { statusCode, body: decoded(reply.body, headers['content-encoding']) }
      if (statusCode >= 200 && statusCode < 300) return unpacked
      const text = await readText(unpacked.body, ERROR_BYTES, signal).catch(() => '')
      throw failureOf(statusCode, parseJson(text) ?? text, waitMs(headers))
    },
    async close() {
      connections.close()
      await agent.destroy()
    },
  }
}

function requestTo({ url, headers }: Provider) {
  return {
    origin: url.origin,
    path: url.pathname,
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      // Otherwise a provider may choose any coding, and some proxies do.
      'accept-encoding': 'identity',
    },
    // Each attempt has its own deadlines; undici's default ends long calls after five minutes.
    headersTimeout: 0,
    bodyTimeout: 0,
  } as const
}

/** Uses the proxies of the environment like curl: lower-case names first. */
function createAgent(environment: NodeJS.ProcessEnv): Dispatcher {
  const proxyOf = (name: string) => environment[name.toLowerCase()] ?? environment[name] ?? ''
  const [httpProxy, httpsProxy] = [proxyOf('HTTP_PROXY'), proxyOf('HTTPS_PROXY')]
  const connect = connectDiscardingContinue(CONNECT_MS)
  if (httpProxy === '' && httpsProxy === '') return new Agent({ connect })
  // Many proxies reject a tunnel to port 80, so plain HTTP is sent without one.
  return new EnvHttpProxyAgent({
    connect,
    httpProxy,
    httpsProxy,
    noProxy: proxyOf('NO_PROXY'),
    proxyTunnel: false,
  })
}

function isReset(error: unknown): boolean {
  if (error instanceof errors.SocketError) return true
  const code = codeOf(error)
  return code === 'ECONNRESET' || code === 'EPIPE'
}

/** OpenAI and Azure send milliseconds in a header of their own; others send fractions of a second. */
function waitMs(headers: Dispatcher.ResponseData['headers']): number | undefined {
  return (
    decimal(headers['retry-after-ms'], 1) ??
    decimal(headers['retry-after'], 1000) ??
    retryAfterMs(headers['retry-after'])
  )
}

function decimal(header: string | string[] | undefined, unit: number): number | undefined {
  return typeof header === 'string' && /^\d+(?:\.\d+)?$/.test(header) ? Number(header) * unit : undefined
}
