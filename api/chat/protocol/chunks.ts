/** Rewrites the chunks of a stream for strict clients; usage and finish are held back for the last one. */
import { isObject, objectsIn, parseJson, withoutNulls, type JsonObject } from '../../untrusted/json.ts'
import { isDone, namesError, type ProviderEvent } from '../upstream/events.ts'
import { failureOf } from '../upstream/provider-error.ts'
import { identity, throwIfError, type Answerer } from './completion.ts'
import { finishMembers, isFilter, nativeFinish } from './finish.ts'
import { plainMessage } from './message.ts'
import { indexOf, ToolCallStream } from './tool-calls.ts'
import { laterUsage, readUsage, usageIn, usageReply, type Usage } from './usage.ts'

const OK = 200
/** Members of a chunk that are written anew. */
const REWRITTEN = ['id', 'object', 'created', 'model', 'choices', 'usage'] as const
const FAILED = [{ index: 0, delta: { content: '' }, finish_reason: 'error' }]

/** One choice of a stream, as far as it was read. */
interface OpenChoice {
  /** Whether any of it was sent. */
  hasBegun: boolean
  isOver: boolean
  /** The provider's word for how it ended. */
  native: string | undefined
  /** Members beside its finish. */
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
  /** Members beside usage and finishes that are held back. */
  #more: JsonObject = {}
  #isDone = false
  #hasContent = false

  /** `expected`: the requested number of choices. */
  constructor(answerer: Answerer, expected = 1) {
    this.#answerer = answerer
    this.#expected = expected
  }

