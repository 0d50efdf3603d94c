/** A reply in one piece, from one attempt; some providers stream without a request for it. */
import { isObject, objectsIn, parseJson, type JsonObject } from '../untrusted/json.ts'
import type { Attempt } from './attempt.ts'
import { ChunkReader } from './chunks.ts'
import { isFilteredOut, readCompletion, type Completion } from './completion.ts'
import { eventsOfText, type ProviderEvent } from './events.ts'
import { AttemptFailure } from './failure.ts'
import { readText, REPLY_BYTES, type ProviderClient } from './provider.ts'
import { failureOf } from './provider-error.ts'
import { joinedCalls } from './tool-calls.ts'
import type { ProviderRequest } from './upstream-request.ts'

/**
 * Requests a completion.
 * @throws {AttemptFailure} if the provider returns none.
 */
export async function complete(
  client: ProviderClient,
  attempt: Attempt,
  { body, identity, isLastModel }: ProviderRequest,
): Promise<Completion> {
  const reply = await client.post(attempt.candidate.provider, body, attempt.signal)
  attempt.status = reply.status
  const text = await readText(reply.body, REPLY_BYTES, attempt.signal)
  const value = parseJson(text)
  const isOneValue = value !== undefined && !Array.isArray(value)
  const whole = isOneValue ? value : assembled(eventsIn(text, reply.status), new ChunkReader(identity))
  const completion = readCompletion(whole, identity)
  if (!isLastModel && isFilteredOut(completion)) throw new AttemptFailure('filtered')
  return completion
}

function eventsIn(text: string, status: number): readonly ProviderEvent[] {
  const events = eventsOfText(text)
  if (events.length === 0) throw failureOf(status, text)
  return events
}

/**
 * The completion of a whole stream.
 * @throws {AttemptFailure} if the stream holds an error or breaks off.
 */
function assembled(events: readonly ProviderEvent[], reader: ChunkReader): JsonObject {
  const chunks = events.map((event) => reader.read(event)).filter((chunk) => chunk !== undefined)
  if (!reader.isWhole) throw new AttemptFailure(reader.isMeaningful ? 'cut' : 'invalidReply')
  const choices = new Map<unknown, Record<string, unknown>>()
  let reply: JsonObject = {}
  for (const chunk of [...chunks, ...reader.ending()]) {
    const { choices: parts, ...rest } = reader.identified(chunk)
    reply = { ...reply, ...rest }
    for (const { index, delta, ...more } of objectsIn(parts)) {
      const choice = choices.get(index) ?? { index, message: {} }
      const message = isObject(choice['message']) ? choice['message'] : {}
      choices.set(index, { ...choice, ...more, message: joined(message, isObject(delta) ? delta : {}) })
    }
  }
  return { ...reply, choices: [...choices.values()] }
}

/** Texts and lists are appended; all other members are replaced. */
function joined(message: JsonObject, delta: JsonObject): JsonObject {
  const both: Record<string, unknown> = { ...message }
  for (const key in delta) {
    const [known, added] = [both[key], delta[key]]
    if (key === 'tool_calls') both[key] = joinedCalls(objectsIn(known), objectsIn(added))
    else if (Array.isArray(known) && Array.isArray(added)) both[key] = [...known, ...added]
    else if (typeof known === 'string' && typeof added === 'string' && key !== 'role')
      both[key] = known + added
    else both[key] = added
  }
  return both
}
