/**
 * Requests a SCIM directory over HTTPS, within limits: no redirects, no other origin, bounded size and time, and pauses
 * on request. The token goes to the configured origin only.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, errors, type Dispatcher } from 'undici'
import { retryAfterMs } from '../../../http/protocol/retry-after.ts'
import { codeOf } from '../../../process/system-errors.ts'
import { AddressRefused, checkLiteralAddress, guardedLookup, type Reach, type Resolve } from './addresses.ts'
import { SyncFailure, type Failure } from '../../failures.ts'
import type { Patience, SyncLimits } from '../limits.ts'
import { readJsonBody, type BodyOptions } from './reply-body.ts'
import { UNOBSERVED, type SyncObserver } from '../../observer.ts'

/** A reply for the caller to assess: a success with its JSON, or a status such as 400, 404 or 501. */
export interface Answer {
  readonly status: number
  /** The parsed body; undefined for an error without JSON. */
  readonly body: unknown
}

export type Query = Readonly<Record<string, string>>

export interface DirectoryClient {
  /**
   * GET of a path below the directory's address.
   * @throws {SyncFailure} without an answer to assess: rejected token, redirect, invalid JSON, no connection.
   */
  get(path: string, query?: Query): Promise<Answer>
  /** GET of something that a sync can do without; undefined without an answer to assess. */
  getOptional(path: string): Promise<Answer | undefined>
  close(): Promise<void>
}

/** Waits, or rejects when the signal aborts. */
export type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>

export interface ClientOptions {
  readonly url: URL
  readonly token: string
  readonly reach: Reach
  readonly limits: SyncLimits
  /** Aborts everything; `get` rejects with its reason. */
  readonly signal: AbortSignal
  readonly wait?: Wait
  readonly resolve?: Resolve
  readonly observer?: Pick<SyncObserver, 'requestFinished'>
}

/** The result of one request; `detail` is for the log. */
type Outcome =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'slow_down'; readonly detail: string; readonly waitMs: number | undefined }
  | { readonly kind: 'transient'; readonly detail: string }

const ACCEPT = 'application/scim+json, application/json'
const OF_REPLY: ReadonlySet<Failure> = new Set([
  'directory_unauthorized',
  'directory_invalid_response',
  'directory_unreachable',
  'directory_rate_limited',
  'directory_too_large',
])
const REQUEST_TIMEOUT = 408
const NOT_IMPLEMENTED = 501

/**
 * A client of the directory at `options.url`; close it after use.
 * @throws {SyncFailure} if the host is a forbidden address.
 */
export function createDirectoryClient(options: ClientOptions): DirectoryClient {
  const { url, reach, limits, wait = pauseFor, observer = UNOBSERVED } = options
  refuseLiteralAddress(url, reach)
  // Ends concurrent requests and their retries once one has failed.
  const closing = new AbortController()
  const signal = AbortSignal.any([options.signal, closing.signal])
  const agent = new Agent({
    connect: { lookup: guardedLookup(url.protocol, reach, options.resolve), timeout: limits.connectMs },
    maxResponseSize: limits.responseBytes,
  })

  async function request(path: string, query: Query, patience: Patience): Promise<Answer> {
    let failures = 0
    let slowDowns = 0
    const wanted = { path: pathOf(url, path, query), what: `GET ${path}` }
    for (;;) {
      const outgoing = ask(agent, { ...options, signal }, wanted)
      const outcome = await observed(outgoing, observer)
      if (outcome.kind === 'answer') return outcome.answer
      if (outcome.kind === 'slow_down') {
        slowDowns += 1
        await wait(slowDownMs(outcome, slowDowns, { ...limits, ...patience }), signal)
      } else {
        failures += 1
        if (failures >= patience.tries) throw new SyncFailure('directory_unreachable', outcome.detail)
        await wait(backoffMs(failures, limits), signal)
      }
    }
  }

  return {
    get: (path, query = {}) => request(path, query, limits),
    async getOptional(path) {
      try {
        return await request(path, {}, limits.optional)
      } catch (error) {
        if (isOfReply(error)) return undefined
        throw error
      }
    },
    async close() {
      closing.abort(new SyncFailure('interrupted', 'the client was closed'))
      await agent.destroy()
    },
  }
}

interface Request {
  readonly path: string
  /** Its name in the log. */
  readonly what: string
}

