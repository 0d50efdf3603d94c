/**
 * Requests a SCIM directory over HTTPS, within limits: no redirects, no other origin, bounded size and time, and pauses
 * on request. The token goes to the configured origin only.
 */
import { setImmediate as endOfTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Agent, RequestInit, Response } from 'undici'
import { basicAuthorization } from '../../pipeline/program/webhook.ts'
import { retryAfterMs } from '../http/headers.ts'
import type { Log } from '../process/log.ts'
import { codeOf } from '../process/system-errors.ts'
import { exceededBound, isObject, parseJson } from '../untrusted/json.ts'
import { guardedAgent } from './addresses.ts'
import type { Connection } from './connections.ts'
import { orFailure, SyncFailure, type Failure } from './failures.ts'
import { ONE_WORD, readSecret, repeats, type Environment } from './token.ts'

/** Limits of one sync. */
export const SYNC_LIMITS = {
  /** Bytes of one decoded reply; a larger page is requested in smaller parts. */
  responseBytes: 4 * 1024 * 1024,
  /** Values in one reply and their depth: memory and time grow with them, not with bytes. */
  responseElements: 500_000,
  responseDepth: 32,
  /** Milliseconds of one whole request. */
  requestMs: 60_000,
  /** Tries of a request that fails on the directory's side, and the first pause between two in milliseconds. */
  tries: 4,
  backoffMs: 500,
  /** How often a request waits at the directory's demand, and the longest wait. */
  slowDowns: 20,
  slowDownMs: 120_000,
  /** Groups requested per page, the largest first: the first size is one that every known directory allows. */
  pageSizes: [100, 25, 5, 1] as readonly number[],
  pages: 10_000,
  groups: 100_000,
  members: 500_000,
}
export type SyncLimits = Readonly<typeof SYNC_LIMITS>
export type Patience = Pick<SyncLimits, 'tries' | 'slowDowns' | 'slowDownMs'>

/** For requests that a sync can do without, and for other ways to list after one has failed. */
export const BRIEF: Patience = { tries: 1, slowDowns: 2, slowDownMs: 10_000 }

/** What a client needs from outside. */
export type ClientDependencies = {
  readonly environment: Environment
  readonly limits: SyncLimits
  /** How long a client may be used: milliseconds of a whole sync, test or dry run. */
  readonly syncMs: number
  readonly log: Pick<Log, 'warn'>
  /** Waits, or rejects when the signal aborts: `setTimeout` of node:timers/promises by default. */
  readonly wait?: (ms: number, value: undefined, options: { signal: AbortSignal }) => Promise<unknown>
}

export type Query = Readonly<Record<string, string>>

/** A reply for the caller to assess: a success with its JSON, or a status such as 400, 404 or 501. */
type Answer = { readonly status: number; readonly body: unknown }

/** A fault of the directory that may pass; `detail` is for the log, `waitMs` how long the directory demands to wait. */
type Fault = {
  readonly failure: Failure
  readonly detail: string
  readonly waitMs?: number | undefined
}

/** One request; `what` is its name in the log, `secret` what no reply may repeat. */
type Request = RequestInit & { readonly url: string; readonly what: string; readonly secret: string }

/** Parameters of a token address that servers read in the body alone; the others stay in the address (RFC 6749, 3.2). */
const IN_BODY = ['grant_type', 'scope', 'resource', 'audience']

const HEADERS = { 'User-Agent': 'app-rankings-scim', Accept: 'application/scim+json, application/json' }

/** A client of a connection's directory; disposing of it ends its requests. */
export class DirectoryClient {
  readonly limits: SyncLimits
  readonly #connection: Connection
  readonly #dependencies: ClientDependencies
  readonly #agent: Promise<Agent>
  // Ends concurrent requests and their retries once one has failed, and all that take too long.
  readonly #closing = new AbortController()
  readonly #deadline: NodeJS.Timeout
  readonly #signal: AbortSignal
  #token: Promise<string> | undefined

