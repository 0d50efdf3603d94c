/** A reply as a stream, from one attempt: opened up to its first token, then passed on. */
import type { Readable } from 'node:stream'
import type { JsonObject } from '../../untrusted/json.ts'
import type { Attempt } from '../routing/attempt.ts'
import { AttemptFailure } from '../routing/failure.ts'
import { readEvents, type ProviderEvent } from '../upstream/events.ts'
import { asCut } from '../upstream/reply-body.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { ChunkReader } from './chunks.ts'
import type { EventStream } from './event-stream.ts'
import type { Asked } from './whole.ts'

/** Chunks kept until the first token; what comes beyond says nothing, and is left out. */
const KEPT_CHUNKS = 64
/** For the usage, once every choice is over: it follows at once, or never. */
const GRACE_MS = 1000
const ENDING_MS = 1000

/** A stream that serves: its first token is here. */
export interface OpenStream {
  readonly reader: ChunkReader
  /** What was read so far. */
  readonly chunks: readonly JsonObject[]
  /** The events that follow, those of one read together. */
  readonly events: AsyncGenerator<readonly ProviderEvent[], void>
  readonly body: Readable
}

/**
 * Asks for a stream and reads it up to its first token. Until then nothing has gone out, so another provider can
 * still take its place.
 * @throws {AttemptFailure} when there is no such token.
 */
export async function openStream(upstream: Upstream, attempt: Attempt, asked: Asked): Promise<OpenStream> {
  const { upstream: provider } = attempt.target
  const { firstTokenMs, keepAliveMs } = provider.timeouts
  attempt.expectWithin(firstTokenMs, keepAliveMs)
  const reply = await upstream.post(provider, asked.body, attempt.signal)
  attempt.answered(reply.statusCode)
  const reader = new ChunkReader(asked.answerer, asked.choices)
  const events = readEvents(reply.body)
  try {
    const chunks = await readToFirstToken(reader, events, attempt)
    if (!asked.isLastModel && reader.isFilteredOut) throw new AttemptFailure('filtered')
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
  const kept: JsonObject[] = []
  while (!reader.isMeaningful) {
    const next = await events.next()
    attempt.progressed()
    for (const event of next.value ?? []) {
      const chunk = reader.read(event)
      if (chunk !== undefined && (kept.length < KEPT_CHUNKS || reader.isMeaningful)) kept.push(chunk)
    }
    // After [DONE] the connection may stay open.
    const isOver = next.done === true || reader.isDone
    if (isOver && !reader.isMeaningful) throw new AttemptFailure('cut')
  }
  return kept
}

/** How long the provider may be silent from now on. */
function expectMore(reader: ChunkReader, attempt: Attempt): void {
  attempt.expectWithin(reader.isFinished ? GRACE_MS : attempt.target.upstream.timeouts.idleMs)
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
    // After the end of every choice a sign of life prolongs nothing.
    if (!reader.isFinished) attempt.progressed()
    else if (!wasFinished) expectMore(reader, attempt)
    await sendPaced(client, read, { attempt, reader })
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
