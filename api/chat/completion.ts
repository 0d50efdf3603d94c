/**
 * Rewrites a provider's whole reply for strict clients, which fail on raw ones: a required key is missing, or null
 * where only absence is allowed.
 */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../untrusted/json.ts'
import { failureOf, isError } from './provider-error.ts'
import { finishMembers, isFailure, isFilter, nativeFinish, withoutFinish } from './finish.ts'
import { plainMessage } from './message.ts'
import { indexOf, wholeFunctionCall, wholeCalls } from './tool-calls.ts'
import { readUsage, usageIn, usageReply, type Usage } from './usage.ts'

const OK = 200

/** What identifies a reply and its model. */
export interface ReplyIdentity {
  readonly id: string
  /** Unix time in seconds. */
  readonly created: number
  readonly model: string
  readonly provider: string
}

export interface Completion {
  readonly body: JsonObject
  readonly usage: Usage | undefined
}

/**
 * Reads a completion.
 * @throws {AttemptFailure} if it is an error or no completion.
 */
export function readCompletion(value: unknown, identity: ReplyIdentity): Completion {
  if (!isObject(value)) throw failureOf(OK, value)
  throwIfError(value)
  const choices = objectsIn(value['choices'])
  if (choices.every(hasNoContent)) throw failureOf(OK, value)
  const usage = readUsage(usageIn(value))
  return {
    body: {
      ...withoutNulls(value),
      ...identityOf(value, identity),
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

/** The provider's id and time of a reply; without them those of `otherwise`. */
export function identityOf({ id, created }: JsonObject, otherwise: ReplyIdentity): ReplyIdentity {
  return {
    ...otherwise,
    ...(typeof id === 'string' && id !== '' && { id }),
    ...(typeof created === 'number' && Number.isInteger(created) && created > 0 && { created }),
  }
}

function repairChoice(choice: JsonObject, position: number): JsonObject {
  const { message: whole, ...rest } = withoutFinish(choice)
  const { tool_calls: sent, function_call: old, ...message } = plainMessage(isObject(whole) ? whole : {})
  const calls = wholeCalls(sent)
  return {
    ...rest,
    index: indexOf(choice) ?? position,
    message: {
      ...message,
      role: 'assistant',
      content: message['content'] ?? null,
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(isObject(old) && { function_call: wholeFunctionCall(old) }),
    },
    ...finishMembers(
      nativeFinish(choice),
      calls.length > 0 ? 'tool_calls' : isObject(old) ? 'function_call' : undefined,
    ),
  }
}
