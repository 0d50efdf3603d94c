/** Answers a valid chat request, whole or as a stream, and writes its usage record before the last byte. */
import type { Readable } from 'node:stream'
import type { Reply } from '../http/call.ts'
import { ApiError } from '../http/errors.ts'
import { sendBody } from '../http/respond.ts'
import { isObject, parseJson, type JsonObject } from '../untrusted/json.ts'
import { STATUS_DISCONNECTED, type Attempt, type ChatCall, type Ending } from './call.ts'
import { ChunkReader, failedChunk, silentChunk } from './chunks.ts'
import { openClientStream, type ClientStream } from './client-stream.ts'
import {
  isFilteredOut,
  joinChunks,
  readCompletion,
  type Completion,
  type ReplyIdentity,
} from './completion.ts'
import { AttemptFailure, failureOf } from './failures.ts'
import type { Fallback, RoutedCall } from './fallback.ts'
import { asCut, eventsOf, readEvents, readText, type ProviderClient, type ProviderEvent } from './provider.ts'
import type { ChatRequest } from './request.ts'
import { identityFor, providerBody } from './upstream-request.ts'

/** Chunks held until the first token; further empty ones are dropped. */
const HELD_CHUNKS = 64
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

/** Answers a request from its candidates. */
export type Answer = (routed: RoutedCall, request: ChatRequest, reply: Reply) => Promise<void>

/** Answers in one piece. */
export function createWholeAnswer({ client, fallback, finish }: AnswerOptions): Answer {
  return async (routed, request, reply) => {
    const { call } = routed
    const [attempt, completion] = await fallback.firstServing(routed, async (one, isLastModel) => {
      const got = await complete(client, one, { call, request })
      if (!isLastModel && isFilteredOut(got)) throw new AttemptFailure('filtered')
      return got
    })
    fallback.ended(call, attempt)
    const how = call.isDisconnected
      ? ({ outcome: 'left', status: STATUS_DISCONNECTED } as const)
      : ({ outcome: 'completed', status: 200 } as const)
    await finish(call, { ...how, served: attempt.candidate, usage: completion.usage })
    // Its numbers are plain: no bigint has to be looked for in a reply of megabytes.
    const body = JSON.stringify({ ...completion.body, ...routerMetadata(reply) })
    sendBody(reply, 200, 'application/json; charset=utf-8', body)
  }
}

/** Answers as a stream; until its first token another provider can take over. */
export function createStreamAnswer({ client, fallback, finish, silenceMs }: AnswerOptions): Answer {
  async function open(routed: RoutedCall, request: ChatRequest, stream: ClientStream) {
    const { call } = routed
    try {
      return await fallback.firstServing(routed, async (one, isLastModel) => {
        const opened = await openStream(client, one, { call, request })
        if (isLastModel || !opened.reader.isFilteredOut) return opened
        opened.body.destroy()
        throw new AttemptFailure('filtered')
      })
    } catch (error) {
      stream.stop()
      // As long as nothing was sent, the error can have its own status.
      if (!stream.hasBegun() || !(error instanceof ApiError)) throw error
      await finish(call, { outcome: call.isDisconnected ? 'left' : 'failed', status: 200 })
      const { status: code, message, metadata } = error
      stream.fail(
        failedChunk(unservedIdentity(call, request), { code, message, ...(metadata && { metadata }) }),
      )
      return undefined
    }
  }

  return async (routed, request, reply) => {
    const { call } = routed
    let identity = unservedIdentity(call, request)
    const stream = openClientStream(reply, { silenceMs, silentChunk: () => silentChunk(identity) })
    const opened = await open(routed, request, stream)
    if (opened === undefined) return
    const [attempt, { reader }] = opened
    call.reachedFirstToken()
    const { model, provider } = identityFor(call.facts, attempt.candidate)
    // A chunk in silence was sent before any provider gave the reply an id.
    identity = reader.fixIdentity(stream.hasBegun() ? { ...identity, model, provider } : undefined)
    const failure = await relay(opened[1], attempt, stream)
    fallback.ended(call, attempt, failure)
    const status = stream.hasBegun() ? 200 : STATUS_DISCONNECTED
    const outcome = call.isDisconnected ? 'left' : failure === undefined ? 'completed' : 'cut'
    await finish(call, { outcome, status, served: attempt.candidate, usage: reader.usage, failure })
    if (failure !== undefined) return stream.fail(failedChunk(identity, cutError(attempt, failure)))
    const last = reader.ending(wantsUsageChunk(request)).map((chunk) => reader.identified(chunk))
    stream.end([...last.slice(0, -1), { ...last.at(-1), ...routerMetadata(reply) }])
  }
}

/** A call and its request. */
type Asked = Readonly<{ call: ChatCall; request: ChatRequest }>

/** Sends the request to the provider of the attempt, which has its status from then on. */
async function post(client: ProviderClient, attempt: Attempt, request: ChatRequest) {
  const { provider } = attempt.candidate
  const reply = await client.post(provider, providerBody(request, provider), attempt.signal)
  attempt.status = reply.status
  return reply
}

/**
 * Requests a completion; some providers stream without a request for it.
 * @throws {AttemptFailure} if the provider returns none.
 */
