/** One chat request from its arrival to its usage record, and its attempts at providers. */
import type { Readable } from 'node:stream'
import type { Request } from 'express'
import type { StoredKey } from '../accounts/keys.ts'
import type { NamedApp, Reply } from '../http/call.ts'
import type { JsonObject } from '../untrusted/json.ts'
import type { Completion } from './completion.ts'
import type { Provider } from './configuration.ts'
import { AttemptFailure } from './failures.ts'
import { asFailure, readChunks, type ProviderClient } from './provider.ts'
import type { ProviderBody } from './request.ts'
import { NO_USAGE } from './usage.ts'

/** One chat request, as the nightly run reads it (CONTRACT 7) and operators do. */
export type UsageRecord = ReturnType<ChatCall['record']>
/** One attempt at a provider, in a usage record. */
export type AttemptRecord = ReturnType<Attempt['end']>

/** How a call ends, unless its client disconnects. */
export type Ending = {
  /** Whole, cut by the provider after the first token, or never served. */
  readonly outcome: 'completed' | 'cut' | 'failed'
  /** HTTP status of the reply. */
  readonly status: number
  /** The attempt that served it, whole or in part. */
  readonly served?: Attempt
  /** From arrival to the first token, in milliseconds. */
  readonly firstTokenMs?: number
}

/** What identifies a reply and its model, in every chunk. */
export type ReplyIdentity = ReturnType<ChatCall['identity']>

/** The recorded status of a client that disconnected before it received one (nginx's 499). */
const STATUS_DISCONNECTED = 499

/** One chat request. It holds neither bodies nor its reply. */
export class ChatCall {
  readonly id: string
  readonly caller: StoredKey
  readonly attempts: AttemptRecord[] = []
  /** The attempt in progress. */
  attempt: Attempt | undefined
  /** False until its body was read. */
  isStream = false
  /** Whether the client disconnected, and whether its attempt was ended: after both no further attempt is made. */
  isDisconnected: boolean
  isCancelled = false
  readonly #app: NamedApp
  readonly #arrivedAt: Date
  readonly #began = performance.now()

  /** Begins the call. */
  constructor({ headers }: Request, reply: Reply, arrivedAt: Date) {
    const { requestId, caller, app } = reply.locals
    if (caller === undefined || app === undefined)
      throw new TypeError('Only an authenticated request of a named app can begin')
    this.id = requestId
    this.caller = caller
    // A client that disconnected during the key look-up sends no further close event.
    this.isDisconnected = reply.closed
    this.#app = app
    this.#arrivedAt = arrivedAt
    const shown = { app_id: app.id, found_by: app.foundBy }
    if (headers['x-router-metadata'] === 'enabled')
      reply.locals.routerMetadata = () => ({ attempts: this.attempts, app: shown })
  }

  /** Milliseconds since it arrived. */
  get elapsedMs(): number {
    return Math.round(performance.now() - this.#began)
  }

  cancel(): void {
    this.isCancelled = true
    this.attempt?.abort(new AttemptFailure('cancelled'))
  }

  /** The identity of its reply as long as the provider gives it no id; `created` is Unix time in seconds. */
  identity(model: string, provider: string) {
    const created = Math.floor(this.#arrivedAt.getTime() / 1000)
    return { id: `gen-${this.id}`, created, model, provider }
  }

  /** Its usage record; `hasStatus`: whether a part of its reply was sent. Times are in milliseconds. */
  record({ outcome, status, served, firstTokenMs }: Ending, hasStatus: boolean) {
    return {
      ts: this.#arrivedAt.toISOString(),
      // Unique over all processes: the pipeline finds duplicates by it.
      request_id: this.id,
      ...this.#app.columns,
      // As counted by the provider that served, whole or in part. Failures do not count in the rankings.
      ...(served?.completion.usage ?? NO_USAGE),
      requests: served === undefined ? 0 : 1,
      model: served?.provider.serves ?? null,
      provider: served?.provider.name ?? null,
      account_id: this.caller.account_id,
      stream: this.isStream,
      status: this.isDisconnected && !hasStatus ? STATUS_DISCONNECTED : status,
      outcome: this.isDisconnected ? 'left' : outcome,
      usage_missing: this.#usageMissing(served),
      first_token_ms: firstTokenMs ?? null,
      duration_ms: this.elapsedMs,
      attempts: this.attempts,
    }
  }

  #usageMissing(served: Attempt | undefined): string | null {
    if (served === undefined) return 'no provider served the request'
    const { failure, usage } = served.completion
    if (usage !== undefined) return null
    if (failure === undefined) return 'the provider reported none'
    if (failure.kind !== 'cancelled') return `the provider ${failure.message}`
    const end = this.isDisconnected ? 'the client disconnected' : 'the service stopped'
    return `${end}, and the reply was not read to its end`
  }
}

/** Wait for the end of the body after [DONE], in milliseconds. */
const ENDING_MS = 1000

/** One try at one provider: its request, its deadlines, and its reply as far as it was read. */
export class Attempt {
  readonly provider: Provider
  readonly completion: Completion
  /** The chunks for the client that were read until it served. */
  readonly begun: JsonObject[] = []
  readonly #controller = new AbortController()
  /** Aborts the attempt; its reason is the failure. */
  readonly signal = this.#controller.signal
  readonly #began = performance.now()
  readonly #total: NodeJS.Timeout
  #silence: NodeJS.Timeout | undefined
  /** Until when keep-alives extend the deadline, in ms of performance.now(). */
  #extendedUntil = Infinity
  #isSuspended = false
  /** HTTP status of the provider; null without a reply. */
  #status: number | null = null
  #body: Readable | undefined
  #chunks: ReturnType<typeof readChunks> | undefined

