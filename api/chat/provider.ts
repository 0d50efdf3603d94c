/**
 * The client that posts completions to providers. A request carries its provider's headers and none of the caller's.
 * Redirects are not followed. Of the reply, only status, body, coding and retry times are read.
 */
import http, { type ClientRequest, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { pipeline, type Duplex, type Readable } from 'node:stream'
import { createBrotliDecompress, createUnzip, createZstdDecompress } from 'node:zlib'
import { retryAfterMs } from '../http/protocol/retry-after.ts'
import { codeOf } from '../process/system-errors.ts'
import { parseJson } from '../untrusted/json.ts'
import type { Provider } from './configuration.ts'
import { AttemptFailure } from './failure.ts'
import { failureOf } from './provider-error.ts'

/** Maximum bytes of a whole completion. */
export const REPLY_BYTES = 64 * 1024 * 1024
const ERROR_BYTES = 64 * 1024
const CONNECT_MS = 10_000

/** A kept-alive connection that breaks later is not stale: the provider had the request and worked on it. */
const STALE_MS = 1000

/** A successful reply. */
interface ProviderReply {
  readonly status: number
  /** Decoded bytes. */
  readonly body: Readable
}

export interface ProviderClient {
  /**
   * Posts `body`, the text of a JSON object. If the provider was just closing the kept-alive connection, it is posted
   * again.
   * @throws {AttemptFailure} without a successful reply.
   */
  post(provider: Provider, body: string, signal: AbortSignal): Promise<ProviderReply>
  /** Closes all connections at once. */
  close(): void
}

/** @param environment holds HTTP_PROXY, HTTPS_PROXY and NO_PROXY. */
export function createProviderClient(environment: NodeJS.ProcessEnv): ProviderClient {
  const options = { keepAlive: true, proxyEnv: environment }
  const agents = { http: new http.Agent(options), https: new https.Agent(options) }

  function begin(provider: Provider): ClientRequest {
    const [request, agent] =
      provider.url.protocol === 'https:' ? [https.request, agents.https] : [http.request, agents.http]
    return request(provider.url, { method: 'POST', agent, headers: headersOf(provider) })
  }

  async function send(provider: Provider, body: string, signal: AbortSignal): Promise<IncomingMessage> {
    for (;;) {
      const request = begin(provider)
      const began = performance.now()
      try {
        return await replyTo(request, body, signal)
      } catch (error) {
        const isStale = request.reusedSocket && performance.now() - began < STALE_MS && isReset(error)
        // On a new connection the provider may have received the request, and would bill it twice.
        if (!isStale || signal.aborted) throw error
      }
    }
  }

  return {
    async post(provider, body, signal) {
      const reply = await send(provider, body, signal).catch((error: unknown) => {
        throw asFailure(error, signal)
      })
      const { statusCode: status = 0, headers } = reply
      const decodedBody = decoded(reply, headers['content-encoding'])
      if (status >= 200 && status < 300) return { status, body: decodedBody }
      const text = await readText(decodedBody, ERROR_BYTES, signal).catch(() => '')
      throw failureOf(status, parseJson(text) ?? text, waitMs(headers))
    },
    close() {
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}

function headersOf({ headers }: Provider): Readonly<Record<string, string>> {
  return {
    // Some firewalls reject requests without it.
    'user-agent': 'app-rankings-chat',
    ...headers,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    // Otherwise a provider may choose any coding, and some proxies do.
    'accept-encoding': 'identity',
  }
}

/** Sends the request; an abort also ends a reply that has begun. */
async function replyTo(request: ClientRequest, body: string, signal: AbortSignal): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  request.on('error', reject)
  request.once('response', (reply) => {
    signal.addEventListener('abort', () => reply.destroy(toError(signal.reason)), { once: true })
    resolve(reply)
  })
  request.once('socket', (socket) => {
    if (!socket.connecting) return
    const late = () => request.destroy(new Error(`No connection within ${CONNECT_MS / 1000} s`))
    const timer = setTimeout(late, CONNECT_MS)
    socket.once('connect', () => clearTimeout(timer)).once('close', () => clearTimeout(timer))
  })
  const abort = () => request.destroy(toError(signal.reason))
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  else request.end(body)
  return await promise
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason))
}

function isReset(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ECONNRESET' || code === 'EPIPE'
}

/** OpenAI and Azure send milliseconds in a header of their own; others send fractions of a second. */
function waitMs(headers: http.IncomingHttpHeaders): number | undefined {
  const inMs = decimal(headers['retry-after-ms'], 1)
  return inMs ?? decimal(headers['retry-after'], 1000) ?? retryAfterMs(headers['retry-after'])
}

function decimal(header: string | string[] | undefined, unit: number): number | undefined {
  return typeof header === 'string' && /^\d+(?:\.\d+)?$/.test(header) ? Number(header) * unit : undefined
}

const DECODERS: Readonly<Record<string, () => Duplex>> = {
  gzip: createUnzip,
  'x-gzip': createUnzip,
  deflate: createUnzip,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** The decoded body (RFC 9110, 8.4): some proxies add a coding without a request. */
function decoded(body: Readable, header = 'identity'): Readable {
  const coding = header.trim().toLowerCase()
  if (coding === '' || coding === 'identity') return body
  const decoder = DECODERS[coding]?.()
  // The resulting stream reports a broken body.
  if (decoder !== undefined) return pipeline(body, decoder, () => undefined)
  return body.destroy(new AttemptFailure('invalidReply', { code: 'unknown_content_encoding' }))
}

/** The failure behind an error of the connection: the expired deadline, if there is one. */
export function asFailure(error: unknown, signal: AbortSignal): AttemptFailure {
  if (error instanceof AttemptFailure) return error
  if (signal.reason instanceof AttemptFailure) return signal.reason
  return new AttemptFailure('connection', { cause: error, code: codeOf(error) })
}

/** The same once the reply has begun: a broken connection cuts the reply. */
export function asCut(error: unknown, signal: AbortSignal): AttemptFailure {
  const failure = asFailure(error, signal)
  return failure.kind === 'connection' ? new AttemptFailure('cut', { cause: error }) : failure
}

/**
 * The whole body as text.
 * @throws {AttemptFailure} if it breaks off, or exceeds `limit` bytes.
 */
export async function readText(body: Readable, limit: number, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Buffer[]>()
  const parts: Buffer[] = []
  let bytes = 0
  // By events, since an iterator awaits a promise for each part.
  body.on('data', (part: Buffer) => {
    bytes += part.length
    if (bytes <= limit) parts.push(part)
    else body.destroy(new AttemptFailure('invalidReply', { code: 'reply_too_large' }))
  })
  body.once('end', () => resolve(parts))
  body.once('error', reject)
  try {
    // A TextDecoder drops the byte order mark that some servers send; Buffer.toString does not.
    return new TextDecoder().decode(Buffer.concat(await promise))
  } catch (error) {
    throw asCut(error, signal)
  }
}
