/** The chunks of a stream, made into what strict clients take; usage and finish are kept for the last one. */
import { isObject, objectsIn, parseJson, withoutNulls, type JsonObject } from '../../untrusted/json.ts'
import { errorCode, finishOf, identity, type Answerer } from './completion.ts'
import { withPlainContent } from './content-parts.ts'
import { AttemptFailure, failureInReply } from '../routing/failure.ts'
import { createToolCallRepair, type ToolCallRepair } from './tool-calls.ts'
import { readUsage, usageReply, type Usage } from './usage.ts'

const DONE = '[DONE]'
const FAILED = [{ index: 0, delta: { content: '' }, finish_reason: 'error' }]

/** Reads the stream of one attempt, event by event. */
export class ChunkReader {
  readonly #repairs = new Map<number, ToolCallRepair>()
  /** How each choice ended, by index; undefined while it goes on. */
  readonly #finishes = new Map<number, string | undefined>()
  /** Choices of which something went out. */
  readonly #begun = new Set<number>()
  readonly #answerer: Answerer
  #frame: JsonObject | undefined
  #usage: Usage | undefined
  #isDone = false
  #saysSomething = false

  constructor(answerer: Answerer) {
    this.#answerer = answerer
  }

  /**
   * The chunk for the client that the data of one event makes; undefined when nothing of it goes out now.
   * @throws {AttemptFailure} when it is an error, or nothing that can be read.
   */
  read(data: string): JsonObject | undefined {
    if (data.trim() === DONE) {
      this.#isDone = true
      return undefined
    }
    // A sign of life, as other servers give by a comment.
    if (data === '') return undefined
    const value = parseJson(data)
    if (!isObject(value)) throw new AttemptFailure('invalidReply', { status: 200 })
    refuseErrors(value)
    this.#frame ??= identity(value, this.#answerer)
    this.#usage = readUsage(value['usage']) ?? this.#usage
    const choices = objectsIn(value['choices'])
      .map((choice, position) => this.#readChoice(choice, position))
      .filter((choice) => choice !== undefined)
    if (choices.length === 0) return undefined
    const rest = withoutNulls(value)
    delete rest['usage']
    if (typeof rest['system_fingerprint'] !== 'string') delete rest['system_fingerprint']
    return { ...rest, ...this.#chunk({ choices }) }
  }

  /** Whether a token, a tool call or the like was read, or an end without any: from here on it is an answer. */
  get isMeaningful(): boolean {
    return this.#saysSomething || this.#isFinished
  }

  /** Whether the provider said that the reply is whole: by the end of every choice, or by [DONE]. */
  get isWhole(): boolean {
    return this.#isFinished || (this.#isDone && this.#saysSomething)
  }

  /** Whether the provider's filter kept everything back: another model may be less strict. */
  get isFilteredOut(): boolean {
    if (this.#saysSomething || !this.#isFinished) return false
    return [...this.#finishes.values()].every((reason) => reason === 'content_filter')
  }

  /** Whether [DONE] was read: nothing follows. */
  get isDone(): boolean {
    return this.#isDone
  }

  get usage(): Usage | undefined {
    return this.#usage
  }

  /** The last chunk: how each choice ended, and the usage. */
  last(): JsonObject {
    const finishes = [...this.#finishes].toSorted(([a], [b]) => a - b)
    const choices = finishes.map(([index, reason]) => ({
      index,
      delta: this.#begun.has(index) ? {} : { role: 'assistant', content: '' },
      finish_reason: reason ?? 'stop',
    }))
    return this.#chunk({ choices, usage: usageReply(this.#usage) })
  }

  /** The last chunk of a stream that failed on the way; a part of the same reply, as its identity tells. */
  failed(error: JsonObject): JsonObject {
    return this.#chunk({ error, choices: FAILED })
  }

  get #isFinished(): boolean {
    return this.#finishes.size > 0 && [...this.#finishes.values()].every((reason) => reason !== undefined)
  }

  #chunk(more: JsonObject): JsonObject {
    const frame = this.#frame ?? identity({}, this.#answerer)
    return { ...frame, object: 'chat.completion.chunk', ...more }
  }

  /** The choice without its finish; undefined when there is nothing else in it. */
  #readChoice(choice: JsonObject, position: number): JsonObject | undefined {
    const index = typeof choice['index'] === 'number' ? choice['index'] : position
    const delta = this.#readDelta(choice['delta'], index)
    const isSilent = isEmptyDelta(delta)
    if (!isSilent) this.#saysSomething = true
    const reason = finishOf(choice)
    if (reason !== undefined || !this.#finishes.has(index)) this.#finishes.set(index, reason)
    if (reason !== undefined && isSilent && !choice['logprobs']) return undefined
    // Clients that put a message together want to be told whose it is, once.
    const first = this.#begun.has(index) ? {} : { role: 'assistant' }
    this.#begun.add(index)
    return { ...withoutNulls(choice), index, delta: { ...first, ...delta }, finish_reason: null }
  }

  #readDelta(value: unknown, index: number): JsonObject {
    if (!isObject(value)) return {}
    const delta = withoutNulls(withPlainContent(value))
    if (delta['tool_calls'] === undefined) return delta
    const repair = this.#repairs.get(index) ?? createToolCallRepair()
    this.#repairs.set(index, repair)
    const calls = repair(delta['tool_calls'])
    if (calls.length > 0) delta['tool_calls'] = calls
    else delete delta['tool_calls']
    return delta
  }
}

/** The only chunk of a stream to which no provider sent any. */
export function failedChunk(answerer: Answerer, error: JsonObject): JsonObject {
  return new ChunkReader(answerer).failed(error)
}

/** The events of a stream that says what a whole completion says: for providers that do not stream. */
export function eventsOf(completion: JsonObject): readonly string[] {
  const { choices, ...rest } = completion
  const parts = objectsIn(choices).map(({ message, ...choice }) => ({
    ...choice,
    delta: withIndexes(message),
  }))
  return [JSON.stringify({ ...rest, choices: parts }), DONE]
}

/** A whole message with its tool calls in the form of a stream. */
function withIndexes(message: unknown): unknown {
  if (!isObject(message) || !Array.isArray(message['tool_calls'])) return message
  const calls = objectsIn(message['tool_calls']).map((call, index) => ({ ...call, index }))
  return { ...message, tool_calls: calls }
}

function refuseErrors(value: JsonObject): void {
  const choices = objectsIn(value['choices'])
  const failed = choices.find(({ finish_reason }) => finish_reason === 'error')
  const error = value['error'] ?? failed?.['error']
  if (failed !== undefined || (error !== undefined && error !== null)) throw failureInReply(errorCode(error))
}

/** Nothing but a role, and texts without characters. */
function isEmptyDelta(delta: JsonObject): boolean {
  for (const key in delta) if (key !== 'role' && !isEmpty(delta[key])) return false
  return true
}

function isEmpty(value: unknown): boolean {
  return value === '' || (Array.isArray(value) && value.length === 0)
}
