/** Answers a valid chat request, whole or as a stream, from the first provider that serves it. */
import { sendBody, type Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import type { Log } from '../process/log.ts'
import { isObject, type JsonObject } from '../untrusted/json.ts'
import { Attempt, type ChatCall, type Ending, type ReplyIdentity } from './call.ts'
import { Completion } from './completion.ts'
import { AttemptFailure, redacted } from './failures.ts'
import { noteBegin, noteFailure, noteSuccess, notServed, type Routing } from './fallback.ts'
import { asFailure, type ProviderClient } from './provider.ts'
import { providerBody, type ChatRequest } from './request.ts'

type Dependencies = {
  readonly client: ProviderClient
  readonly log: Log
  /** Milliseconds of silence after which a waiting client gets a chunk without content. */
  readonly silenceMs: number
}

/** A call with its request, the candidates for it, and its reply. */
type RoutedCall = Routing & {
  readonly call: ChatCall
  readonly request: ChatRequest
  readonly reply: Reply
}

/** The ending of a call, and what sends the last part of its reply once the usage record is written. */
export type Answered = Ending & { readonly sendLast: () => void }

/**
 * Answers a call from its candidates.
 * @throws ApiError if none serves it, as long as nothing was sent; later the reply ends with the error.
 */
export function answerCall(routed: RoutedCall, dependencies: Dependencies): Promise<Answered> {
  return routed.request.stream ? answerStream(routed, dependencies) : answerWhole(routed, dependencies)
}

async function answerWhole(routed: RoutedCall, dependencies: Dependencies): Promise<Answered> {
  const { call, reply } = routed
  const served = await firstServing(routed, dependencies)
  endAttempt(call, served, dependencies)
  const { provider, completion, begun } = served
  const sendLast = () => {
    const identity = { ...call.identity(provider.serves, provider.name), ...completion.sentIdentity }
    // Its numbers are plain: no bigint has to be looked for in a reply of megabytes.
    const body = JSON.stringify({ ...identity, ...completion.whole(begun), ...routerMetadata(reply) })
    sendBody(reply, 200, 'application/json; charset=utf-8', body)
  }
  return { outcome: 'completed', status: 200, served, sendLast }
}

async function answerStream(routed: RoutedCall, dependencies: Dependencies): Promise<Answered> {
  const { call, request, reply } = routed
  const [model = ''] = request.models
  const stream = new ClientStream(reply, dependencies.silenceMs, call.identity(model, 'none'))
  let served: Attempt
  try {
    served = await firstServing(routed, dependencies)
  } catch (error) {
    stream.stop()
    if (!stream.hasBegun || !(error instanceof ApiError)) throw error
    const { status: code, message, metadata } = error
    return { outcome: 'failed', status: 200, sendLast: () => stream.fail({ code, message, metadata }) }
  }
  const { provider, completion } = served
  const firstTokenMs = call.elapsedMs
  // A chunk in silence was sent before any provider gave the reply an id.
  const identity = call.identity(provider.serves, provider.name)
  stream.identity = { ...identity, ...(!stream.hasBegun && completion.sentIdentity) }
  await relay(served, stream)
  const { failure } = completion
  endAttempt(call, served, dependencies, failure)
  const sendLast = () => {
    if (failure !== undefined) return stream.fail(cutError(served, failure))
    // As OpenAI's API: usage in a chunk of its own only on request.
    const { stream_options: options } = request.fields
    const last = completion.ending(isObject(options) && options['include_usage'] === true)
    Object.assign(last.at(-1) ?? {}, routerMetadata(reply))
    stream.end(last)
  }
  const outcome = failure === undefined ? 'completed' : 'cut'
  return { outcome, status: 200, served, firstTokenMs, sendLast }
}

/**
 * Tries one provider after another until one serves the request; the caller ends that attempt.
 * @throws ApiError if none does.
 */
async function firstServing(
  { call, request, candidates, totalMs }: RoutedCall,
  dependencies: Dependencies,
): Promise<Attempt> {
  const failures: AttemptFailure[] = []
  for (const provider of candidates) {
    if (call.isDisconnected || call.isCancelled || call.elapsedMs >= totalMs) break
    noteBegin(provider)
    const attempt = new Attempt(provider, new Completion(request.fields['n']), totalMs - call.elapsedMs)
    call.attempt = attempt
    try {
      await attempt.serve(dependencies.client, providerBody(request, provider), request.stream)
      const isLastModel = provider.serves === candidates.at(-1)?.serves
      if (attempt.completion.isFilteredOut && !isLastModel) throw new AttemptFailure('filtered')
      noteSuccess(provider)
      return attempt
    } catch (error) {
      const failure = asFailure(error, attempt.signal)
      failures.push(failure)
      endAttempt(call, attempt, dependencies, failure)
    }
  }
  throw notServed(call.attempts, failures)
}

/** Ends the attempt in progress; `failure` if it did not serve, or was cut. */
function endAttempt(call: ChatCall, attempt: Attempt, { log }: Dependencies, failure?: AttemptFailure): void {
  const record = attempt.end(failure)
  call.attempt = undefined
  call.attempts.push(record)
  if (failure === undefined || failure.kind === 'cancelled') return
  const { code, detail, cause: err, retryAfterSeconds } = failure.facts
  if (failure.rule.harmless !== true) noteFailure(attempt.provider, retryAfterSeconds)
  const { model, provider, status, duration_ms: ms } = record
  const facts = { request_id: call.id, model, provider, kind: failure.kind, status, code, ms }
  const said = detail && redacted(detail, attempt.provider.headers)
  log.warn({ ...facts, detail: said, err }, 'provider did not serve')
}

/** Passes a stream on to the client, to its end. */
async function relay(attempt: Attempt, client: ClientStream): Promise<void> {
  const { completion, signal } = attempt
  try {
    attempt.expectMore()
    for (let chunks: readonly JsonObject[] = attempt.begun.splice(0); ; chunks = await attempt.read()) {
      const drained = client.send(chunks, signal)
      if (drained !== undefined) {
        // A client that reads slowly must not look like a provider that sends slowly.
        attempt.suspend()
        await drained
        attempt.expectMore()
      }
      if (completion.isOver) return
    }
  } catch (error) {
    completion.end(asFailure(error, signal, 'cut'))
  }
}

/** The attempts, if the caller requests them; otherwise undefined, which JSON leaves out. */
function routerMetadata(reply: Reply): JsonObject {
  return { router_metadata: reply.locals.routerMetadata?.() }
}

function cutError({ provider: { name, serves } }: Attempt, failure: AttemptFailure): JsonObject {
  return {
    code: failure.errorType === 'timeout' ? 408 : 502,
    message: `${name} (${serves}) ${failure.message}`,
    metadata: { error_type: failure.errorType, provider_name: name },
  }
}

/** Time for a client to read the last chunk: some discard what they have not read of a connection that breaks. */
const LAST_MS = 250

/**
 * The reply as a stream. Its head is sent with the first chunk, so that an earlier error can have its own status. In
 * silence a chunk without content keeps clients and proxies connected: comments end the streams of some clients.
 */
class ClientStream {
  /** Stands in every chunk. */
  identity: ReplyIdentity
  readonly #reply: Reply
  readonly #timer: NodeJS.Timeout

  /** After `silenceMs` without a chunk the client gets one without content. */
  constructor(reply: Reply, silenceMs: number, identity: ReplyIdentity) {
    this.identity = identity
    this.#reply = reply
    const silentChunk = { choices: [{ index: 0, delta: {}, finish_reason: null }] }
    this.#timer = setInterval(() => {
      if (!reply.writableNeedDrain) this.#write(this.#textOf([silentChunk]))
    }, silenceMs).unref()
    reply.once('close', () => this.stop())
  }

  /** Whether anything was sent: then the status is fixed. */
  get hasBegun(): boolean {
    return this.#reply.headersSent
  }

  /**
   * Sends these chunks together. Returns a promise if the client reads slowly; it rejects with the reason of `signal`
   * if that ends the wait.
   */
  send(chunks: readonly JsonObject[], signal: AbortSignal): Promise<void> | undefined {
    const isTaken = chunks.length === 0 || this.#write(this.#textOf(chunks))
    return isTaken ? undefined : untilDrained(this.#reply, signal)
  }

  /** Sends the last chunks and [DONE], and ends the reply. */
  end(chunks: readonly JsonObject[]): void {
    this.stop()
    this.#write(`${this.#textOf(chunks)}data: [DONE]\n\n`)
    this.#reply.end()
  }

  /** Sends a chunk with the error. The last HTTP chunk stays away, so that no client takes the stream for whole. */
  fail(error: JsonObject): void {
    this.stop()
    if (this.#reply.writableNeedDrain) return void this.#reply.destroy()
    // Some clients look for the error in the first key.
    const chunk = { choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }] }
    const text = this.#textOf([chunk], { error })
    this.#write(text, () => setTimeout(() => this.#reply.destroy(), LAST_MS).unref())
  }

  /** Sends nothing more by itself. */
  stop(): void {
    clearInterval(this.#timer)
  }

  #textOf(chunks: readonly JsonObject[], first: JsonObject = {}): string {
    const head = { ...first, ...this.identity, object: 'chat.completion.chunk' }
    return chunks.map((chunk) => `data: ${JSON.stringify({ ...head, ...chunk })}\n\n`).join('')
  }

  /** Returns whether the client reads fast enough. */
  #write(text: string, onWritten?: () => void): boolean {
    const reply = this.#reply
    if (reply.destroyed) return true
    const type = 'text/event-stream; charset=utf-8'
    if (!reply.headersSent) reply.status(200).set({ 'Content-Type': type, 'X-Accel-Buffering': 'no' })
    this.#timer.refresh()
    return reply.write(text, onWritten)
  }
}

async function untilDrained(reply: Reply, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const goOn = () => resolve()
  reply.once('drain', goOn).once('close', goOn)
  signal.addEventListener('abort', goOn)
  if (!signal.aborted) await promise
  reply.off('drain', goOn).off('close', goOn)
  signal.removeEventListener('abort', goOn)
  signal.throwIfAborted()
}
