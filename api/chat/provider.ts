/**
 * The client that posts completions to providers, and the forms of their replies. A request carries its provider's
 * headers and none of the caller's. Redirects are not followed. Of the reply, only status, body, coding and retry times
 * are read.
 */
import http, { type ClientRequest, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { pipeline, type Readable } from 'node:stream'
import { createBrotliDecompress, createUnzip } from 'node:zlib'
import { createParser } from 'eventsource-parser'
import { retryAfterMs } from '../http/headers.ts'
import { codeOf } from '../process/system-errors.ts'
import { isObject, parseJson } from '../untrusted/json.ts'
import type { Provider } from './configuration.ts'
import { AttemptFailure, failureOf } from './failures.ts'

/** Maximum bytes of a whole completion. */
const REPLY_BYTES = 64 * 1024 * 1024
const ERROR_BYTES = 64 * 1024
const CONNECT_MS = 10_000

/** A kept-alive connection that breaks later is not stale: the provider had the request and worked on it. */
const STALE_MS = 1000

export interface ProviderClient {
  /**
   * Posts `body`, the text of a JSON object. If the provider was just closing the kept-alive connection, it is posted
   * again. The body of the reply is decoded.
   * @throws {AttemptFailure} without a successful reply.
   */
  post(provider: Provider, body: string, signal: AbortSignal): Promise<{ status: number; body: Readable }>
  /** Closes all connections at once. */
  close(): void
}

/** @param environment holds HTTP_PROXY, HTTPS_PROXY and NO_PROXY. */
export function createProviderClient(environment: NodeJS.ProcessEnv): ProviderClient {
  const options = { keepAlive: true, proxyEnv: environment }
  const agents = { http: new http.Agent(options), https: new https.Agent(options) }

  function begin({ url, headers: own }: Provider): ClientRequest {
    const [request, agent] =
      url.protocol === 'https:' ? [https.request, agents.https] : [http.request, agents.http]
    const headers = {
      // Some firewalls reject requests without it.
      'user-agent': 'app-rankings-chat',
      ...own,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      // Otherwise a provider may choose any coding, and some proxies do.
      'accept-encoding': 'identity',
    }
    return request(url, { method: 'POST', agent, headers })
  }

  async function send(provider: Provider, body: string, signal: AbortSignal): Promise<IncomingMessage> {
    for (;;) {
      const request = begin(provider)
      const began = performance.now()
      try {
        return await replyTo(request, body, signal)
      } catch (error) {
        const isReset = ['ECONNRESET', 'EPIPE'].includes(codeOf(error) ?? '')
        const isStale = request.reusedSocket && performance.now() - began < STALE_MS && isReset
        // On a new connection the provider may have received the request, and would bill it twice.
        if (!isStale || signal.aborted) throw asFailure(error, signal)
      }
    }
  }

  return {
    async post(provider, body, signal) {
      const reply = await send(provider, body, signal)
      const { statusCode: status = 0, headers } = reply
      const decodedBody = decoded(reply, headers['content-encoding'])
      if (status >= 200 && status < 300) return { status, body: decodedBody }
      const text = await readText(decodedBody, signal, ERROR_BYTES).catch(() => '')
      throw failureOf(status, parseJson(text) ?? text, waitMs(headers))
    },
    close() {
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}

/** Sends the request; an abort also ends a reply that has begun. */
async function replyTo(request: ClientRequest, body: string, signal: AbortSignal): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  let reply: IncomingMessage | undefined
  const abort = () => (reply ?? request).destroy(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  request.on('error', reject)
  request.once('response', (response) => {
    reply = response
    resolve(response)
  })
  request.once('socket', (socket) => {
    if (!socket.connecting) return
    const late = () => request.destroy(new Error(`No connection within ${CONNECT_MS / 1000} s`))
    const timer = setTimeout(late, CONNECT_MS)
    socket.once('connect', () => clearTimeout(timer)).once('close', () => clearTimeout(timer))
  })
  if (signal.aborted) abort()
  else request.end(body)
  return await promise
}

/** OpenAI and Azure send milliseconds in a header of their own; others send fractions of a second. */
function waitMs({ 'retry-after-ms': inMs, 'retry-after': header }: http.IncomingHttpHeaders) {
  if (isDecimal(inMs)) return Number(inMs)
  return isDecimal(header) ? Number(header) * 1000 : retryAfterMs(header)
}

function isDecimal(text: unknown): boolean {
  return /^\d+(?:\.\d+)?$/.test(String(text))
}

/** The decoded body (RFC 9110, 8.4): some proxies add a coding without a request. */
function decoded(body: Readable, header = 'identity'): Readable {
  const coding = header.trim().toLowerCase()
  if (coding === '' || coding === 'identity') return body
  if (!['gzip', 'deflate', 'br'].includes(coding)) return body.destroy(new AttemptFailure('invalidReply'))
  // The resulting stream reports a broken body.
  return pipeline(body, coding === 'br' ? createBrotliDecompress() : createUnzip(), () => undefined)
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
export async function readText(body: Readable, signal: AbortSignal, limit = REPLY_BYTES): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Buffer[]>()
  const parts: Buffer[] = []
  let bytes = 0
  // By events, since an iterator awaits a promise for each part.
  body.on('data', (part: Buffer) => {
    bytes += part.length
    if (bytes <= limit) parts.push(part)
    else body.destroy(new AttemptFailure('invalidReply'))
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

/** One event of a reply. */
export interface ProviderEvent {
  readonly data: string
  /** Whether its name marks its data as an error. */
  readonly isError?: boolean
}

/** The data of the last event of a stream. */
export const DONE = '[DONE]'

/** Maximum characters of one event: image models send a whole image in base64. */
const EVENT_CHARACTERS = 16 * 1024 * 1024

/** Such a body is not a stream of events, whatever its content type. */
const JSON_BEGINS = /^\s*[[{]/

/**
 * The events in `body`, grouped by read; an empty group for a comment, which is a keep-alive. The body stays open when
 * reading stops.
 */
export async function* readEvents(body: Readable): AsyncGenerator<readonly ProviderEvent[], void> {
  const parser = createEventParser()
  const decoder = new TextDecoder()
  let buffered = ''
  let form: 'unknown' | 'events' | 'json' = 'unknown'
  for await (const part of body.iterator({ destroyOnReturn: false })) {
    const text = decoder.decode(part, { stream: true })
    if (form === 'unknown' && text.trim() !== '') form = JSON_BEGINS.test(text) ? 'json' : 'events'
    if (form === 'events') yield parser.read(text)
    else buffered += text
    if (buffered.length > REPLY_BYTES) throw new AttemptFailure('invalidReply')
  }
  yield form === 'json' ? eventsOfJson(buffered) : parser.end()
}

/** The events of a whole body. */
export function eventsOf(text: string): readonly ProviderEvent[] {
  if (JSON_BEGINS.test(text)) return eventsOfJson(text)
  const parser = createEventParser()
  return [...parser.read(text), ...parser.end()]
}

/** One JSON value, a list of them, or one a line. */
function eventsOfJson(text: string): readonly ProviderEvent[] {
  const value = parseJson(text)
  if (value === undefined) return linesOf(text) ?? [{ data: text }]
  const values = Array.isArray(value) && value.length > 0 ? value : [value]
  return [...values.map((one) => ({ data: JSON.stringify(one) })), { data: DONE }]
}

/** The events of a text with one value a line and no blank lines between; undefined for any other form. */
function linesOf(text: string): readonly ProviderEvent[] | undefined {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const areEvents = lines.every((line) => line.trim() === DONE || isObject(parseJson(line)))
  return areEvents ? lines.map((data) => ({ data: data.trim() })) : undefined
}

/** A parser of server-sent events that returns the events of its input. */
function createEventParser() {
  let events: ProviderEvent[] = []
  let isTooLarge = false
  const parser = createParser({
    maxBufferSize: EVENT_CHARACTERS,
    onEvent({ event, data }) {
      const lines = data.includes('\n') && parseJson(data) === undefined ? linesOf(data) : undefined
      events.push(...(lines ?? [{ data: data.trim(), isError: event === 'error' }]))
    },
    onError({ type, field, value = '' }) {
      if (type === 'max-buffer-size-exceeded') isTooLarge = true
      // llama.cpp marks an error by a field of its own.
      else if (field === 'error') events.push({ data: value, isError: true })
    },
  })
  function read(text: string): readonly ProviderEvent[] {
    parser.feed(text)
    if (isTooLarge) throw new AttemptFailure('invalidReply')
    return events.splice(0)
  }
  // Some servers omit the blank line after the last event.
  return { read, end: () => read('\n\n') }
}
