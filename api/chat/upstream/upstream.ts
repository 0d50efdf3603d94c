/**
 * Posts completions to providers. Each request carries the headers of its provider and nothing of the caller's;
 * redirects are not followed, and of the reply only its status, its body, its coding and when to retry are read.
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

/** A reply that is a success so far: its head is here. */
interface UpstreamReply {
  readonly statusCode: number
  /** Its bytes, unpacked. */
  readonly body: Readable
}

export interface Upstream {
  /**
   * Posts `body`, the text of a JSON object, once more when it met a kept-alive connection that was just being closed.
   * @throws {AttemptFailure} when there is no reply, or one that is no success.
   */
  post(provider: Provider, body: string, signal: AbortSignal): Promise<UpstreamReply>
  /** Hangs up on everything. */
  close(): Promise<void>
}

interface UpstreamOptions {
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number
  /** Where HTTP_PROXY, HTTPS_PROXY and NO_PROXY are found. */
  readonly environment?: NodeJS.ProcessEnv
}

const CONNECT_MS = 10_000
const ERROR_BYTES = 64 * 1024

/** The connections to all providers. */
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
      // Without this a provider may pick any coding, and a proxy on the way sometimes does.
      'accept-encoding': 'identity',
    },
    // Times are kept per attempt, from its own clock: a default of undici ends long calls after five minutes.
    headersTimeout: 0,
    bodyTimeout: 0,
  } as const
}

/** Goes by the proxies that the environment names, as curl reads them: lower case first. */
function createAgent(environment: NodeJS.ProcessEnv): Dispatcher {
  const proxyOf = (name: string) => environment[name.toLowerCase()] ?? environment[name] ?? ''
  const [httpProxy, httpsProxy] = [proxyOf('HTTP_PROXY'), proxyOf('HTTPS_PROXY')]
  const connect = connectDiscardingContinue(CONNECT_MS)
  if (httpProxy === '' && httpsProxy === '') return new Agent({ connect })
  // A proxy takes plain requests as such: many refuse a tunnel to port 80.
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

/** OpenAI and Azure tell milliseconds in a header of their own; others tell fractions of a second. */
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
