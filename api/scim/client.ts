/**
 * Requests a SCIM directory over HTTPS, within limits: no redirects, no other origin, bounded size and time, and pauses
 * on request. The token goes to the configured origin only.
 */
import { setImmediate as endOfTurn, setTimeout as sleep } from 'node:timers/promises'
import { Agent, fetch, type RequestInit, type Response } from 'undici'
import { retryAfterMs } from '../http/headers.ts'
import type { Log } from '../process/log.ts'
import { codeOf } from '../process/system-errors.ts'
import { exceededBound, parseJson } from '../untrusted/json.ts'
import { AddressRefused, checkLiteralAddress, guardedLookup, type Resolve } from './addresses.ts'
import type { Connection } from './connections.ts'
import { isOfReply, SyncFailure, type Failure } from './failures.ts'
import { readSecret, readTokenReply, repeats, tokenRequest, type Environment } from './token.ts'

/** Limits of one sync. */
export const SYNC_LIMITS = {
  /** Bytes of one decoded reply; a larger page is requested in smaller parts. */
  responseBytes: 4 * 1024 * 1024,
  /** Values in one reply and their depth: memory and time grow with them, not with bytes. */
  responseElements: 500_000,
  responseDepth: 32,
  /** Milliseconds to connect, and for one whole request. */
  connectMs: 10_000,
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
  /** Absent groups of a complete list that are requested one by one; above it, a second reading confirms them. */
  lookUps: 100,
  /** Concurrent requests for single groups. */
  parallel: 4,
}
export type SyncLimits = Readonly<typeof SYNC_LIMITS>

type Patience = Pick<SyncLimits, 'tries' | 'slowDowns' | 'slowDownMs'>

/** For requests that a sync can do without. */
const BRIEF: Patience = { tries: 2, slowDowns: 2, slowDownMs: 10_000 }

/** A reply for the caller to assess: a success with its JSON, or a status such as 400, 404 or 501. */
interface Answer {
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
  getOptional(path: string): Promise<Answer | undefined>
  close(): Promise<void>
}

/** What a client needs from outside. */
export interface ClientDependencies {
  readonly environment: Environment
  readonly limits: SyncLimits
  readonly log: Pick<Log, 'warn'>
  /** Waits, or rejects when the signal aborts. */
  readonly wait?: (milliseconds: number, signal: AbortSignal) => Promise<unknown>
  readonly resolve?: Resolve
}

/** One request; `what` is its name in the log, `secret` what no reply may repeat. */
interface Request extends Pick<RequestInit, 'method' | 'body'> {
  readonly url: string
  readonly what: string
  readonly secret: string
  readonly headers: Readonly<Record<string, string>>
}

/** A fault of the directory that may pass; `detail` is for the log. */
interface Fault {
  readonly failure: Failure
  readonly detail: string
  /** How long the directory demands to wait. */
  readonly waitMs?: number | undefined
}

const NOT_IMPLEMENTED = 501

/**
 * A client of a connection's directory; close it after use. `signal` aborts everything, with its reason.
 * @throws {SyncFailure} if the token is not available, or the host is a forbidden address.
 */
