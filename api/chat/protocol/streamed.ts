/** Streams the reply of one attempt: opens it up to its first token, then passes it on. */
import type { Readable } from 'node:stream'
import type { JsonObject } from '../../untrusted/json.ts'
import type { Attempt } from '../routing/attempt.ts'
import { AttemptFailure } from '../routing/failure.ts'
import { readEvents, type ProviderEvent } from '../upstream/events.ts'
import { asCut } from '../upstream/reply-body.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { ChunkReader } from './chunks.ts'
import type { EventStream } from './event-stream.ts'
import type { UpstreamRequest } from './whole.ts'

/** Chunks held until the first token; further empty ones are dropped. */
const HELD_CHUNKS = 64
/** Wait for the usage once every choice is over: it follows at once, or never. */
const GRACE_MS = 1000
const ENDING_MS = 1000

/** A stream that serves: its first token has arrived. */
export interface OpenStream {
  readonly reader: ChunkReader
  /** Chunks read so far. */
  readonly chunks: readonly JsonObject[]
  /** The following events, grouped by read. */
  readonly events: AsyncGenerator<readonly ProviderEvent[], void>
  readonly body: Readable
}

/**
 * Requests a stream and reads it up to its first token. Nothing is sent until then, so another provider can take over.
 * @throws {AttemptFailure} if no token arrives.
 */
export async function openStream(
  upstream: Upstream,
  attempt: Attempt,
  request: UpstreamRequest,
): Promise<OpenStream> {
  const { upstream: provider } = attempt.target
  const { firstTokenMs, keepAliveMs } = provider.timeouts
  attempt.expectWithin(firstTokenMs, keepAliveMs)
  const reply = await upstream.post(provider, request.body, attempt.signal)
  attempt.answered(reply.statusCode)
  const reader = new ChunkReader(request.answerer, request.choices)
  const events = readEvents(reply.body)
  try {
    const chunks = await readToFirstToken(reader, events, attempt)
    if (!request.isLastModel && reader.isFilteredOut) throw new AttemptFailure('filtered')
    expectMore(reader, attempt)
    return { reader, chunks, events, body: reply.body }
  } catch (error) {
    reply.body.destroy()
    throw asCut(error, attempt.signal)
  }
}

async function readToFirstToken(
  reader: ChunkReader,
  events: OpenStream['events'],
  attempt: Attempt,
): Promise<JsonObject[]> {
  const held: JsonObject[] = []
  while (!reader.isMeaningful) {
    const next = await events.next()
    attempt.progressed()
    for (const event of next.value ?? []) {
      const chunk = reader.read(event)
      if (chunk !== undefined && (held.length < HELD_CHUNKS || reader.isMeaningful)) held.push(chunk)
    }
    // After [DONE] the connection may stay open.
    const isOver = next.done === true || reader.isDone
    if (isOver && !reader.isMeaningful) throw new AttemptFailure('cut')
  }
  return held
}

/** Sets how long the provider may be silent. */
function expectMore(reader: ChunkReader, attempt: Attempt): void {
  attempt.expectWithin(reader.isFinished ? GRACE_MS : attempt.target.upstream.timeouts.idleMs)
}

/**
 * Passes a stream on to the client.
 * @returns the failure if the provider did not finish the stream.
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
    // A break after the end of every choice loses nothing of the answer.
    return reader.isWhole ? undefined : asCut(error, attempt.signal)
  }
  void readEnding(stream)
  return reader.isWhole ? undefined : new AttemptFailure('cut')
}

async function passOn(
  { reader, chunks, events }: OpenStream,
  attempt: Attempt,
  client: EventStream,
): Promise<void> {
  await sendPaced(client, chunks, { attempt, reader })
  while (!reader.isDone) {
    const wasFinished = reader.isFinished
    const next = await events.next()
    if (next.done === true) return
    const { read, fault } = readAll(reader, next.value)
    // After the end of every choice a keep-alive extends nothing.
    if (!reader.isFinished) attempt.progressed()
    else if (!wasFinished) expectMore(reader, attempt)
    await sendPaced(client, read, { attempt, reader })
    if (fault !== undefined) throw fault
  }
}

/** Reads to the end of the body after [DONE], so that the connection can be reused. */
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

/** Chunks before an error are sent too. */
function readAll(
  reader: ChunkReader,
  events: readonly ProviderEvent[],
): { readonly read: readonly JsonObject[]; readonly fault?: unknown } {
  const read: JsonObject[] = []
  try {
    for (const event of events) {
      const chunk = reader.read(event)
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
  { attempt, reader }: { readonly attempt: Attempt; readonly reader: ChunkReader },
): Promise<void> {
  const drained = client.send(chunks, attempt.signal)
  if (drained === undefined) return
  attempt.suspend()
  await drained
  expectMore(reader, attempt)
}
