/** The chunks of a stream, made into what strict clients take; usage and finish are kept for the last one. */
import { isObject, objectsIn, parseJson, withoutNulls, type JsonObject } from '../../untrusted/json.ts'
import { DONE, type ProviderEvent } from '../upstream/events.ts'
import { failureOf, isError } from '../upstream/provider-error.ts'
import { identity, type Answerer } from './completion.ts'
import { finishMembers, isFailure, isFilter, nativeFinish } from './finish.ts'
import { plainMessage } from './message.ts'
import { ToolCallStream } from './tool-calls.ts'
import { laterUsage, readUsage, usageIn, usageReply, type Usage } from './usage.ts'

const OK = 200
/** Members of a chunk that are made anew. */
const OURS = ['id', 'object', 'created', 'model', 'choices', 'usage'] as const
const FAILED = [{ index: 0, delta: { content: '' }, finish_reason: 'error' }]

/** One choice of a stream, as far as it was read. */
interface OpenChoice {
  /** Whether something of it went out. */
  hasBegun: boolean
  isOver: boolean
  /** The provider's word for how it ended. */
  native: string | undefined
  /** What stands beside its finish. */
  more: JsonObject
  readonly tools: ToolCallStream
}

/** Reads the stream of one attempt, event by event. */
export class ChunkReader {
  /** By index. */
  readonly #choices = new Map<number, OpenChoice>()
  readonly #answerer: Answerer
  readonly #expected: number
  #frame: JsonObject | undefined
  #usage: JsonObject | undefined
  /** What stands beside usage, finishes and other things that do not go out at once. */
  #more: JsonObject = {}
  #isDone = false
  #saysSomething = false

  /** `expected`: how many choices were asked for. */
  constructor(answerer: Answerer, expected = 1) {
    this.#answerer = answerer
    this.#expected = expected
  }

