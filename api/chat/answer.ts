/** Answers a valid chat request, whole or as a stream, and writes its usage record before the last byte. */
import type { Readable } from 'node:stream'
import type { Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import { sendBody } from '../http/respond.ts'
import { isObject, type JsonObject } from '../untrusted/json.ts'
import { STATUS_DISCONNECTED, type Attempt, type ChatCall, type Ending } from './call.ts'
import { readChunks, REPLY_CHARACTERS } from './chunks.ts'
import { ClientStream } from './client-stream.ts'
import { Completion, failedChunk, silentChunk, type ReplyIdentity } from './completion.ts'
import { AttemptFailure } from './failures.ts'
import type { Fallback, RoutedCall } from './fallback.ts'
import { asCut, type ProviderClient } from './provider.ts'
import { providerBody, type ChatRequest } from './request.ts'

/** Chunks without content that are passed on before the first token. */
const SILENT_CHUNKS = 64
/** Wait for the end of the body after [DONE], in milliseconds. */
const ENDING_MS = 1000

interface AnswerOptions {
  readonly client: ProviderClient
  readonly fallback: Fallback
  /** Writes the usage record of a request. */
  readonly finish: (call: ChatCall, ending: Ending) => Promise<void>
  /** Milliseconds of silence after which a waiting client gets a chunk without content. */
  readonly silenceMs: number
}

/** An attempt that serves: its reply is whole, or a stream with its first token. */
interface Serving {
  readonly attempt: Attempt
  readonly reply: ProviderReply
  /** What was read of it. */
  readonly chunks: readonly JsonObject[]
}

export class Answers {
  readonly #options: AnswerOptions

  constructor(options: AnswerOptions) {
    this.#options = options
  }

  /** Answers a request from its candidates. */
  async answer(routed: RoutedCall, request: ChatRequest, reply: Reply): Promise<void> {
    await (request.stream ? this.#stream(routed, request, reply) : this.#whole(routed, request, reply))
  }

  /**
   * Sends the request of an attempt, and reads the reply: to its end, or a stream up to its first token.
   * @throws {AttemptFailure} if it is no answer.
   */
  async #serve(call: ChatCall, request: ChatRequest, attempt: Attempt): Promise<Serving> {
    const { provider } = attempt.candidate
    const { first_token_ms, keep_alive_ms } = provider.timeouts
    if (request.stream) attempt.expectWithin(first_token_ms, keep_alive_ms)
    const { status, body } = await this.#options.client.post(
      provider,
      providerBody(request, provider),
      attempt.signal,
    )
    attempt.status = status
    const completion = new Completion(identityFor(call, attempt.candidate), request.body['n'])
    const reply = new ProviderReply(completion, body, attempt, request.stream ? Infinity : REPLY_CHARACTERS)
    const chunks: JsonObject[] = []
    while (!completion.isOver && !(request.stream && completion.isMeaningful))
      chunks.push(...(await reply.read()))
    if (completion.failure !== undefined) throw completion.failure
    return { attempt, reply, chunks }
  }

  /** The first attempt that serves; content that a filter held back serves only if no other model is left. */
  async #firstServing(routed: RoutedCall, request: ChatRequest): Promise<Serving> {
    return await this.#options.fallback.firstServing(routed, async (attempt, isLastModel) => {
      const serving = await this.#serve(routed.call, request, attempt)
      if (isLastModel || !serving.reply.completion.isFilteredOut) return serving
      serving.reply.cancel()
      throw new AttemptFailure('filtered')
    })
  }

  async #whole(routed: RoutedCall, request: ChatRequest, reply: Reply): Promise<void> {
    const { call } = routed
    const { fallback, finish } = this.#options
    const { attempt, reply: provided, chunks } = await this.#firstServing(routed, request)
    const { completion } = provided
    fallback.ended(call, attempt)
    const how = call.isDisconnected
      ? ({ outcome: 'left', status: STATUS_DISCONNECTED } as const)
      : ({ outcome: 'completed', status: 200 } as const)
    await finish(call, { ...how, served: attempt.candidate, usage: completion.usage })
    // Its numbers are plain: no bigint has to be looked for in a reply of megabytes.
    const body = JSON.stringify({ ...completion.whole(chunks), ...routerMetadata(reply) })
    sendBody(reply, 200, 'application/json; charset=utf-8', body)
  }

  async #stream(routed: RoutedCall, request: ChatRequest, reply: Reply): Promise<void> {
    const { call } = routed
    const { fallback, finish, silenceMs } = this.#options
    const [model = ''] = request.models
    let identity = identityFor(call, { model, provider: { name: 'none' } })
    const stream = new ClientStream(reply, silenceMs, () => silentChunk(identity))
    const serving = await this.#firstServing(routed, request).catch(async (error: unknown) => {
      stream.stop()
      // As long as nothing was sent, the error can have its own status.
      if (!stream.hasBegun || !(error instanceof ApiError)) throw error
      await finish(call, { outcome: call.isDisconnected ? 'left' : 'failed', status: 200 })
      const { status: code, message, metadata } = error
      stream.fail(failedChunk(identity, { code, message, ...(metadata && { metadata }) }))
    })
    if (serving === undefined) return
    const { attempt, reply: provided } = serving
    const { completion } = provided
    call.reachedFirstToken()
    const { provider } = attempt.candidate
    // A chunk in silence was sent before any provider gave the reply an id.
    const sent = { ...identity, model: attempt.candidate.model, provider: provider.name }
    identity = completion.fixIdentity(stream.hasBegun ? sent : undefined)
    await relay(serving, stream)
    const { failure, usage } = completion
    fallback.ended(call, attempt, failure)
    const status = stream.hasBegun ? 200 : STATUS_DISCONNECTED
    const outcome = call.isDisconnected ? 'left' : failure === undefined ? 'completed' : 'cut'
    await finish(call, { outcome, status, served: attempt.candidate, usage, failure })
    if (failure !== undefined) return stream.fail(failedChunk(identity, cutError(attempt, failure)))
    // As OpenAI's API: usage in a chunk of its own only on request.
    const { stream_options: options } = request.body
    const last = completion.ending(isObject(options) && options['include_usage'] === true)
    Object.assign(last.at(-1) ?? {}, routerMetadata(reply))
    stream.end(last.map((chunk) => completion.identified(chunk)))
  }
}

