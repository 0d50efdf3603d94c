/**
 * Rewrites a provider's whole reply for strict clients, which fail on raw ones: a required key is missing, or null
 * where only absence is allowed.
 */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../../untrusted/json.ts'
import { failureOf, isError } from '../upstream/provider-error.ts'
import { finishMembers, isFailure, isFilter, nativeFinish } from './finish.ts'
import { plainMessage } from './message.ts'
import { indexOf, repairFunctionCall, repairToolCalls } from './tool-calls.ts'
import { readUsage, usageIn, usageReply, type Usage } from './usage.ts'

const OK = 200

/** The model and provider, as the reply names them. */
export interface Answerer {
  readonly model: string
  readonly provider: string
  /** Id for a reply without one. */
  readonly fallbackId: string
  /** Unix time in seconds for a reply without one. */
  readonly created: number
}

export interface Completion {
  readonly body: JsonObject
  readonly usage: Usage | undefined
}

/**
 * Reads a completion.
 * @throws {AttemptFailure} if it is an error or no completion.
 */
export function readCompletion(value: unknown, answerer: Answerer): Completion {
  if (!isObject(value)) throw failureOf(OK, value)
  throwIfError(value)
  const choices = objectsIn(value['choices'])
  if (choices.every(hasNoContent)) throw failureOf(OK, value)
  const usage = readUsage(usageIn(value))
  return {
    body: {
      ...withoutNulls(value),
      ...identity(value, answerer),
      object: 'chat.completion',
      choices: choices.map(repairChoice),
      // Required, but nullable.
      system_fingerprint:
        typeof value['system_fingerprint'] === 'string' ? value['system_fingerprint'] : null,
      usage: usageReply(usage),
    },
    usage,
  }
}

/**
 * Throws if a reply or chunk is an error, or if one of its choices ended in a provider failure.
 * @throws {AttemptFailure}
 */
export function throwIfError(value: JsonObject): void {
  for (const choice of objectsIn(value['choices'])) {
    const native = nativeFinish(choice)
    if (isFailure(native) || isObject(choice['error']))
      throw failureOf(OK, { code: native, error: value['error'] ?? choice['error'] })
  }
  if (isError(value)) throw failureOf(OK, value)
}

/** A choice in the form of another operation, such as `text`: no client reads it. */
function hasNoContent(choice: JsonObject): boolean {
  return !isObject(choice['message']) && !isFilter(nativeFinish(choice))
}

/** Whether the provider held back all content: another model may be less strict. */
export function isFilteredOut({ body }: Completion): boolean {
  return objectsIn(body['choices']).every(
    ({ finish_reason, message }) =>
      finish_reason === 'content_filter' &&
      isObject(message) &&
      !message['content'] &&
      !message['tool_calls'] &&
      !message['function_call'],
  )
}

/** The members that identify the reply and its model. */
export function identity(value: JsonObject, { model, provider, fallbackId, created }: Answerer): JsonObject {
  const { id, created: time } = value
  return {
    id: typeof id === 'string' && id !== '' ? id : fallbackId,
    created: typeof time === 'number' && Number.isInteger(time) ? time : created,
    model,
    provider,
  }
}

function repairChoice(choice: JsonObject, position: number): JsonObject {
  const { finish_reason: _reason, usage: _usage, ...rest } = withoutNulls(choice)
  const {
    tool_calls: sent,
    function_call: old,
    ...message
  } = plainMessage(isObject(choice['message']) ? choice['message'] : {})
  const calls = repairToolCalls(sent)
  return {
    ...rest,
    index: indexOf(choice) ?? position,
    message: {
      ...message,
      role: 'assistant',
      content: message['content'] ?? null,
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(isObject(old) && { function_call: repairFunctionCall(old) }),
    },
    ...finishMembers(
      nativeFinish(choice),
      calls.length > 0 ? 'tool_calls' : isObject(old) ? 'function_call' : undefined,
    ),
  }
}