  /** @param signal aborts everything, with its reason. */
  constructor(connection: Connection, signal: AbortSignal, dependencies: ClientDependencies) {
    this.limits = dependencies.limits
    this.#connection = connection
    this.#dependencies = dependencies
    this.#agent = guardedAgent(connection)
    const { syncMs } = dependencies
    const late = new SyncFailure('timed_out', `not done within ${syncMs} ms`)
    this.#deadline = setTimeout(() => this.#closing.abort(late), syncMs)
    this.#signal = AbortSignal.any([signal, this.#closing.signal])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#deadline)
    this.#closing.abort(new SyncFailure('interrupted', 'the client was closed'))
    await (await this.#agent).destroy()
  }

  /**
   * GET of a path below the directory's address.
   * @throws SyncFailure without an answer to assess: no or a rejected token, redirect, invalid JSON, no connection.
   */
  async get(path: string, query: Query = {}, patience: Patience = this.limits) {
    const parameters = new URLSearchParams(query).toString()
    // Concatenated, since resolving would follow dots and, after a leading //, leave the origin.
    const url = this.#connection.url.replace(/\/$/, '') + path + (parameters && `?${parameters}`)
    const what = `GET ${path}`
    const send = async (token: Promise<string>) => {
      const secret = await token
      const headers = { ...HEADERS, Authorization: `Bearer ${secret}` }
      return await this.#request({ url, what, secret, headers }, patience)
    }
    const used = (this.#token ??= this.#issueToken())
    let answer = await send(used)
    if (answer.status === 401 && this.#connection.token_url !== null) {
      // It may have expired; concurrent requests share the new one.
      if (this.#token === used) this.#token = this.#issueToken()
      answer = await send(this.#token)
    }
    if (answer.status !== 401 && answer.status !== 403) return answer
    const { status } = answer
    throw new SyncFailure('directory_unauthorized', `${what}: status ${status}`, { cause: status })
  }

  /**
   * The static token, or one for the client's credentials (RFC 6749, 4.4), which go into the header or, if that is
   * refused, into the body (2.3.1).
   */
  async #issueToken(): Promise<string> {
    const { token_url, client_id } = this.#connection
    const client_secret = readSecret(this.#connection, this.#dependencies.environment)
    if (token_url === null || client_id === null) return client_secret
    const url = new URL(token_url)
    const given = [...url.searchParams].filter(([name]) => IN_BODY.includes(name))
    for (const [name] of given) url.searchParams.delete(name)
    const form = { grant_type: 'client_credentials', ...Object.fromEntries(given) }
    const post = async (more: Query, headers: Query) => {
      const body = new URLSearchParams({ ...form, ...more })
      const init = { method: 'POST', headers: { ...HEADERS, ...headers }, body }
      const target = { url: url.href, what: 'POST to the token address', secret: client_secret }
      const answer = await orFailure(this.#request({ ...init, ...target }, this.limits))
      if (answer instanceof SyncFailure) throw new SyncFailure('token_refused', answer.detail)
      return answer
    }
    const credentials = [client_id, client_secret].map(encodeURIComponent).join(':')
    let answer = await post({}, { Authorization: basicAuthorization(credentials) })
    if (answer.status === 400 || answer.status === 401) answer = await post({ client_id, client_secret }, {})
    const token = isObject(answer.body) ? answer.body['access_token'] : undefined
    if (answer.status === 200 && typeof token === 'string' && ONE_WORD.test(token)) return token
    throw new SyncFailure('token_refused', `it answered with status ${answer.status} and no token`)
  }

  /** One request, with retries and pauses. */
  async #request(request: Request, patience: Patience): Promise<Answer> {
    const { log, wait = sleep } = this.#dependencies
    for (let failures = 0, slowDowns = 0; ;) {
      const outcome = await this.#exchange(request)
      if ('status' in outcome) return outcome
      const { failure, detail, waitMs } = outcome
      const isSlowDown = failure === 'directory_rate_limited'
      const count = isSlowDown ? (slowDowns += 1) : (failures += 1)
      const ms = waitMs ?? backoffMs(count, this.limits)
      const isOver = isSlowDown
        ? count > patience.slowDowns || ms > patience.slowDownMs
        : count >= patience.tries
      if (isOver) throw new SyncFailure(failure, `${detail}, ${count} times; the next wait would be ${ms} ms`)
      if (isSlowDown) log.warn({ wait_ms: ms }, 'the directory limits requests, so the sync waits')
      await wait(ms, undefined, { signal: this.#signal }).catch(() => this.#signal.throwIfAborted())
    }
  }

  async #exchange({ url, what, secret, ...init }: Request): Promise<Answer | Fault> {
    const { limits } = this
    const { fetch } = await import('undici')
    try {
      const reply = await fetch(url, {
        ...init,
        redirect: 'manual',
        dispatcher: await this.#agent,
        signal: AbortSignal.any([this.#signal, AbortSignal.timeout(limits.requestMs)]),
      })
      const text = readText(reply, limits.responseBytes)
      if (reply.status === 200) return { status: 200, body: await parse(await text, secret, limits) }
      // Read to its end, so that the connection can be reused.
      await text.catch(() => undefined)
      return assess(reply, what)
    } catch (error) {
      this.#signal.throwIfAborted()
      return describeFault(error, what, secret)
    }
  }
}

// Doubles with each try; half of it is random, so that clients do not retry together.
function backoffMs(count: number, limits: SyncLimits): number {
  const longest = Math.min(limits.backoffMs * 2 ** (count - 1), limits.slowDownMs)
  return Math.round(longest * (0.5 + Math.random() / 2))
}

function assess({ status, headers }: Response, what: string): Answer | Fault {
  const waitMs = retryAfterMs(headers.get('retry-after') ?? undefined)
  if (status < 400) throw new SyncFailure('directory_invalid_response', `status ${status} instead of 200`)
  const detail = `${what}: status ${status}`
  // GitHub limits with 403.
  if (status === 429 || ([403, 503].includes(status) && waitMs !== undefined))
    return { failure: 'directory_rate_limited', detail, waitMs }
  if (status === 408) return { failure: 'directory_unreachable', detail }
  // 501 says that the directory has no such list, paging or group.
  if (status >= 500 && status !== 501) return { failure: 'directory_failing', detail }
  return { status, body: undefined }
}

const FAULTS: readonly (readonly [Failure, RegExp])[] = [
  ['directory_unknown_host', /^(?:ENOTFOUND|EAI_AGAIN)$/],
  ['directory_connection_refused', /^ECONNREFUSED$/],
  ['directory_tls', /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO|HOSTNAME_MISMATCH)/],
]

function describeFault(error: unknown, what: string, secret: string): Fault {
  const cause = error instanceof TypeError && error.cause instanceof Error ? error.cause : error
  if (cause instanceof SyncFailure) throw new SyncFailure(cause.failure, `${what}: ${cause.detail}`)
  const code = codeOf(cause) ?? ''
  const text = `${code} ${String(cause)}`
  // A message may quote what the directory sent, such as a certificate.
  const detail = `${what}: ${repeats(text, secret) ? '(the message repeats the token)' : text}`
  const [failure = 'directory_unreachable'] = FAULTS.find(([, codes]) => codes.test(code)) ?? []
  return { failure, detail }
}

async function readText({ body, headers }: Response, most: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.byteLength
    if (length > most) throw new SyncFailure('directory_too_large', `the reply has more than ${most} bytes`)
    chunks.push(chunk)
  }
  const [, charset = 'utf-8'] =
    /;\s*charset\s*=\s*"?([^\s;",]+)/i.exec(headers.get('content-type') ?? '') ?? []
  try {
    return new TextDecoder(charset, { fatal: true }).decode(Buffer.concat(chunks))
  } catch {
    throw new SyncFailure('directory_invalid_response', 'the reply is not valid in its charset')
  }
}

/**
 * The JSON of a reply, whatever its Content-Type: directories send `application/scim+json`, `text/json` or none. The
 * event loop gets its turn between the passes over a large one.
 * @throws SyncFailure if it is not JSON, repeats the token, or exceeds the limits.
 */
async function parse(text: string, secret: string, limits: SyncLimits): Promise<unknown> {
  await endOfTurn()
  if (repeats(text, secret))
    throw new SyncFailure('directory_invalid_response', 'the reply repeats the token')
  const bounds = { elements: limits.responseElements, depth: limits.responseDepth }
  const exceeded = exceededBound(text, bounds)
  if (exceeded !== undefined)
    throw new SyncFailure('directory_too_large', `the reply exceeds the limit of ${exceeded}`)
  await endOfTurn()
  const json = parseJson(text)
  if (json !== undefined) return json
  throw new SyncFailure('directory_invalid_response', 'the reply is not JSON')
}
