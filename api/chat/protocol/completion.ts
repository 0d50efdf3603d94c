/**
 * A whole reply of a provider, made into what strict clients take. Raw replies break them: a key that must be
 * there is missing, or null where it may only be absent.
 */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../../untrusted/json.ts'
import { withPlainContent } from './content-parts.ts'
import { AttemptFailure, failureInReply } from '../routing/failure.ts'
import { repairToolCalls } from './tool-calls.ts'
import { readUsage, usageReply, type Usage } from './usage.ts'

/** Who answers: named in the reply. */
export interface Answerer {
  readonly model: string
  readonly provider: string
  /** Id for a reply that has none of its own. */
  readonly fallbackId: string
  /** Unix time in seconds for a reply that has none of its own. */
  readonly created: number
}

export interface Completion {
  /** The reply for the client. */
  readonly body: JsonObject
  readonly usage: Usage | undefined
}

/**
 * Reads a completion.
 * @throws {AttemptFailure} when it is an error, no completion, or a refusal of the content with nothing in it.
 */
export function readCompletion(value: unknown, answerer: Answerer): Completion {
  if (!isObject(value)) throw new AttemptFailure('invalidReply', { status: 200 })
  const choices = objectsIn(value['choices'])
  if (choices.length === 0) throw failureInReply(errorCode(value['error']))
  const repaired = choices.map(repairChoice)
  if (repaired.every(({ finish_reason }) => finish_reason === 'error')) {
    throw failureInReply(errorCode(value['error'] ?? choices[0]?.['error']))
  }
  if (choices.every(saysNothing)) throw new AttemptFailure('invalidReply', { status: 200 })
  const usage = readUsage(value['usage'])
  return {
    body: {
      ...withoutNulls(value),
      ...identity(value, answerer),
      object: 'chat.completion',
      choices: repaired,
      // Required, though it may be null.
      system_fingerprint:
        typeof value['system_fingerprint'] === 'string' ? value['system_fingerprint'] : null,
      usage: usageReply(usage),
    },
    usage,
  }
}

/** A choice in the form of another operation, such as one with a `text`: nothing that a client could read. */
function saysNothing({ message, finish_reason }: JsonObject): boolean {
  return !isObject(message) && finish_reason !== 'content_filter'
}

/** Whether the provider kept back all of the content: another model may be less strict. */
export function isFilteredOut({ body }: Completion): boolean {
  return objectsIn(body['choices']).every(
    ({ finish_reason, message }) =>
      finish_reason === 'content_filter' &&
      isObject(message) &&
      !message['content'] &&
      !message['tool_calls'],
  )
}

/** The members that say which reply this is, and who answered. */
export function identity(value: JsonObject, { model, provider, fallbackId, created }: Answerer): JsonObject {
  const { id, created: told } = value
  return {
    id: typeof id === 'string' && id !== '' ? id : fallbackId,
    created: typeof told === 'number' && Number.isInteger(told) ? told : created,
    model,
    provider,
  }
}

/** How a choice ended; undefined while it goes on, for which some providers send an empty word. */
export function finishOf({ finish_reason: reason }: JsonObject): string | undefined {
  return typeof reason === 'string' && reason !== '' ? reason : undefined
}

/** The provider's own word or number for an error; undefined when it has none that is short and plain. */
export function errorCode(error: unknown): string | number | undefined {
  if (!isObject(error)) return undefined
  return [error['code'], error['type']].find(isPlainCode)
}

function isPlainCode(value: unknown): value is string | number {
  return typeof value === 'number' || (typeof value === 'string' && /^[\w.:-]{1,60}$/.test(value))
}

function repairChoice(choice: JsonObject, position: number): Record<string, unknown> {
  const message = withPlainContent(isObject(choice['message']) ? choice['message'] : {})
  const repaired: Record<string, unknown> = {
    ...withoutNulls(message),
    role: 'assistant',
    content: message['content'] ?? null,
  }
  const calls = repairToolCalls(message['tool_calls'])
  if (calls.length > 0) repaired['tool_calls'] = calls
  else delete repaired['tool_calls']
  return {
    ...withoutNulls(choice),
    index: typeof choice['index'] === 'number' ? choice['index'] : position,
    message: repaired,
    finish_reason: finishOf(choice) ?? null,
  }
}