/** The reply to one attempt: its body, read within the attempt's deadlines. */
class ProviderReply {
  readonly completion: Completion
  readonly #body: Readable
  readonly #attempt: Attempt
  readonly #chunks: ReturnType<typeof readChunks>
  /** Chunks without content so far. */
  #silent = 0

  constructor(completion: Completion, body: Readable, attempt: Attempt, eventsAtMost: number) {
    this.completion = completion
    this.#body = body
    this.#attempt = attempt
    this.#chunks = readChunks(body, eventsAtMost)
  }

  /** Reads once; returns the chunks for the client, those before an error too. Afterwards the completion may be over. */
  async read(): Promise<readonly JsonObject[]> {
    const { completion } = this
    const { restMs } = completion
    const chunks: JsonObject[] = []
    try {
      const { done, value } = await this.#chunks.next()
      for (const one of value ?? []) {
        const chunk = completion.read(one)
        if (chunk === undefined || (!completion.isMeaningful && this.#silent++ >= SILENT_CHUNKS)) continue
        chunks.push(chunk)
      }
      if (done === true) completion.end()
    } catch (error) {
      completion.end(asCut(error, this.#attempt.signal))
    }
    if (completion.isOver) this.#close()
    else if (completion.restMs !== restMs) this.expectMore()
    // After the end of every choice a keep-alive extends nothing.
    else if (restMs === undefined) this.#attempt.progressed()
    return chunks
  }

  /** Sets how long the provider may be silent. */
  expectMore(): void {
    const { idle_ms } = this.#attempt.candidate.provider.timeouts
    this.#attempt.expectWithin(this.completion.restMs ?? idle_ms)
  }

  cancel(): void {
    this.#body.destroy()
  }

  /** After [DONE] the rest of the body is read, so that the connection can be reused. */
  #close(): void {
    if (this.#body.readableEnded || this.#body.closed) return
    if (this.completion.failure !== undefined) return this.cancel()
    const timer = setTimeout(() => this.cancel(), ENDING_MS)
    this.#body.on('error', () => undefined).once('close', () => clearTimeout(timer))
    void this.#chunks.return().then(() => this.#body.resume())
  }
}

/** Passes a stream on to the client, to its end. */
async function relay({ attempt, reply, chunks }: Serving, client: ClientStream): Promise<void> {
  const { completion } = reply
  async function send(some: readonly JsonObject[]): Promise<void> {
    const identified = some.map((chunk) => completion.identified(chunk))
    const drained = client.send(identified, attempt.signal)
    if (drained === undefined) return
    // A client that reads slowly must not look like a provider that sends slowly.
    attempt.suspend()
    await drained
    reply.expectMore()
  }
  try {
    reply.expectMore()
    await send(chunks)
    while (!completion.isOver) await send(await reply.read())
  } catch (error) {
    completion.end(asCut(error, attempt.signal))
    reply.cancel()
  }
}

/** The attempts, if the caller requests them. */
function routerMetadata(reply: Reply): JsonObject {
  const metadata = reply.locals.routerMetadata?.()
  return metadata === undefined ? {} : { router_metadata: metadata }
}

/** The identity of a reply before its provider gives one. */
function identityFor(
  { facts: { requestId, arrivedAt } }: ChatCall,
  { model, provider }: { readonly model: string; readonly provider: { readonly name: string } },
): ReplyIdentity {
  const created = Math.floor(arrivedAt.getTime() / 1000)
  return { id: `gen-${requestId}`, created, model, provider: provider.name }
}

function cutError({ candidate }: Attempt, failure: AttemptFailure): JsonObject {
  return {
    code: failure.errorType === 'timeout' ? 408 : 502,
    message: `${candidate.provider.name} (${candidate.model}) ${failure.message}`,
    metadata: { error_type: failure.errorType, provider_name: candidate.provider.name },
  }
}
