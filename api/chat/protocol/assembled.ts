/** Builds a completion from a stream, for providers that stream without a request for it. */
import { isObject, objectsIn, type JsonObject } from '../../untrusted/json.ts'
import { AttemptFailure } from '../routing/failure.ts'
import type { ProviderEvent } from '../upstream/events.ts'
import { ChunkReader } from './chunks.ts'
import type { Answerer } from './completion.ts'

/**
 * The completion of a whole stream.
 * @throws {AttemptFailure} if the stream holds an error or breaks off.
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
