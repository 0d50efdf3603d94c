/** A whole completion put together from a stream: for providers that stream although they were not asked to. */
import { isObject, objectsIn, type JsonObject } from '../../untrusted/json.ts'
import { AttemptFailure } from '../routing/failure.ts'
import type { ProviderEvent } from '../upstream/events.ts'
import { ChunkReader } from './chunks.ts'
import type { Answerer } from './completion.ts'

/**
 * The completion that the events of a whole stream say.
 * @throws {AttemptFailure} when they hold an error, or break off.
 */
export function assembled(events: readonly ProviderEvent[], answerer: Answerer): JsonObject {
  const reader = new ChunkReader(answerer)
  const chunks = events.map((event) => reader.read(event)).filter((chunk) => chunk !== undefined)
  if (!reader.isWhole) throw new AttemptFailure(reader.isMeaningful ? 'cut' : 'invalidReply')
  const choices = new Map<unknown, Record<string, unknown>>()
  let reply: JsonObject = {}
  for (const { choices: parts, ...rest } of [...chunks, reader.last()]) {
    reply = { ...reply, ...rest }
    for (const { index, delta, ...more } of objectsIn(parts)) {
      const choice = choices.get(index) ?? { index, message: {} }
      const message = isObject(choice['message']) ? choice['message'] : {}
      choices.set(index, { ...choice, ...more, message: joined(message, isObject(delta) ? delta : {}) })
    }
  }
  return { ...reply, choices: [...choices.values()] }
}

/** Texts and lists go on, all else is told anew. */
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

function joinedCalls(known: readonly JsonObject[], added: readonly JsonObject[]): readonly JsonObject[] {
  const calls = [...known]
  for (const part of added) {
    const place = calls.findIndex(({ index }) => index === part['index'])
    const call = calls[place]
    if (call === undefined) calls.push(part)
    else {
      const [inner, more] = [call['function'], part['function']]
      calls[place] = {
        ...call,
        ...part,
        function: joined(isObject(inner) ? inner : {}, isObject(more) ? more : {}),
      }
    }
  }
  return calls
}
