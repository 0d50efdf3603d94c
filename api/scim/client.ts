/**
 * Requests a SCIM directory over HTTPS, within limits: no redirects, no other origin, bounded size and time, and pauses
 * on request. The token goes to the configured origin only.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, fetch, type RequestInit } from 'undici'
import { retryAfterMs } from '../http/protocol/retry-after.ts'
import { codeOf } from '../process/system-errors.ts'
import { AddressRefused, checkLiteralAddress, guardedLookup, type Reach, type Resolve } from './addresses.ts'
import type { Connection } from './connections.ts'
import { isOfReply, SyncFailure, type Failure } from './failures.ts'
import { OPTIONAL, type Patience, type SyncLimits } from './limits.ts'
import type { SyncObserver } from './metrics.ts'
import { isRepeated, readJsonBody } from './reply-body.ts'
import { readSecret, readTokenReply, tokenRequest, type Environment } from './token.ts'

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
  get(path: string, query?: Query, patience?: Partial<Patience>): Promise<Answer>
  /** GET of something that a sync can do without; undefined without an answer to assess. */
  getOptional(path: string, query?: Query): Promise<Answer | undefined>
  close(): Promise<void>
}

/** Waits, or rejects when the signal aborts. */
type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>

/** What a client needs from outside. */
export interface ClientDependencies {
  readonly environment: Environment
  readonly limits: SyncLimits
  readonly wait?: Wait
  readonly resolve?: Resolve
  readonly observer?: Pick<SyncObserver, 'requestFinished'>
}

/** The result of one request; `detail` is for the log. */
type Outcome =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'slow_down'; readonly detail: string; readonly waitMs: number | undefined }
  | { readonly kind: 'transient'; readonly failure: Failure; readonly detail: string }

/** One request; `what` is its name in the log, `secret` what no reply may repeat. */
interface Request extends Pick<RequestInit, 'method' | 'body'> {
  readonly headers: Readonly<Record<string, string>>
  readonly url: string
  readonly what: string
  readonly secret?: string
}

const REQUEST_TIMEOUT = 408
const NOT_IMPLEMENTED = 501

/**
 * A client of a connection's directory; close it after use. `signal` aborts everything, with its reason.
 * @throws {SyncFailure} if the token is not available, or the host is a forbidden address.
 */
export function createClient(
  { url, reach, token: source, oauth }: Pick<Connection, 'url' | 'reach' | 'token' | 'oauth'>,
  signal: AbortSignal,
  dependencies: ClientDependencies,
): DirectoryClient {
  const { environment, limits } = dependencies
  const secret = readSecret(source, environment)
  const directory = createRequester(url, { ...dependencies, reach, signal })
  const tokens = oauth === null ? undefined : createRequester(oauth.url, { ...dependencies, reach, signal })
  const requestToken = async () =>
    oauth === null || tokens === undefined ? secret : await tokenOf(tokens, oauth, secret, limits)
  let token: Promise<string> | undefined

  async function ask(path: string, query: Query, patience: Patience): Promise<Answer> {
    const parameters = new URLSearchParams(query).toString()
    // Concatenated, since resolving would follow dots and, after a leading //, leave the origin.
    const target = `${url.href.replace(/\/$/, '')}${path}${parameters === '' ? '' : `?${parameters}`}`
    const send = async (bearer: string) => {
      const headers = { Accept: 'application/scim+json, application/json', Authorization: `Bearer ${bearer}` }
      return await directory.request({ url: target, what: `GET ${path}`, secret: bearer, headers }, patience)
    }
    const used = (token ??= requestToken())
    const answer = await send(await used)
    if (answer.status !== 401 || oauth === null) return assessAccess(answer, path)
    // It may have expired; concurrent requests share the new one.
    if (token === used) token = requestToken()
    return assessAccess(await send(await token), path)
  }

  return {
    get: (path, query = {}, patience = {}) => ask(path, query, { ...limits, ...patience }),
    async getOptional(path, query = {}) {
      try {
        return await ask(path, query, OPTIONAL)
      } catch (error) {
        if (isOfReply(error)) return undefined
        throw error
      }
    },
    close: async () => void (await Promise.all([directory.close(), tokens?.close()])),
  }
}

type Requester = ReturnType<typeof createRequester>

/** Requests a token; the credentials go into the header or, if that is refused, into the body. */
async function tokenOf(
  requester: Requester,
  { url, clientId }: NonNullable<Connection['oauth']>,
  secret: string,
  patience: Patience,
): Promise<string> {
  const by = async (way: 'header' | 'body') => {
    const wanted = tokenRequest(clientId, secret, way)
    return await requester.request({ url: url.href, what: 'POST to the token address', ...wanted }, patience)
  }
  const first = await by('header')
  const { status, body } = first.status === 400 || first.status === 401 ? await by('body') : first
  return readTokenReply(status, body)
}

