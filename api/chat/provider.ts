/**
 * Talks to providers: posts completions, and reads the bytes of their replies as chunks, whatever their form. A request
 * carries its provider's headers and none of the caller's. Redirects are not followed. Of the head of a reply, only
 * status, coding and retry times are read.
 */
import { once } from 'node:events'
import type { Agent, ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { pipeline, type Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { createParser } from 'eventsource-parser'
import { retryAfterMs } from '../http/headers.ts'
import { DECODERS } from '../http/request-body.ts'
import { codeOf } from '../process/system-errors.ts'
import { isObject, parseJson } from '../untrusted/json.ts'
import type { Provider } from './configuration.ts'
import { AttemptFailure, failureIn, failureOf } from './failures.ts'
import type { ProviderBody } from './request.ts'

// An import would load code of 6 MB (http/server.ts).
const http = process.getBuiltinModule('node:http')
const ERROR_CHARACTERS = 64 * 1024
const ERROR_MS = 2000
const CONNECT_MS = 10_000

/** A kept-alive connection that breaks later is not stale: the provider had the request and worked on it. */
const STALE_MS = 1000

/** Connections to providers, which are kept open between requests. */
export class ProviderClient {
  readonly #plain: Agent
  readonly #secure: https.Agent

  /** `environment` holds HTTP_PROXY, HTTPS_PROXY and NO_PROXY. */
  constructor(environment: NodeJS.ProcessEnv) {
    this.#plain = new http.Agent({ keepAlive: true, proxyEnv: environment })
    this.#secure = new https.Agent({ keepAlive: true, proxyEnv: environment })
  }

  /**
   * Posts a completion's `body`. If the provider was just closing the kept-alive connection, it is posted
   * again. The body of the reply is decoded.
   * @throws AttemptFailure without a successful reply.
   */
  async post(provider: Provider, body: ProviderBody, signal: AbortSignal) {
    const reply = await this.#send(provider, body, signal)
    const { statusCode: status = 0, headers } = reply
    const decodedBody = decoded(reply, headers['content-encoding'])
    if (status >= 200 && status < 300) return { status, body: decodedBody }
    const text = await errorText(decodedBody)
    throw failureOf(status, parseJson(text) ?? text, waitMs(headers))
  }

  /** Closes all connections at once. */
  close(): void {
    this.#plain.destroy()
    this.#secure.destroy()
  }

  async #send(provider: Provider, body: ProviderBody, signal: AbortSignal): Promise<IncomingMessage> {
    const [others, messages] = body
    for (;;) {
      const request = this.#begin(provider, signal)
      request.setHeader('content-length', Buffer.byteLength(others) + messages.length).write(others)
      const began = performance.now()
      try {
        const [reply] = await once(request.end(messages), 'response')
        return reply
      } catch (error) {
        const isReset = ['ECONNRESET', 'EPIPE'].includes(codeOf(error) ?? '')
        const isStale = request.reusedSocket && performance.now() - began < STALE_MS && isReset
        // On a new connection the provider may have received the request, and would bill it twice.
        if (!isStale || signal.aborted) throw asFailure(error, signal)
      }
    }
  }

  #begin({ url, headers: own }: Provider, signal: AbortSignal): ClientRequest {
    const headers = {
      // Some firewalls reject requests without it.
      'user-agent': 'app-rankings-chat',
      ...own,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      // Otherwise a provider may choose any coding, and some proxies do.
      'accept-encoding': 'identity',
    }
    const isSecure = url.protocol === 'https:'
    const agent = isSecure ? this.#secure : this.#plain
    const request = (isSecure ? https : http).request(url, { method: 'POST', agent, headers, signal })
    // Without a listener Node.js closes the connection, and the request never ends.
    request.on('upgrade', (_head, socket) => {
      socket.destroy()
      request.emit('error', new Error('The provider switched to another protocol'))
    })
    // An error after the response is one of its body.
    return request.on('error', () => undefined).once('socket', limitConnecting)
  }
}

function limitConnecting(this: ClientRequest, socket: Socket): void {
  if (!socket.connecting) return
  const late = () => this.destroy(new Error(`No connection within ${CONNECT_MS / 1000} s`))
  const timer = setTimeout(late, CONNECT_MS)
  socket.once('connect', () => clearTimeout(timer)).once('close', () => clearTimeout(timer))
}

/** The decoded body: some proxies add a coding without a request. Unknown names, such as `none`, are no codings. */
function decoded(body: Readable, header = 'identity'): Readable {
  const decoder = DECODERS.get(header.trim().toLowerCase())?.()
  // The resulting stream reports a broken body.
  return decoder === undefined ? body : pipeline(body, decoder, () => undefined)
}

