/** Streams the reply of one attempt: opens it up to its first token, then passes it on. */
import type { Readable } from 'node:stream'
import type { JsonObject } from '../untrusted/json.ts'
import type { Attempt } from './attempt.ts'
import { ChunkReader } from './chunks.ts'
import type { ClientStream } from './client-stream.ts'
import { readEvents, type ProviderEvent } from './events.ts'
import { AttemptFailure } from './failure.ts'
import { asCut, type ProviderClient } from './provider.ts'
import type { ProviderRequest } from './upstream-request.ts'

/** Chunks held until the first token; further empty ones are dropped. */
const HELD_CHUNKS = 64
/** Wait for the end of the body after [DONE], in milliseconds. */
const ENDING_MS = 1000

/** A stream that serves: its first token has arrived. */
export interface ProviderStream {
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
  client: ProviderClient,
  attempt: Attempt,
  request: ProviderRequest,
): Promise<ProviderStream> {
  const { provider } = attempt.candidate
  attempt.expectWithin(provider.timeouts.first_token_ms, provider.timeouts.keep_alive_ms)
  const { status, body } = await client.post(provider, request.body, attempt.signal)
  attempt.status = status
  const reader = new ChunkReader(request.identity, request.choices)
  const events = readEvents(body)
  try {
    const chunks = await readToFirstToken(reader, events, attempt)
    if (!request.isLastModel && reader.isFilteredOut) throw new AttemptFailure('filtered')
    expectMore(reader, attempt)
    return { reader, chunks, events, body }
  } catch (error) {
    body.destroy()
    throw asCut(error, attempt.signal)
  }
}

async function readToFirstToken(
  reader: ChunkReader,
  events: ProviderStream['events'],
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
  attempt.expectWithin(reader.restMs ?? attempt.candidate.provider.timeouts.idle_ms)
}

/**
 * Passes a stream on to the client.
 * @returns the failure if the provider did not finish the stream.
 */
export async function relay(
  stream: ProviderStream,
  attempt: Attempt,
  client: ClientStream,
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
  { reader, chunks, events }: ProviderStream,
  attempt: Attempt,
  client: ClientStream,
): Promise<void> {
  await sendPaced(client, chunks, { attempt, reader })
  while (!reader.isDone) {
    const next = await events.next()
    if (next.done === true) return
    const restMs = reader.restMs
    const { read, fault } = readAll(reader, next.value)
    if (reader.restMs !== restMs) expectMore(reader, attempt)
    // After the end of every choice a keep-alive extends nothing.
    else if (restMs === undefined) attempt.progressed()
    await sendPaced(client, read, { attempt, reader })
    if (fault !== undefined) throw fault
  }
}

/** Reads to the end of the body after [DONE], so that the connection can be reused. */
async function readEnding({ events, body }: ProviderStream): Promise<void> {
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
  client: ClientStream,
  chunks: readonly JsonObject[],
  { attempt, reader }: { readonly attempt: Attempt; readonly reader: ChunkReader },
): Promise<void> {
  const drained = client.send(
    chunks.map((chunk) => reader.identified(chunk)),
    attempt.signal,
  )
  if (drained === undefined) return
  attempt.suspend()
  await drained
  expectMore(reader, attempt)
}