  /**
   * The chunk for the client from one event; undefined if there is nothing to send yet.
   * @throws {AttemptFailure} if it is an error or unreadable.
   */
  read({ event, data }: ProviderEvent): JsonObject | undefined {
    if (isDone(data)) {
      this.#isDone = true
      return this.#restOfCalls()
    }
    const isNamedError = namesError(event)
    // A keep-alive, which other servers send as a comment.
    if (data === '' && !isNamedError) return undefined
    const value = parseJson(data)
    if (!isObject(value)) throw failureOf(OK, value ?? data)
    if (isNamedError) throw failureOf(OK, value)
    throwIfError(value)
    this.#frame ??= identity(value, this.#answerer)
    this.#usage = laterUsage(this.#usage, usageIn(value))
    const choices = objectsIn(value['choices'])
      .map((choice, position) => this.#readChoice(choice, position))
      .filter((choice) => choice !== undefined)
    const rest = withoutNulls(value)
    for (const key of REWRITTEN) delete rest[key]
    if (typeof rest['system_fingerprint'] !== 'string') delete rest['system_fingerprint']
    if (choices.length > 0) return { ...rest, ...this.#chunk({ choices }) }
    this.#more = { ...this.#more, ...rest }
    return undefined
  }

  /** Whether a token, a tool call or an empty end was read: from here on it is an answer. */
  get isMeaningful(): boolean {
    return this.#hasContent || this.#areOver
  }

  /** Whether the provider marked the reply as whole: by the end of every choice, or by [DONE]. */
  get isWhole(): boolean {
    return this.#areOver || (this.#isDone && this.#hasContent && !this.#isHalfCalled)
  }

  /** Whether only usage can follow: every requested choice is over. */
  get isFinished(): boolean {
    return this.#areOver && this.#choices.size >= this.#expected
  }

  /** Whether the provider's filter held everything back: another model may be less strict. */
  get isFilteredOut(): boolean {
    if (this.#hasContent || !this.#areOver) return false
    return [...this.#choices.values()].every(({ native }) => isFilter(native))
  }

  get isDone(): boolean {
    return this.#isDone
  }

  get usage(): Usage | undefined {
    return readUsage(this.#usage)
  }

  /** The last chunk: the finish of each choice, and the usage. */
  last(): JsonObject {
    const choices = [...this.#choices]
      .toSorted(([a], [b]) => a - b)
      .map(([index, { hasBegun, native, more, tools }]) => ({
        ...more,
        index,
        delta: hasBegun ? {} : { role: 'assistant', content: '' },
        ...finishMembers(native, tools.called),
      }))
    return { ...this.#more, ...this.#chunk({ choices, usage: usageReply(this.usage) }) }
  }

  /** The last chunk of a stream that failed; its id shows that it belongs to the same reply. */
  failed(error: JsonObject): JsonObject {
    return this.#chunk({ error, choices: FAILED })
  }

  get #areOver(): boolean {
    if (this.#choices.size === 0) return false
    for (const { isOver } of this.#choices.values()) if (!isOver) return false
    return true
  }

  /** Whether a call breaks off within its arguments. */
  get #isHalfCalled(): boolean {
    return [...this.#choices.values()].some(({ isOver, tools }) => !isOver && tools.isHalf)
  }

  #chunk(more: JsonObject): JsonObject {
    const frame = this.#frame ?? identity({}, this.#answerer)
    return { ...frame, object: 'chat.completion.chunk', ...more }
  }

  /** The choice without its finish; undefined if it holds nothing else. */
  #readChoice(choice: JsonObject, position: number): JsonObject | undefined {
    const { delta: sent, finish_reason: _reason, usage: _usage, message, ...rest } = withoutNulls(choice)
    const native = nativeFinish(choice)
    if (isOfOtherOperation(choice)) throw failureOf(OK, choice)
    const index = indexOf(choice) ?? position
    const open = this.#open(index)
    const { delta, isSilent } = readDelta(sent ?? message, open.tools)
    if (!isSilent) this.#hasContent = true
    if (native !== undefined) {
      open.isOver = true
      open.native = native
      addCalls(delta, open.tools.finish())
    }
    const goesOut = !isEmptyDelta(delta) || rest['logprobs'] !== undefined
    if (!goesOut && native !== undefined) open.more = rest
    // A role alone is sent and keeps a client waiting; a tool call with nothing to send is waited for.
    if (!goesOut && (native !== undefined || !isSilent)) return undefined
    return { ...rest, index, delta: begin(open, delta), finish_reason: null }
  }

  /** The rest of the tool calls of choices that ended without a finish. */
  #restOfCalls(): JsonObject | undefined {
    const choices = [...this.#choices]
      .filter(([, { isOver }]) => !isOver)
      .map(([index, open]) => ({ index, open, calls: open.tools.finish() }))
      .filter(({ calls }) => !isEmptyDelta(calls))
      .map(({ index, open, calls }) => ({ index, delta: begin(open, calls), finish_reason: null }))
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

/** Text in the choice itself: no client of this operation reads it. */
function isOfOtherOperation({ delta, message, text }: JsonObject): boolean {
  return typeof text === 'string' && !isObject(delta) && !isObject(message)
}

/** The only chunk of a stream if no provider sent any. */
export function failedChunk(answerer: Answerer, error: JsonObject): JsonObject {
  return new ChunkReader(answerer).failed(error)
}

/** A delta for the client; a tool call counts as content even while its first part is held back. */
function readDelta(
  value: unknown,
  tools: ToolCallStream,
): { readonly delta: Record<string, unknown>; readonly isSilent: boolean } {
  if (!isObject(value)) return { delta: {}, isSilent: true }
  const { tool_calls: calls, function_call: old, ...delta } = plainMessage(value)
  if (calls === undefined && old === undefined) return { delta, isSilent: isEmptyDelta(delta) }
  const isSilent = isEmptyDelta(delta) && isEmpty(calls ?? []) && !isObject(old)
  addCalls(delta, { tool_calls: tools.read(calls) })
  if (isObject(old)) addCalls(delta, { function_call: tools.readFunctionCall(old) })
  return { delta, isSilent }
}

function addCalls(
  delta: Record<string, unknown>,
  { tool_calls: calls, function_call: old }: JsonObject,
): void {
  const all = [...objectsIn(delta['tool_calls']), ...objectsIn(calls)]
  if (all.length > 0) delta['tool_calls'] = all
  if (old !== undefined) delta['function_call'] = old
}

/** Clients that assemble a message need its role once. */
function begin(open: OpenChoice, delta: JsonObject): JsonObject {
  const first = open.hasBegun ? {} : { role: 'assistant' }
  open.hasBegun = true
  return { ...first, ...delta }
}

/** Only a role and empty texts. */
function isEmptyDelta(delta: JsonObject): boolean {
  for (const key in delta) if (key !== 'role' && !isEmpty(delta[key])) return false
  return true
}

function isEmpty(value: unknown): boolean {
  return value === '' || (Array.isArray(value) && value.length === 0)
}