export function createClient(
  connection: Connection,
  signal: AbortSignal,
  dependencies: ClientDependencies,
): DirectoryClient {
  const { limits, environment } = dependencies
  const secret = readSecret(connection, environment)
  // Ends concurrent requests and their retries once one has failed.
  const closing = new AbortController()
  const requesterTo = (url: string) =>
    createRequester(new URL(url), connection, AbortSignal.any([signal, closing.signal]), dependencies)
  const directory = requesterTo(connection.url)
  const tokens = connection.token_url === null ? undefined : requesterTo(connection.token_url)
  const requestToken = async () =>
    tokens === undefined ? secret : await issueToken(tokens, connection, secret, limits)
  let token: Promise<string> | undefined

  async function get(path: string, query: Query, patience: Patience): Promise<Answer> {
    const parameters = new URLSearchParams(query).toString()
    // Concatenated, since resolving would follow dots and, after a leading //, leave the origin.
    const url = `${connection.url.replace(/\/$/, '')}${path}${parameters === '' ? '' : `?${parameters}`}`
    const send = async (bearer: string) => {
      const headers = { Accept: 'application/scim+json, application/json', Authorization: `Bearer ${bearer}` }
      return await directory.request({ url, what: `GET ${path}`, secret: bearer, headers }, patience)
    }
    const used = (token ??= requestToken())
    let answer = await send(await used)
    if (answer.status === 401 && tokens !== undefined) {
      // It may have expired; concurrent requests share the new one.
      if (token === used) token = requestToken()
      answer = await send(await token)
    }
    if (answer.status !== 401 && answer.status !== 403) return answer
    throw new SyncFailure('directory_unauthorized', `GET ${path}: status ${answer.status}`)
  }

  return {
    get: (path, query = {}, patience = {}) => get(path, query, { ...limits, ...patience }),
    async getOptional(path) {
      try {
        return await get(path, {}, BRIEF)
      } catch (error) {
        if (isOfReply(error)) return undefined
        throw error
      }
    },
    async close() {
      closing.abort(new SyncFailure('interrupted', 'the client was closed'))
      await Promise.all([directory.close(), tokens?.close()])
    },
  }
}

type Requester = ReturnType<typeof createRequester>

/** Requests a token; the credentials go into the header or, if that is refused, into the body. */
async function issueToken(
  tokens: Requester,
  { token_url, client_id }: Connection,
  secret: string,
  patience: Patience,
): Promise<string> {
  const by = async (way: 'header' | 'body') => {
    const wanted = tokenRequest(client_id ?? '', secret, way)
    const what = 'POST to the token address'
    return await tokens.request({ url: token_url ?? '', what, secret, ...wanted }, patience)
  }
  const first = await by('header')
  return readTokenReply(first.status === 400 || first.status === 401 ? await by('body') : first)
}

/** Requests to one origin, with retries and pauses. */
function createRequester(
  origin: URL,
  reach: Connection,
  signal: AbortSignal,
  { limits, log, resolve, wait = pause }: ClientDependencies,
) {
  try {
    checkLiteralAddress(origin, reach)
  } catch (error) {
    throw new SyncFailure('address_refused', String(error))
  }
  const agent = new Agent({
    connect: { lookup: guardedLookup(origin.protocol, reach, resolve), timeout: limits.connectMs },
  })
  return {
    close: () => agent.destroy(),
    async request(request: Request, patience: Patience): Promise<Answer> {
      let failures = 0
      let slowDowns = 0
      for (;;) {
        const outcome = await exchange(agent, request, limits, signal)
        if ('status' in outcome) return outcome
        const { failure, detail, waitMs } = outcome
        const isSlowDown = failure === 'directory_rate_limited'
        const count = isSlowDown ? (slowDowns += 1) : (failures += 1)
        const ms = waitMs ?? backoffMs(count, limits)
        const isOver = isSlowDown
          ? count > patience.slowDowns || ms > Math.min(patience.slowDownMs, limits.slowDownMs)
          : count >= patience.tries
        if (isOver)
          throw new SyncFailure(failure, `${detail}, ${count} times; the next wait would be ${ms} ms`)
        if (isSlowDown) log.warn({ wait_ms: ms }, 'the directory limits requests, so the sync waits')
        await wait(ms, signal).catch(() => signal.throwIfAborted())
      }
    },
  }
}

const pause = (milliseconds: number, signal: AbortSignal) => sleep(milliseconds, undefined, { signal })

// Doubles with each try; half of it is random, so that clients do not retry together.
function backoffMs(count: number, limits: SyncLimits): number {
  const longest = Math.min(limits.backoffMs * 2 ** (count - 1), limits.slowDownMs)
  return Math.round(longest * (0.5 + Math.random() / 2))
}