/** The text of an error, as far as it comes in time and within the limit: its begin may tell enough. */
async function errorText(body: Readable): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  const timer = setTimeout(() => body.destroy(), ERROR_MS)
  body.on('data', (part: Buffer) => {
    text += decoder.decode(part, { stream: true })
    if (text.length > ERROR_CHARACTERS) body.destroy()
  })
  await finished(body).catch(() => undefined)
  clearTimeout(timer)
  return text
}

/** OpenAI and Azure send milliseconds in a header of their own. */
function waitMs({ 'retry-after-ms': inMs, 'retry-after': header }: IncomingHttpHeaders) {
  return /^\d+(?:\.\d+)?$/.test(String(inMs)) ? Number(inMs) : retryAfterMs(header)
}

/**
 * The failure behind an error of the connection: the expired deadline, if there is one.
 * @param broken what it is otherwise: once the reply has begun, a broken connection cuts it.
 */
export function asFailure(error: unknown, signal: AbortSignal, broken: 'connection' | 'cut' = 'connection') {
  if (error instanceof AttemptFailure) return error
  if (signal.reason instanceof AttemptFailure) return signal.reason
  return new AttemptFailure(broken, { cause: error, code: codeOf(error) })
}

/** What ends a stream. */
export const DONE = '[DONE]'

/** Maximum characters of a reply that is held as a whole. */
const REPLY_CHARACTERS = 64 * 1024 * 1024
/** Maximum characters of one event: image models send a whole image in base64. */
const EVENT_CHARACTERS = 16 * 1024 * 1024
/** Such a body is not a stream of events, whatever its content type. */
const JSON_BEGINS = /^\s*[[{]/

/**
 * The chunks in `body`, grouped by read; an empty group for a keep-alive. A chunk is parsed JSON, otherwise the text as it
 * was sent, DONE at the end, or the failure that its event is marked as. A whole reply is a stream with one chunk. The
 * body stays open when reading stops.
 * @param isStream whether events are passed on as they come: then their sum has no limit.
 * @throws AttemptFailure if a limit is exceeded.
 */
export async function* readChunks(body: Readable, isStream: boolean): AsyncGenerator<readonly unknown[]> {
  const events = createEventReader()
  const decoder = new TextDecoder()
  let characters = 0
  let json = ''
  let form: 'unknown' | 'events' | 'json' = 'unknown'
  for await (const part of body.iterator({ destroyOnReturn: false })) {
    const text = decoder.decode(part, { stream: true })
    if (form === 'unknown' && text.trim() !== '') form = JSON_BEGINS.test(text) ? 'json' : 'events'
    characters += text.length
    const isBounded = form !== 'events' || !isStream
    if (isBounded && characters > REPLY_CHARACTERS) throw new AttemptFailure('invalidReply')
    if (form !== 'events') json += text
    yield form === 'events' ? events.read(text) : []
  }
  yield form === 'events' ? events.end() : chunksOfJson(json)
}

/** A reader of server-sent events that returns the chunks of its input. */
function createEventReader() {
  const chunks: unknown[] = []
  const fail = (data: string) => chunks.push(failureIn(parseJson(data) ?? data))
  const parser = createParser({
    maxBufferSize: EVENT_CHARACTERS,
    onEvent({ event, data }) {
      if (event === 'error') fail(data)
      else if (event === undefined || event === 'message') chunks.push(...chunksOfText(data))
      // Pings, and what an agent reports of its tools.
      else chunks.push(...chunksOfText(data).filter(isChunk))
    },
    onError({ type, field, value = '' }) {
      if (type === 'max-buffer-size-exceeded') chunks.push(new AttemptFailure('invalidReply'))
      // llama.cpp marks an error by a field of its own.
      else if (field === 'error') fail(value)
    },
  })
  function read(text: string): readonly unknown[] {
    parser.feed(text)
    return chunks.splice(0)
  }
  // Some servers omit the blank line after the last event.
  return { read, end: () => read('\n\n') }
}

/** One value, or a list of them. */
function chunksOfJson(text: string): readonly unknown[] {
  const value = parseJson(text)
  if (value === undefined) return chunksOfText(text)
  const values: readonly unknown[] = Array.isArray(value) && value.length > 0 ? value : [value]
  return [...values, DONE]
}

function isChunk(value: unknown): boolean {
  return value === DONE || (isObject(value) && Boolean(value['choices'] ?? value['error']))
}

/** One value, or one a line; otherwise the text. A keep-alive is an empty text, null, or a comment (Vertex AI). */
function chunksOfText(text: string): readonly unknown[] {
  const value = parseJson(text)
  if (value === null) return []
  if (value !== undefined) return [value]
  // Some servers name the field twice.
  const lines = text
    .replaceAll(/^(?:data:\s*)+/gm, '')
    .split('\n')
    .filter((line) => !/^\s*(?::|$)/.test(line))
  const values = lines.map((line) => (line.trim() === DONE ? DONE : parseJson(line)))
  return values.every((one) => one === DONE || isObject(one)) ? values : [text]
}