async function complete(
  client: ProviderClient,
  attempt: Attempt,
  { call, request }: Asked,
): Promise<Completion> {
  const { status, body } = await post(client, attempt, request)
  const text = await readText(body, attempt.signal)
  const identity = identityFor(call.facts, attempt.candidate)
  const value = parseJson(text)
  if (value !== undefined && !Array.isArray(value)) return readCompletion(value, identity)
  const reader = new ChunkReader(identity)
  const events = eventsOf(text)
  if (events.length === 0) throw failureOf(status, text)
  const chunks = events.map((event) => reader.read(event)).filter((chunk) => chunk !== undefined)
  if (!reader.isWhole) throw new AttemptFailure(reader.isMeaningful ? 'cut' : 'invalidReply')
  return readCompletion(
    joinChunks([...chunks, ...reader.ending()].map((chunk) => reader.identified(chunk))),
    identity,
  )
}

/** A stream that serves: its first token has arrived. */
interface ProviderStream {
  readonly reader: ChunkReader
  /** Chunks read so far. */
  readonly chunks: readonly JsonObject[]
  /** The following events, grouped by read. */
  readonly events: AsyncGenerator<readonly ProviderEvent[], void>
  readonly body: Readable
}

/**
 * Requests a stream and reads it up to its first token.
 * @throws {AttemptFailure} if no token arrives.
 */
async function openStream(
  client: ProviderClient,
  attempt: Attempt,
  { call, request }: Asked,
): Promise<ProviderStream> {
  const { first_token_ms, keep_alive_ms } = attempt.candidate.provider.timeouts
  attempt.expectWithin(first_token_ms, keep_alive_ms)
  const { body } = await post(client, attempt, request)
  const { n } = request.body
  const reader = new ChunkReader(identityFor(call.facts, attempt.candidate), typeof n === 'number' ? n : 1)
  const events = readEvents(body)
  const chunks: JsonObject[] = []
  try {
    while (!reader.isMeaningful) {
      const next = await events.next()
      attempt.progressed()
      for (const event of next.value ?? []) {
        const chunk = reader.read(event)
        if (chunk !== undefined && (chunks.length < HELD_CHUNKS || reader.isMeaningful)) chunks.push(chunk)
      }
      // After [DONE] the connection may stay open.
      const isOver = next.done === true || reader.isDone
      if (isOver && !reader.isMeaningful) throw new AttemptFailure('cut')
    }
    expectMore(reader, attempt)
    return { reader, chunks, events, body }
  } catch (error) {
    body.destroy()
    throw asCut(error, attempt.signal)
  }
}

/** Sets how long the provider may be silent. */
function expectMore(reader: ChunkReader, attempt: Attempt): void {
  attempt.expectWithin(reader.restMs ?? attempt.candidate.provider.timeouts.idle_ms)
}

/**
 * Passes a stream on to the client.
 * @returns the failure if the provider did not finish the stream.
 */
async function relay(
  stream: ProviderStream,
  attempt: Attempt,
  client: ClientStream,
): Promise<AttemptFailure | undefined> {
  const { reader, chunks, events, body } = stream

  /** A client that reads slowly must not look like a provider that sends slowly. */
  async function send(some: readonly JsonObject[]): Promise<void> {
    const drained = client.send(
      some.map((chunk) => reader.identified(chunk)),
      attempt.signal,
    )
    if (drained === undefined) return
    attempt.suspend()
    await drained
    expectMore(reader, attempt)
  }

  /** Reads once, and sends the chunks; those before an error too. */
  async function passOn(some: readonly ProviderEvent[]): Promise<void> {
    const restMs = reader.restMs
    const read: JsonObject[] = []
    try {
      for (const event of some) {
        const chunk = reader.read(event)
        if (chunk !== undefined) read.push(chunk)
      }
    } finally {
      if (reader.restMs !== restMs) expectMore(reader, attempt)
      // After the end of every choice a keep-alive extends nothing.
      else if (restMs === undefined) attempt.progressed()
      await send(read)
    }
  }

  try {
    await send(chunks)
    while (!reader.isDone) {
      const next = await events.next()
      if (next.done === true) break
      await passOn(next.value)
    }
  } catch (error) {
    body.destroy()
    // A break after the end of every choice loses nothing of the answer.
    return reader.isWhole ? undefined : asCut(error, attempt.signal)
  }
  void readRest(stream)
  return reader.isWhole ? undefined : new AttemptFailure('cut')
}

/** Reads to the end of the body after [DONE], so that the connection can be reused. */
async function readRest({ events, body }: ProviderStream): Promise<void> {
  await events.return()
  if (body.closed) return
  const timer = setTimeout(() => body.destroy(), ENDING_MS)
  body.on('error', () => undefined).once('close', () => clearTimeout(timer))
  body.resume()
}

/** The attempts, if the caller requests them. */
function routerMetadata(reply: Reply): JsonObject {
  const metadata = reply.locals.routerMetadata?.()
  return metadata === undefined ? {} : { router_metadata: metadata }
}

/** As OpenAI's API: usage in a chunk of its own only on request. */
function wantsUsageChunk({ body: { stream_options: options } }: ChatRequest): boolean {
  return isObject(options) && options['include_usage'] === true
}

function unservedIdentity({ facts }: ChatCall, { models: [model = ''] }: ChatRequest): ReplyIdentity {
  return identityFor(facts, { model, provider: { name: 'none' } })
}

function cutError({ candidate }: Attempt, failure: AttemptFailure): JsonObject {
  return {
    code: failure.errorType === 'timeout' ? 408 : 502,
    message: `${candidate.provider.name} (${candidate.model}) ${failure.message}`,
    metadata: { error_type: failure.errorType, provider_name: candidate.provider.name },
  }
}
