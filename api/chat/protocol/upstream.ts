/**
 * Posts completions to providers. Each request carries the headers of its provider and nothing of the caller's;
 * redirects are not followed, and of the reply only its status, its body and Retry-After are looked at.
 */
import { Agent, errors, type Dispatcher } from 'undici'
import { isObject, parseJson, type JsonObject } from '../../untrusted/json.ts'
import { retryAfterMs } from '../../http/protocol/retry-after.ts'
import { codeOf } from '../../process/system-errors.ts'
import { errorCode } from './completion.ts'
import type { Provider } from '../routing/configuration.ts'
import { AttemptFailure, failureOfStatus } from '../routing/failure.ts'
import { watchStaleConnections } from './stale-connections.ts'

export type UpstreamReply = Dispatcher.ResponseData

export interface Upstream {
  /**
   * Posts `body` to a provider, once more when it met a kept-alive connection that was just being closed.
   * @throws {AttemptFailure} when there is no reply, or one that is no success.
   */
  post(provider: Provider, body: JsonObject, signal: AbortSignal): Promise<UpstreamReply>
  /** Hangs up on everything. */
  close(): Promise<void>
}

const CONNECT_MS = 10_000
const REPLY_BYTES = 64 * 1024 * 1024
const ERROR_BYTES = 64 * 1024
const RETRY_AFTER_SECONDS_AT_MOST = 3600

/** The connections to all providers. `now` gives milliseconds of a clock that never goes back. */
export function createUpstream({ now = () => performance.now() }: { now?: () => number } = {}): Upstream {
  // Times are kept per attempt, from its own clock: an undici default ends long calls after five minutes.
  const agent = new Agent({ connect: { timeout: CONNECT_MS }, headersTimeout: 0, bodyTimeout: 0 })
  const connections = watchStaleConnections(now)

  async function send(provider: Provider, body: string, signal: AbortSignal): Promise<UpstreamReply> {
    const request = () =>
      agent.request({
        origin: provider.url.origin,
        path: provider.url.pathname,
        method: 'POST',
        headers: {
          ...provider.headers,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          // Without this a provider may pick any coding, and a proxy on the way sometimes does.
          'accept-encoding': 'identity',
        },
        body,
        signal,
      })
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
      const reply = await send(provider, JSON.stringify(body), signal).catch((error: unknown) => {
        throw asFailure(error, signal)
      })
      if (reply.statusCode === 200) return reply
      throw await readRefusal(reply, signal)
    },
    async close() {
      connections.close()
      await agent.destroy()
    },
  }
}

function isReset(error: unknown): boolean {
  if (error instanceof errors.SocketError) return true
  const code = codeOf(error)
  return code === 'ECONNRESET' || code === 'EPIPE'
}

/** The failure behind an error of the connection: the deadline that ended it, where one did. */
export function asFailure(error: unknown, signal: AbortSignal): AttemptFailure {
  if (error instanceof AttemptFailure) return error
  if (signal.reason instanceof AttemptFailure) return signal.reason
  return new AttemptFailure('connection', { cause: error, code: codeOf(error) })
}

/**
 * The body as JSON; undefined when it is none.
 * @throws {AttemptFailure} when it breaks off, or is larger than any completion.
 */
export async function readJsonReply(reply: UpstreamReply, signal: AbortSignal): Promise<unknown> {
  return parseJson(await readText(reply, REPLY_BYTES, signal))
}

async function readText(reply: UpstreamReply, limit: number, signal: AbortSignal): Promise<string> {
  try {
    const parts = await readParts(reply.body, limit)
    // Unlike a buffer's own text, without the byte order mark that some servers put before it.
    return new TextDecoder().decode(Buffer.concat(parts))
  } catch (error) {
    const failure = asFailure(error, signal)
    throw failure.kind === 'connection' ? new AttemptFailure('cut', { status: 200, cause: error }) : failure
  }
}

// By its events: an iterator would wait for a promise at each part.
async function readParts(body: UpstreamReply['body'], limit: number): Promise<readonly Buffer[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Buffer[]>()
  const parts: Buffer[] = []
  let bytes = 0
  body.on('data', (part: Buffer) => {
    bytes += part.length
    if (bytes <= limit) parts.push(part)
    else body.destroy(new AttemptFailure('invalidReply', { status: 200, code: 'reply_too_large' }))
  })
  body.once('end', () => resolve(parts))
  body.once('error', reject)
  return await promise
}

async function readRefusal(reply: UpstreamReply, signal: AbortSignal): Promise<AttemptFailure> {
  const text = await readText(reply, ERROR_BYTES, signal).catch(() => '')
  const body = parseJson(text)
  const code = isObject(body) ? errorCode(body['error']) : undefined
  return failureOfStatus(reply.statusCode, {
    retryAfterSeconds: secondsToWait(reply),
    code: code === undefined ? undefined : String(code),
  })
}

function secondsToWait({ headers }: UpstreamReply): number | undefined {
  const milliseconds = retryAfterMs(headers['retry-after'])
  if (milliseconds === undefined) return undefined
  return Math.min(Math.ceil(milliseconds / 1000), RETRY_AFTER_SECONDS_AT_MOST)
}