async function ask(agent: Agent, options: ClientOptions, { path, what }: Request): Promise<Outcome> {
  const { url, token, limits, signal } = options
  try {
    const reply = await agent.request({
      origin: url.origin,
      path,
      method: 'GET',
      headers: {
        Accept: ACCEPT,
        'Accept-Encoding': 'identity',
        Authorization: `Bearer ${token}`,
        'User-Agent': 'app-rankings-scim',
      },
      signal: AbortSignal.any([signal, AbortSignal.timeout(limits.requestMs)]),
    })
    return await assess(reply, { what, limits, token })
  } catch (error) {
    if (signal.aborted) throw signal.reason
    return asOutcome(error, what, token)
  }
}

async function observed(
  outgoing: Promise<Outcome>,
  observer: Pick<SyncObserver, 'requestFinished'>,
): Promise<Outcome> {
  try {
    const outcome = await outgoing
    observer.requestFinished(outcome.kind)
    return outcome
  } catch (error) {
    observer.requestFinished(error instanceof SyncFailure ? error.failure : 'internal')
    throw error
  }
}

async function assess(reply: Dispatcher.ResponseData, options: BodyOptions): Promise<Outcome> {
  const { what } = options
  const { statusCode: status } = reply
  if (status === 200) return { kind: 'answer', answer: { status, body: await readJsonBody(reply, options) } }

  // Read to its end, so that the connection can be reused.
  const body = await readJsonBody(reply, options).catch(() => undefined)
  const waitMs = retryAfterMs(reply.headers['retry-after'])
  const detail = `${what}: status ${status}`
  if (status === 401 || status === 403) throw new SyncFailure('directory_unauthorized', detail)
  if (status < 400) throw new SyncFailure('directory_invalid_response', `${detail} instead of 200`)
  if (status === 429 || (status === 503 && waitMs !== undefined)) {
    return { kind: 'slow_down', detail, waitMs }
  }
  const isTransient = status === REQUEST_TIMEOUT || (status >= 500 && status !== NOT_IMPLEMENTED)
  return isTransient ? { kind: 'transient', detail } : { kind: 'answer', answer: { status, body } }
}

/** Whether an error concerns this reply alone; other errors, such as a timeout of the sync, concern every request. */
export function isOfReply(error: unknown): error is SyncFailure {
  return error instanceof SyncFailure && OF_REPLY.has(error.failure)
}

function asOutcome(error: unknown, what: string, token: string): Outcome {
  if (error instanceof SyncFailure) throw error
  if (error instanceof AddressRefused) throw new SyncFailure('address_refused', error.message)
  if (error instanceof errors.ResponseExceededMaxSizeError) {
    throw new SyncFailure('directory_too_large', `${what}: the reply has too many bytes`)
  }
  // A message may quote what the directory sent, such as a certificate.
  return { kind: 'transient', detail: `${what}: ${describe(error)}`.replaceAll(token, '[token]') }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return `${codeOf(error) ?? error.name}: ${error.message}`
}

function refuseLiteralAddress(url: URL, reach: Reach): void {
  try {
    checkLiteralAddress(url, reach)
  } catch (error) {
    if (error instanceof AddressRefused) throw new SyncFailure('address_refused', error.message)
    throw error
  }
}

// Concatenated, since resolving would follow dots and, after a leading //, leave the origin.
function pathOf(url: URL, path: string, query: Query): string {
  const parameters = new URLSearchParams(query).toString()
  return `${url.pathname.replace(/\/$/, '')}${path}${parameters === '' ? '' : `?${parameters}`}`
}

function slowDownMs(
  { detail, waitMs }: Extract<Outcome, { kind: 'slow_down' }>,
  count: number,
  limits: SyncLimits,
): number {
  const milliseconds = waitMs ?? backoffMs(count, limits)
  if (count > limits.slowDowns || milliseconds > limits.slowDownMs) {
    throw new SyncFailure(
      'directory_rate_limited',
      `${detail}, ${count} times; requested wait ${milliseconds} ms`,
    )
  }
  return milliseconds
}

// Doubles with each try; half of it is random, so that clients do not retry together.
function backoffMs(count: number, limits: SyncLimits): number {
  const longest = Math.min(limits.backoffMs * 2 ** (count - 1), limits.slowDownMs)
  return Math.round(longest * (0.5 + Math.random() / 2))
}

/** Waits, or rejects with the reason of an aborted signal. */
export async function pauseFor(milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(milliseconds, undefined, { signal })
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}