function assessAccess(answer: Answer, path: string): Answer {
  const { status } = answer
  if (status !== 401 && status !== 403) return answer
  throw new SyncFailure('directory_unauthorized', `GET ${path}: status ${status}`)
}

interface RequesterOptions extends ClientDependencies {
  readonly reach: Reach
  readonly signal: AbortSignal
}

/** Requests to one origin, with retries and pauses. */
function createRequester(origin: URL, options: RequesterOptions) {
  const { reach, limits, resolve, observer, wait = pauseFor } = options
  refuseLiteralAddress(origin, reach)
  // Ends concurrent requests and their retries once one has failed.
  const closing = new AbortController()
  const signal = AbortSignal.any([options.signal, closing.signal])
  const agent = new Agent({
    connect: { lookup: guardedLookup(origin.protocol, reach, resolve), timeout: limits.connectMs },
  })

  async function once(request: Request): Promise<Outcome> {
    try {
      const outcome = await exchange(agent, request, { limits, signal })
      observer?.requestFinished(outcome.kind)
      return outcome
    } catch (error) {
      observer?.requestFinished(error instanceof SyncFailure ? error.failure : 'internal')
      throw error
    }
  }

  return {
    async request(request: Request, patience: Patience): Promise<Answer> {
      let failures = 0
      let slowDowns = 0
      for (;;) {
        const outcome = await once(request)
        if (outcome.kind === 'answer') return outcome.answer
        if (outcome.kind === 'slow_down') {
          slowDowns += 1
          await wait(slowDownMs(outcome, slowDowns, { ...limits, ...patience }), signal)
        } else {
          failures += 1
          if (failures >= patience.tries) throw new SyncFailure(outcome.failure, outcome.detail)
          await wait(backoffMs(failures, limits), signal)
        }
      }
    },
    async close() {
      closing.abort(new SyncFailure('interrupted', 'the client was closed'))
      await agent.destroy()
    },
  }
}

async function exchange(
  agent: Agent,
  { url, what, secret = '', ...init }: Request,
  { limits, signal }: { readonly limits: SyncLimits; readonly signal: AbortSignal },
): Promise<Outcome> {
  try {
    const reply = await fetch(url, {
      ...init,
      headers: { 'User-Agent': 'app-rankings-scim', ...init.headers },
      redirect: 'manual',
      dispatcher: agent,
      signal: AbortSignal.any([signal, AbortSignal.timeout(limits.requestMs)]),
    })
    const { status } = reply
    const read = readJsonBody(reply, { what, limits, secret })
    if (status === 200) return { kind: 'answer', answer: { status, body: await read } }
    // Read to its end, so that the connection can be reused.
    return assess(status, await read.catch(() => undefined), reply.headers.get('retry-after'), what)
  } catch (error) {
    if (signal.aborted) throw signal.reason
    return describeFault(error, what, secret)
  }
}

function assess(status: number, body: unknown, retryAfter: string | null, what: string): Outcome {
  const waitMs = retryAfterMs(retryAfter ?? undefined)
  const detail = `${what}: status ${status}`
  if (status < 400) throw new SyncFailure('directory_invalid_response', `${detail} instead of 200`)
  if (status === 429 || (status === 503 && waitMs !== undefined)) return { kind: 'slow_down', detail, waitMs }
  if (status === REQUEST_TIMEOUT) return { kind: 'transient', failure: 'directory_unreachable', detail }
  if (status >= 500 && status !== NOT_IMPLEMENTED) {
    return { kind: 'transient', failure: 'directory_failing', detail }
  }
  return { kind: 'answer', answer: { status, body } }
}

function describeFault(error: unknown, what: string, secret: string): Outcome {
  const cause = error instanceof TypeError && error.cause instanceof Error ? error.cause : error
  if (cause instanceof SyncFailure) throw cause
  if (cause instanceof AddressRefused) throw new SyncFailure('address_refused', cause.message)
  const code = codeOf(cause)
  const text = cause instanceof Error ? `${code ?? cause.name}: ${cause.message}` : String(cause)
  // A message may quote what the directory sent, such as a certificate.
  const detail = `${what}: ${isRepeated(secret, text) ? '(the message repeats the token)' : text}`
  return { kind: 'transient', failure: failureOf(code), detail }
}

const TLS_CODE = /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO|HOSTNAME_MISMATCH)/

function failureOf(code = ''): Failure {
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'directory_unknown_host'
  if (code === 'ECONNREFUSED') return 'directory_connection_refused'
  return TLS_CODE.test(code) ? 'directory_tls' : 'directory_unreachable'
}

function refuseLiteralAddress(url: URL, reach: Reach): void {
  try {
    checkLiteralAddress(url, reach)
  } catch (error) {
    if (error instanceof AddressRefused) throw new SyncFailure('address_refused', error.message)
    throw error
  }
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
async function pauseFor(milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(milliseconds, undefined, { signal })
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}
