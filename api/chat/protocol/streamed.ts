/** A reply as a stream, from one attempt: opened up to its first token, then passed on. */
import { isObject, type JsonObject } from '../../untrusted/json.ts'
import type { Attempt } from '../routing/attempt.ts'
import { ChunkReader, eventsOf } from './chunks.ts'
import { readEvents, type EventStream } from './events.ts'
import { AttemptFailure } from '../routing/failure.ts'
import { asFailure, readJsonReply, type Upstream, type UpstreamReply } from './upstream.ts'
import type { Asked } from './whole.ts'

/** Chunks kept until the first token; what comes beyond says nothing, and is left out. */
const KEPT_CHUNKS = 64
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i
const ENDING_MS = 1000

/** A stream that serves: its first token is here. */
export interface OpenStream {
  readonly reader: ChunkReader
  /** What was read so far. */
  readonly chunks: readonly JsonObject[]
  /** The events that follow, those of one read together. */
  readonly events: AsyncGenerator<readonly string[], void>
  readonly body: UpstreamReply['body']
}

/**
 * Asks for a stream and reads it up to its first token. Until then nothing has gone out, so another provider can
 * still take its place.
 * @throws {AttemptFailure} when there is no such token.
 */
export async function openStream(upstream: Upstream, attempt: Attempt, asked: Asked): Promise<OpenStream> {
  const { upstream: provider } = attempt.target
  attempt.expectWithin(provider.timeouts.firstTokenMs)
  const reply = await upstream.post(provider, asked.body, attempt.signal)
  attempt.answered(reply.statusCode)
  const reader = new ChunkReader(asked.answerer)
  const events = eventsIn(reply, attempt.signal)
  try {
    const chunks = await readToFirstToken(reader, events)
    if (!asked.isLastModel && reader.isFilteredOut) throw new AttemptFailure('filtered', { status: 200 })
    attempt.expectWithin(provider.timeouts.idleMs)
    return { reader, chunks, events, body: reply.body }
  } catch (error) {
    reply.body.destroy()
    throw asCut(error, attempt.signal)
  }
}

/** The events of a reply; a provider that does not stream makes a stream of one. */
async function* eventsIn(reply: UpstreamReply, signal: AbortSignal): AsyncGenerator<readonly string[], void> {
  if (!JSON_TYPE.test(String(reply.headers['content-type']))) return yield* readEvents(reply.body)
  const completion = await readJsonReply(reply, signal)
  if (!isObject(completion)) throw new AttemptFailure('invalidReply', { status: 200 })
  yield eventsOf(completion)
}

async function readToFirstToken(reader: ChunkReader, events: OpenStream['events']): Promise<JsonObject[]> {
  const kept: JsonObject[] = []
  while (!reader.isMeaningful) {
    const next = await events.next()
    for (const data of next.value ?? []) {
      const chunk = reader.read(data)
      if (chunk !== undefined && (kept.length < KEPT_CHUNKS || reader.isMeaningful)) kept.push(chunk)
    }
    // After [DONE] the connection may stay open.
    const isOver = next.done === true || reader.isDone
    if (isOver && !reader.isMeaningful) throw new AttemptFailure('cut', { status: 200 })
  }
  return kept
}

/**
 * Passes a stream on to the client.
 * @returns the failure where the provider did not bring it to its end.
 */
export async function relay(
  stream: OpenStream,
  attempt: Attempt,
  client: EventStream,
): Promise<AttemptFailure | undefined> {
  const { reader, body } = stream
  try {
    await passOn(stream, attempt, client)
  } catch (error) {
    body.destroy()
    // What breaks after the end of every choice takes nothing from the answer.
    return reader.isWhole ? undefined : asCut(error, attempt.signal)
  }
  void readEnding(stream)
  return reader.isWhole ? undefined : new AttemptFailure('cut', { status: 200 })
}

async function passOn(
  { reader, chunks, events }: OpenStream,
  attempt: Attempt,
  client: EventStream,
): Promise<void> {
  await sendPaced(client, chunks, attempt)
  while (!reader.isDone) {
    const next = await events.next()
    if (next.done === true) return
    attempt.progressed()
    const { read, fault } = readAll(reader, next.value)
    await sendPaced(client, read, attempt)
    if (fault !== undefined) throw fault
  }
}

/** The connection can be used again once what follows [DONE] was read, which is nothing, and comes at once. */
async function readEnding({ events, body }: OpenStream): Promise<void> {
  const timer = setTimeout(() => body.destroy(), ENDING_MS)
  try {
    let isOver = false
    while (!isOver) isOver = (await events.next()).done === true
  } catch {
    body.destroy()
  }
  clearTimeout(timer)
}

/** What was said before an error still goes out. */
function readAll(
  reader: ChunkReader,
  events: readonly string[],
): { readonly read: readonly JsonObject[]; readonly fault?: unknown } {
  const read: JsonObject[] = []
  try {
    for (const data of events) {
      const chunk = reader.read(data)
      if (chunk !== undefined) read.push(chunk)
    }
    return { read }
  } catch (fault) {
    return { read, fault }
  }
}

/** A client that reads slowly must not look like a provider that sends slowly. */
async function sendPaced(
  client: EventStream,
  chunks: readonly JsonObject[],
  attempt: Attempt,
): Promise<void> {
  const drained = client.send(chunks, attempt.signal)
  if (drained === undefined) return
  attempt.suspend()
  await drained
  attempt.expectWithin(attempt.target.upstream.timeouts.idleMs)
}

/** A connection that breaks once the reply has begun cuts the reply. */
function asCut(error: unknown, signal: AbortSignal): AttemptFailure {
  const failure = asFailure(error, signal)
  return failure.kind === 'connection' ? new AttemptFailure('cut', { status: 200, cause: error }) : failure
}