  /** Begins the attempt; `leftMs` is the remaining time of the request, in milliseconds. */
  constructor(provider: Provider, completion: Completion, leftMs: number) {
    this.provider = provider
    this.completion = completion
    const { total_ms: totalMs } = provider.timeouts
    const late = leftMs < totalMs ? 'outOfTime' : 'timeout'
    const end = () => this.abort(new AttemptFailure(this.#isSuspended ? 'notRead' : late))
    this.#total = setTimeout(end, Math.min(totalMs, leftMs))
  }

  abort(failure: AttemptFailure): void {
    this.#controller.abort(failure)
  }

  /**
   * Posts `body`, and reads the reply: to its end, or a stream up to its first token.
   * @throws AttemptFailure if it is no answer.
   */
  async serve(client: ProviderClient, body: ProviderBody, isStream: boolean): Promise<void> {
    const { completion, provider } = this
    const { first_token_ms, keep_alive_ms } = provider.timeouts
    if (isStream) this.#expectWithin(first_token_ms, keep_alive_ms)
    const reply = await client.post(provider, body, this.signal)
    this.#status = reply.status
    this.#body = reply.body
    this.#chunks = readChunks(reply.body, isStream)
    const isServing = () => completion.isOver || (isStream && completion.isMeaningful)
    while (!isServing()) this.begun.push(...(await this.read()))
    if (completion.failure !== undefined) throw completion.failure
  }

  /** Reads once; returns the chunks for the client, those before an error too. Afterwards the completion may be over. */
  async read(): Promise<readonly JsonObject[]> {
    const { completion } = this
    const { restMs } = completion
    let chunks: readonly JsonObject[] = []
    try {
      const next = await this.#chunks?.next()
      chunks = completion.read(next?.value ?? [])
      if (next?.done !== false) completion.end()
    } catch (error) {
      completion.end(asFailure(error, this.signal, 'cut'))
    }
    if (completion.isOver) return chunks
    if (completion.restMs !== restMs) this.expectMore()
    // After the end of every choice a keep-alive extends nothing.
    else if (restMs === undefined && performance.now() < this.#extendedUntil) this.#silence?.refresh()
    return chunks
  }

  /** From here on the provider may be silent between two parts of a stream, or until its end. */
  expectMore(): void {
    this.#expectWithin(this.completion.restMs ?? this.provider.timeouts.idle_ms)
  }

  /** The stream is not being read, since the client is slow: silence is not the provider's. */
  suspend(): void {
    clearTimeout(this.#silence)
    this.#isSuspended = true
  }

  /** Ends the attempt; returns its record: the status is the provider's, and the error says why it did not serve. */
  end(failure?: AttemptFailure) {
    clearTimeout(this.#total)
    clearTimeout(this.#silence)
    if (failure !== undefined) this.#body?.destroy()
    else this.#drain()
    return {
      model: this.provider.serves,
      provider: this.provider.name,
      status: failure?.facts.status ?? this.#status,
      error_type: failure?.errorType ?? null,
      duration_ms: Math.round(performance.now() - this.#began),
    }
  }

  /** The stream may be silent for `ms`. Keep-alives extend that, to `atMostMs` in all. */
  #expectWithin(ms: number, atMostMs = Infinity): void {
    clearTimeout(this.#silence)
    this.#isSuspended = false
    this.#extendedUntil = performance.now() + atMostMs - ms
    this.#silence = setTimeout(() => this.abort(new AttemptFailure('timeout')), ms)
  }

  /** After [DONE] the rest of the body is read, so that the connection can be reused. */
  #drain(): void {
    const body = this.#body
    if (body === undefined || body.readableEnded || body.closed) return
    const timer = setTimeout(() => body.destroy(), ENDING_MS)
    body.on('error', () => undefined).once('close', () => clearTimeout(timer))
    void this.#chunks?.return(undefined).then(() => body.resume())
  }
}