async function exchange(
  agent: Agent,
  { url, what, secret, ...init }: Request,
  limits: SyncLimits,
  signal: AbortSignal,
): Promise<Answer | Fault> {
  try {
    const reply = await fetch(url, {
      ...init,
      headers: { 'User-Agent': 'app-rankings-scim', ...init.headers },
      redirect: 'manual',
      dispatcher: agent,
      signal: AbortSignal.any([signal, AbortSignal.timeout(limits.requestMs)]),
    })
    const { status } = reply
    const body = readJson(reply, { what, secret }, limits)
    if (status === 200) return { status, body: await body }
    // Read to its end, so that the connection can be reused.
    const error = await body.catch(() => undefined)
    return assess(status, error, reply.headers.get('retry-after'), what)
  } catch (error) {
    signal.throwIfAborted()
    return describeFault(error, what, secret)
  }
}

function assess(status: number, body: unknown, retryAfter: string | null, what: string): Answer | Fault {
  const waitMs = retryAfterMs(retryAfter ?? undefined)
  const detail = `${what}: status ${status}`
  if (status < 400) throw new SyncFailure('directory_invalid_response', `${detail} instead of 200`)
  if (status === 429 || (status === 503 && waitMs !== undefined)) {
    return { failure: 'directory_rate_limited', detail, waitMs }
  }
  if (status === 408) return { failure: 'directory_unreachable', detail }
  if (status >= 500 && status !== NOT_IMPLEMENTED) return { failure: 'directory_failing', detail }
  return { status, body }
}

function describeFault(error: unknown, what: string, secret: string): Fault {
  const cause = error instanceof TypeError && error.cause instanceof Error ? error.cause : error
  if (cause instanceof SyncFailure) throw cause
  if (cause instanceof AddressRefused) throw new SyncFailure('address_refused', cause.message)
  const code = codeOf(cause)
  const text = `${code ?? ''} ${String(cause)}`
  // A message may quote what the directory sent, such as a certificate.
  const detail = `${what}: ${repeats(text, secret) ? '(the message repeats the token)' : text}`
  return { failure: failureOf(code), detail }
}

function failureOf(code = ''): Failure {
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'directory_unknown_host'
  if (code === 'ECONNREFUSED') return 'directory_connection_refused'
  return TLS_CODE.test(code) ? 'directory_tls' : 'directory_unreachable'
}

const TLS_CODE = /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO|HOSTNAME_MISMATCH)/

/**
 * The JSON of a reply, whatever its Content-Type: directories send `application/scim+json`, `text/json` or none. The
 * event loop gets its turn between the passes over a large one.
 * @throws {SyncFailure} if it is not JSON, repeats the token, or exceeds the limits.
 */
async function readJson(
  reply: Response,
  { what, secret }: Pick<Request, 'what' | 'secret'>,
  limits: SyncLimits,
): Promise<unknown> {
  const text = await readText(reply, what, limits.responseBytes)
  await endOfTurn()
  if (repeats(text, secret)) throw invalid(`${what}: the reply repeats the token`)
  const bounds = { elements: limits.responseElements, depth: limits.responseDepth }
  const exceeded = exceededBound(text, bounds)
  if (exceeded !== undefined) throw tooLarge(`${what}: the reply exceeds the limit of ${exceeded}`)
  await endOfTurn()
  const json = parseJson(text)
  if (json !== undefined) return json
  throw invalid(
    `${what}: ${text.length} characters of ${/^\s*</.test(text) ? 'HTML' : 'text'} instead of JSON`,
  )
}

async function readText({ body, headers }: Response, what: string, most: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body ?? []) {
    length += chunk.byteLength
    if (length > most) throw tooLarge(`${what}: the reply has more than ${most} bytes`)
    chunks.push(chunk)
  }
  const type = headers.get('content-type') ?? ''
  const [, charset = 'utf-8'] = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type) ?? []
  try {
    return new TextDecoder(charset, { fatal: true }).decode(Buffer.concat(chunks))
  } catch {
    throw invalid(`${what}: the reply is not valid in its charset`)
  }
}

function tooLarge(detail: string): SyncFailure {
  return new SyncFailure('directory_too_large', detail)
}

function invalid(detail: string): SyncFailure {
  return new SyncFailure('directory_invalid_response', detail)
}
