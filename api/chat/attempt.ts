/** One try at one provider: its request, its deadlines, and its reply as far as it was read. */
import type { Readable } from 'node:stream'
import type { JsonObject } from '../untrusted/json.ts'
import type { Completion } from './completion.ts'
import type { Provider } from './configuration.ts'
import { AttemptFailure } from './failures.ts'
import { asCut, readChunks, type ProviderClient } from './provider.ts'
import type { AttemptRecord } from './records.ts'

/** A model, by its name in the configuration, and one of its providers. */
export interface Candidate {
  readonly model: string
  readonly provider: Provider
}

/** Wait for the end of the body after [DONE], in milliseconds. */
const ENDING_MS = 1000

export class Attempt {
  readonly candidate: Candidate
  readonly completion: Completion
  readonly #controller = new AbortController()
  readonly #began = performance.now()
  readonly #total: NodeJS.Timeout
  #silence: NodeJS.Timeout | undefined
  /** Until when keep-alives extend the deadline. */
  #extendedUntil = Infinity
  #isSuspended = false
  /** HTTP status of the provider; null without a reply. */
  #status: number | null = null
  #body: Readable | undefined
  #chunks: ReturnType<typeof readChunks> | undefined

  /** Begins the attempt; `leftMs` is the remaining time of the request. */
  constructor(candidate: Candidate, completion: Completion, leftMs: number) {
    this.candidate = candidate
    this.completion = completion
    const { total_ms: totalMs } = candidate.provider.timeouts
    const late = leftMs < totalMs ? 'outOfTime' : 'timeout'
    const end = () => this.abort(new AttemptFailure(this.#isSuspended ? 'notRead' : late))
    this.#total = setTimeout(end, Math.min(totalMs, leftMs))
  }

  /** Aborts the attempt; its reason is the failure. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(failure: AttemptFailure): void {
    this.#controller.abort(failure)
  }

  /**
   * Posts `body`, and reads the reply: to its end, or a stream up to its first token. Returns what was read.
   * @throws {AttemptFailure} if it is no answer.
   */
  async serve(client: ProviderClient, body: string, isStream: boolean): Promise<readonly JsonObject[]> {
    const { completion } = this
    const { provider } = this.candidate
    const { first_token_ms, keep_alive_ms } = provider.timeouts
    if (isStream) this.#expectWithin(first_token_ms, keep_alive_ms)
    const reply = await client.post(provider, body, this.signal)
    this.#status = reply.status
    this.#body = reply.body
    this.#chunks = readChunks(reply.body, isStream)
    const chunks: JsonObject[] = []
    const isServing = () => completion.isOver || (isStream && completion.isMeaningful)
    while (!isServing()) chunks.push(...(await this.read()))
    if (completion.failure !== undefined) throw completion.failure
    return chunks
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
      completion.end(asCut(error, this.signal))
    }
    if (completion.restMs !== restMs) this.expectMore()
    // After the end of every choice a keep-alive extends nothing.
    else if (restMs === undefined && performance.now() < this.#extendedUntil) this.#silence?.refresh()
    return chunks
  }

  /** From here on the provider may be silent between two parts of a stream, or until its end. */
  expectMore(): void {
    this.#expectWithin(this.completion.restMs ?? this.candidate.provider.timeouts.idle_ms)
  }

  /** The stream is not being read, since the client is slow: silence is not the provider's. */
  suspend(): void {
    clearTimeout(this.#silence)
    this.#isSuspended = true
  }

  /** Ends the attempt; returns its record. */
  end(failure?: AttemptFailure): AttemptRecord {
    clearTimeout(this.#total)
    clearTimeout(this.#silence)
    if (failure !== undefined) this.#body?.destroy()
    else this.#drain()
    const { model, provider } = this.candidate
    return {
      model,
      provider: provider.name,
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
    void this.#chunks?.return().then(() => body.resume())
  }
}