  /**
   * The chunk for the client that one event makes; undefined when nothing of it goes out now.
   * @throws {AttemptFailure} when it is an error, or nothing that can be read.
   */
  read({ event, data }: ProviderEvent): JsonObject | undefined {
    if (data.trim() === DONE) {
      this.#isDone = true
      return this.#restOfCalls()
    }
    const isNamedError = event === 'error'
    // A sign of life, as other servers give by a comment.
    if (data === '' && !isNamedError) return undefined
    const value = parseJson(data)
    if (!isObject(value)) throw failureOf(OK, value ?? data)
    if (isNamedError || isError(value)) throw failureOf(OK, value)
    this.#frame ??= identity(value, this.#answerer)
    this.#usage = laterUsage(this.#usage, usageIn(value))
    const choices = objectsIn(value['choices'])
      .map((choice, position) => this.#readChoice(choice, position))
      .filter((choice) => choice !== undefined)
    const rest = withoutNulls(value)
    for (const key of OURS) delete rest[key]
    if (typeof rest['system_fingerprint'] !== 'string') delete rest['system_fingerprint']
    if (choices.length > 0) return { ...rest, ...this.#chunk({ choices }) }
    this.#more = { ...this.#more, ...rest }
    return undefined
  }

  /** Whether a token, a tool call or the like was read, or an end without any: from here on it is an answer. */
  get isMeaningful(): boolean {
    return this.#saysSomething || this.#areOver
  }

  /** Whether the provider said that the reply is whole: by the end of every choice, or by [DONE]. */
  get isWhole(): boolean {
    return this.#areOver || (this.#isDone && this.#saysSomething)
  }

  /** Whether nothing but usage can follow: every choice that was asked for is over. */
  get isFinished(): boolean {
    return this.#areOver && this.#choices.size >= this.#expected
  }

  /** Whether the provider's filter kept everything back: another model may be less strict. */
  get isFilteredOut(): boolean {
    if (this.#saysSomething || !this.#areOver) return false
    return [...this.#choices.values()].every(({ native }) => isFilter(native))
  }

  /** Whether [DONE] was read: nothing follows. */
  get isDone(): boolean {
    return this.#isDone
  }

  get usage(): Usage | undefined {
    return readUsage(this.#usage)
  }

  /** The last chunk: how each choice ended, and the usage. */
  last(): JsonObject {
    const choices = [...this.#choices]
      .toSorted(([a], [b]) => a - b)
      .map(([index, { hasBegun, native, more, tools }]) => ({
        ...more,
        index,
        delta: hasBegun ? {} : { role: 'assistant', content: '' },
        ...finishMembers(native, tools.count > 0),
      }))
    return { ...this.#more, ...this.#chunk({ choices, usage: usageReply(this.usage) }) }
  }

  /** The last chunk of a stream that failed on the way; a part of the same reply, as its identity tells. */
  failed(error: JsonObject): JsonObject {
    return this.#chunk({ error, choices: FAILED })
  }

  get #areOver(): boolean {
    if (this.#choices.size === 0) return false
    for (const { isOver } of this.#choices.values()) if (!isOver) return false
    return true
  }

  #chunk(more: JsonObject): JsonObject {
    const frame = this.#frame ?? identity({}, this.#answerer)
    return { ...frame, object: 'chat.completion.chunk', ...more }
  }

  /** The choice without its finish; undefined when there is nothing else in it. */
  #readChoice(choice: JsonObject, position: number): JsonObject | undefined {
    const { delta: sent, finish_reason: _reason, usage: _usage, message, ...rest } = withoutNulls(choice)
    const native = nativeFinish(choice)
    if (isFailure(native)) throw failureOf(OK, { code: native, error: choice['error'] })
    const index = typeof choice['index'] === 'number' ? choice['index'] : position
    const open = this.#open(index)
    const { delta, isSilent } = readDelta(sent ?? message, open.tools)
    if (!isSilent) this.#saysSomething = true
    if (native !== undefined) {
      open.isOver = true
      open.native = native
      addCalls(delta, open.tools.finish())
    }
    const saysNothing = isEmptyDelta(delta) && rest['logprobs'] === undefined
    if (saysNothing && native !== undefined) open.more = rest
    if (saysNothing && (native !== undefined || !isSilent)) return undefined
    return { ...rest, index, delta: begin(open, delta), finish_reason: null }
  }

  /** What is left of the tool calls of choices whose end nobody told. */
  #restOfCalls(): JsonObject | undefined {
    const choices = [...this.#choices]
      .filter(([, { isOver }]) => !isOver)
      .map(([index, open]) => ({ index, open, calls: open.tools.finish() }))
      .filter(({ calls }) => calls.length > 0)
      .map(({ index, open, calls }) => ({
        index,
        delta: begin(open, { tool_calls: calls }),
        finish_reason: null,
      }))
    return choices.length === 0 ? undefined : this.#chunk({ choices })
  }

  #open(index: number): OpenChoice {
    const known = this.#choices.get(index)
    if (known !== undefined) return known
    const open = { hasBegun: false, isOver: false, native: undefined, more: {}, tools: new ToolCallStream() }
    this.#choices.set(index, open)
    return open
  }
}

/** The only chunk of a stream to which no provider sent any. */
export function failedChunk(answerer: Answerer, error: JsonObject): JsonObject {
  return new ChunkReader(answerer).failed(error)
}

/** A delta for the client; a tool call says something even while its first part waits. */
function readDelta(
  value: unknown,
  tools: ToolCallStream,
): { readonly delta: Record<string, unknown>; readonly isSilent: boolean } {
  if (!isObject(value)) return { delta: {}, isSilent: true }
  const { tool_calls: calls, ...delta } = plainMessage(value)
  if (calls === undefined) return { delta, isSilent: isEmptyDelta(delta) }
  const isSilent = isEmptyDelta(delta) && isEmpty(calls)
  addCalls(delta, tools.read(calls))
  return { delta, isSilent }
}

function addCalls(delta: Record<string, unknown>, calls: readonly JsonObject[]): void {
  if (calls.length > 0) delta['tool_calls'] = [...objectsIn(delta['tool_calls']), ...calls]
}

/** Clients that put a message together want to be told whose it is, once. */
function begin(open: OpenChoice, delta: JsonObject): JsonObject {
  const first = open.hasBegun ? {} : { role: 'assistant' }
  open.hasBegun = true
  return { ...first, ...delta }
}

/** Nothing but a role, and texts without characters. */
function isEmptyDelta(delta: JsonObject): boolean {
  for (const key in delta) if (key !== 'role' && !isEmpty(delta[key])) return false
  return true
}

function isEmpty(value: unknown): boolean {
  return value === '' || (Array.isArray(value) && value.length === 0)
}
