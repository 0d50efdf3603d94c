/** Answers a valid chat request, whole or as a stream, from the first provider that serves it. */
import { ApiError } from '../http/errors.ts'
import { sendBody } from '../http/respond.ts'
import type { Log } from '../process/log.ts'
import { isObject, type JsonObject } from '../untrusted/json.ts'
import type { Attempt } from './attempt.ts'
import type { ChatCall, Ending } from './call.ts'
import { ClientStream } from './client-stream.ts'
import { failedChunk, silentChunk } from './completion.ts'
import { AttemptFailure, redacted } from './failures.ts'
import { notServed, type FailedAttempt, type Routing } from './fallback.ts'
import type { ChatMetrics } from './metrics.ts'
import { asCut, asFailure, type ProviderClient } from './provider.ts'
import type { AttemptRecord } from './records.ts'
import { providerBody, type ChatRequest } from './request.ts'

interface AnswerOptions {
  readonly client: ProviderClient
  readonly metrics: ChatMetrics
  readonly log: Log
  /** Writes the usage record of a request, before the last byte of its reply. */
  readonly finish: (call: ChatCall, ending: Ending) => Promise<void>
  /** Milliseconds of silence after which a waiting client gets a chunk without content. */
  readonly silenceMs: number
}

/** An attempt that serves: its reply is whole, or a stream with its first token; and the chunks read so far. */
interface Serving {
  readonly attempt: Attempt
  readonly chunks: readonly JsonObject[]
}

export class Answers {
  readonly #options: AnswerOptions

  constructor(options: AnswerOptions) {
    this.#options = options
  }

  /**
   * Answers a request from its candidates.
   * @throws {ApiError} if none serves it, and nothing was sent.
   */
  async answer(call: ChatCall, request: ChatRequest, routing: Routing): Promise<void> {
    await (request.stream ? this.#stream(call, request, routing) : this.#whole(call, request, routing))
  }

  async #whole(call: ChatCall, request: ChatRequest, routing: Routing): Promise<void> {
    const { attempt, chunks } = await this.#firstServing(call, request, routing)
    this.#ended(call, attempt)
    await this.#options.finish(call, { outcome: 'completed', status: 200, served: attempt })
    // Its numbers are plain: no bigint has to be looked for in a reply of megabytes.
    const body = JSON.stringify({ ...attempt.completion.whole(chunks), ...routerMetadata(call) })
    sendBody(call.reply, 200, 'application/json; charset=utf-8', body)
  }

  async #stream(call: ChatCall, request: ChatRequest, routing: Routing): Promise<void> {
    const { finish, silenceMs } = this.#options
    const [model = ''] = request.models
    let identity = call.identity({ model, provider: { name: 'none' } })
    const stream = new ClientStream(call.reply, silenceMs, () => silentChunk(identity))
    const serving = await this.#firstServing(call, request, routing).catch(async (error: unknown) => {
      stream.stop()
      // As long as nothing was sent, the error can have its own status.
      if (!stream.hasBegun || !(error instanceof ApiError)) throw error
      const { status: code, message, metadata } = error
      await finish(call, { outcome: 'failed', status: code })
      stream.fail(failedChunk(identity, { code, message, ...(metadata && { metadata }) }))
    })
    if (serving === undefined) return
    const { attempt } = serving
    const { candidate, completion } = attempt
    call.reachedFirstToken()
    // A chunk in silence was sent before any provider gave the reply an id.
    identity = completion.fixIdentity(stream.hasBegun ? call.identity(candidate) : undefined)
    await relay(serving, stream)
    const { failure } = completion
    this.#ended(call, attempt, failure)
    await finish(call, { outcome: failure === undefined ? 'completed' : 'cut', status: 200, served: attempt })
    if (failure !== undefined) return stream.fail(failedChunk(identity, cutError(attempt, failure)))
    // As OpenAI's API: usage in a chunk of its own only on request.
    const { stream_options: options } = request.body
    const last = completion.ending(isObject(options) && options['include_usage'] === true)
    Object.assign(last.at(-1) ?? {}, routerMetadata(call))
    stream.end(last.map((chunk) => completion.identified(chunk)))
  }

  /**
   * Tries one provider after another until one serves the request; the caller ends that attempt.
   * @throws {ApiError} if none does.
   */
  async #firstServing(
    call: ChatCall,
    request: ChatRequest,
    { candidates, totalMs }: Routing,
  ): Promise<Serving> {
    const failed: FailedAttempt[] = []
    for (const candidate of candidates) {
      const { model, provider } = candidate
      if (!call.goesOn || call.elapsedMs >= totalMs) break
      const previous = failed.at(-1)
      if (previous !== undefined) this.#options.metrics.fellBack(previous.record)
      provider.breaker.began(performance.now())
      const attempt = call.begin(candidate, totalMs - call.elapsedMs)
      try {
        const body = providerBody(request, provider)
        const chunks = await attempt.serve(this.#options.client, body, request.stream)
        // Another model may be less strict.
        const isLastModel = model === candidates.at(-1)?.model
        if (attempt.completion.isFilteredOut && !isLastModel) throw new AttemptFailure('filtered')
        provider.breaker.succeeded()
        return { attempt, chunks }
      } catch (error) {
        const failure = asFailure(error, attempt.signal)
        failed.push({ failure, record: this.#ended(call, attempt, failure) })
      }
    }
    throw notServed(failed)
  }

  /** Ends an attempt; `failure` if it did not serve, or was cut. */
  #ended(call: ChatCall, attempt: Attempt, failure?: AttemptFailure): AttemptRecord {
    const record = call.ended(attempt, failure)
    this.#options.metrics.attemptFinished(record)
    if (failure === undefined || failure.kind === 'cancelled') return record
    const { breaker, headers } = attempt.candidate.provider
    const { code, detail, cause, retryAfterSeconds } = failure.facts
    if (failure.rule.harmless !== true) breaker.failed(performance.now(), retryAfterSeconds)
    const { model, provider, status, duration_ms: ms } = record
    const facts = { request_id: call.facts.requestId, model, provider, kind: failure.kind, status, code, ms }
    const shown = detail !== undefined && { detail: redacted(detail, headers) }
    this.#options.log.warn({ ...facts, ...shown, ...(cause !== undefined && { err: cause }) }, NOT_SERVED)
    return record
  }
}

const NOT_SERVED = 'provider did not serve'

/** Passes a stream on to the client, to its end. */
async function relay({ attempt, chunks }: Serving, client: ClientStream): Promise<void> {
  const { completion, signal } = attempt
  async function send(some: readonly JsonObject[]): Promise<void> {
    const identified = some.map((chunk) => completion.identified(chunk))
    const drained = client.send(identified, signal)
    if (drained === undefined) return
    // A client that reads slowly must not look like a provider that sends slowly.
    attempt.suspend()
    await drained
    attempt.expectMore()
  }
  try {
    attempt.expectMore()
    await send(chunks)
    while (!completion.isOver) await send(await attempt.read())
  } catch (error) {
    completion.end(asCut(error, signal))
  }
}

/** The attempts, if the caller requests them. */
function routerMetadata({ reply }: ChatCall): JsonObject {
  const metadata = reply.locals.routerMetadata?.()
  return metadata === undefined ? {} : { router_metadata: metadata }
}

function cutError({ candidate }: Attempt, failure: AttemptFailure): JsonObject {
  return {
    code: failure.errorType === 'timeout' ? 408 : 502,
    message: `${candidate.provider.name} (${candidate.model}) ${failure.message}`,
    metadata: { error_type: failure.errorType, provider_name: candidate.provider.name },
  }
}
