/** Rewrites the chunks of a stream for strict clients; usage and finish are held back for the last one. */
import { isObject, objectsIn, parseJson, withoutNulls, type JsonObject } from '../untrusted/json.ts'
import { identityOf, throwIfError, type ReplyIdentity } from './completion.ts'
import { isDone, namesError, type ProviderEvent } from './events.ts'
import { finishMembers, isFilter, nativeFinish, withoutFinish } from './finish.ts'
import { plainMessage } from './message.ts'
import { failureOf } from './provider-error.ts'
import { indexOf, ToolCallStream } from './tool-calls.ts'
import { laterUsage, readUsage, usageIn, usageReply, type Usage } from './usage.ts'

const OK = 200
/** Members of a chunk that are written anew. */
const REWRITTEN = ['id', 'object', 'created', 'model', 'choices', 'usage'] as const
const SILENT = [{ index: 0, delta: {}, finish_reason: null }]
const FAILED = [{ index: 0, delta: { content: '' }, finish_reason: 'error' }]

/** Milliseconds to wait once every choice is over: for the end, and for the usage if it is not known. */
const END_MS = 1000
const USAGE_MS = 4000

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
  readonly #expected: number
  /** What identifies the reply: the same in every chunk that was sent. */
  #identity: ReplyIdentity
  #isIdentityFixed = false
  #usage: JsonObject | undefined
  /** Members beside usage and finishes that are held back. */
  #more: JsonObject = {}
  #isDone = false
  #hasContent = false
  #endedWithContent = false

  /** `expected`: the requested number of choices. */
  constructor(identity: ReplyIdentity, expected = 1) {
    this.#identity = identity
    this.#expected = expected
  }

  /**
   * The chunk for the client from one event, without its identity; undefined if there is nothing to send yet.
   * @throws {AttemptFailure} if it is an error or unreadable.
   */
  read({ event, data }: ProviderEvent): JsonObject | undefined {
    if (isDone(data)) {
      this.#isDone = true
      return undefined
    }
    const isNamedError = namesError(event)
    // A keep-alive, which other servers send as a comment.
    if (data === '' && !isNamedError) return undefined
    const value = parseJson(data)
    if (!isObject(value)) throw failureOf(OK, value ?? data)
    if (isNamedError) throw failureOf(OK, value)
    throwIfError(value)
    // Azure's first chunk has neither id nor time.
    if (!this.#isIdentityFixed) this.#identity = identityOf(value, this.#identity)
    this.#usage = laterUsage(this.#usage, usageIn(value))
    this.#endedWithContent = false
    const choices = objectsIn(value['choices'])
      .map((choice, position) => this.#readChoice(choice, position))
      .filter((choice) => choice !== undefined)
    const rest = withoutNulls(value)
    for (const key of REWRITTEN) delete rest[key]
    if (typeof rest['system_fingerprint'] !== 'string') delete rest['system_fingerprint']
    if (choices.length > 0) return { ...rest, choices }
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

  /**
   * Milliseconds to wait for the rest once every requested choice is over; undefined before. Some providers set a finish
   * in every chunk, so one beside content may not be the end.
   */
  get restMs(): number | undefined {
    if (!this.#areOver || this.#choices.size < this.#expected || this.#endedWithContent) return undefined
    return this.#usage === undefined ? USAGE_MS : END_MS
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

  /** Fixes the identity of all chunks: that of chunks already `sent`, otherwise the provider's. Returns it. */
  fixIdentity(sent?: ReplyIdentity): ReplyIdentity {
    this.#identity = sent ?? this.#identity
    this.#isIdentityFixed = true
    return this.#identity
  }

  /** A chunk as it is sent. */
  identified(chunk: JsonObject): JsonObject {
    return identified(this.#identity, chunk)
  }

  /** The last chunks: what is left of tool calls, the finish of each choice, and the usage, in a chunk of its own if asked. */
  ending(separateUsage = false): JsonObject[] {
    const calls = this.#restOfCalls()
    const choices = [...this.#choices]
      .toSorted(([a], [b]) => a - b)
      .map(([index, { hasBegun, native, more, tools }]) => ({
        ...more,
        index,
        delta: hasBegun ? {} : { role: 'assistant', content: '' },
        ...finishMembers(native, tools.called),
      }))
    const finish = { ...this.#more, choices }
    const usage = usageReply(this.usage)
    const last = separateUsage ? [finish, { choices: [], usage }] : [{ ...finish, usage }]
    return calls === undefined ? last : [calls, ...last]
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

  /** The choice without its finish; undefined if it holds nothing else. */
  #readChoice(choice: JsonObject, position: number): JsonObject | undefined {
    const { delta: sent, message, ...rest } = withoutFinish(choice)
    const native = nativeFinish(choice)
    if (isOfOtherOperation(choice)) throw failureOf(OK, choice)
    const index = indexOf(choice) ?? position
    const open = this.#open(index)
    const { delta, isSilent } = readDelta(sent ?? message, open.tools)
    this.#note(open, native, isSilent)
    const goesOut = !isEmptyDelta(delta) || rest['logprobs'] !== undefined
    if (!goesOut && native !== undefined) open.more = rest
    // A role alone is sent and keeps a client waiting; a tool call with nothing to send is waited for.
    if (!goesOut && (native !== undefined || !isSilent)) return undefined
    return { ...rest, index, delta: begin(open, delta), finish_reason: null }
  }

  #note(open: OpenChoice, native: string | undefined, isSilent: boolean): void {
    open.native = native ?? open.native
    open.isOver ||= native !== undefined
    if (isSilent) return
    this.#hasContent = true
    this.#endedWithContent ||= open.isOver
  }

  #restOfCalls(): JsonObject | undefined {
    const choices = [...this.#choices]
      .map(([index, open]) => ({ index, open, calls: open.tools.finish() }))
      .filter(({ calls }) => !isEmptyDelta(calls))
      .map(({ index, open, calls }) => ({ index, delta: begin(open, calls), finish_reason: null }))
    return choices.length === 0 ? undefined : { choices }
  }

  #open(index: number): OpenChoice {
    const known = this.#choices.get(index)
    if (known !== undefined) return known
    const open = { hasBegun: false, isOver: false, native: undefined, more: {}, tools: new ToolCallStream() }
    this.#choices.set(index, open)
    return open
  }
}

function identified(identity: ReplyIdentity, chunk: JsonObject): JsonObject {
  return { ...identity, object: 'chat.completion.chunk', ...chunk }
}

/** A chunk that keeps a waiting client connected. */
export function silentChunk(identity: ReplyIdentity): JsonObject {
  return identified(identity, { choices: SILENT })
}

/** The last chunk of a stream that failed. Some clients look for the error in its first key. */
export function failedChunk(identity: ReplyIdentity, error: JsonObject): JsonObject {
  return { error, ...identified(identity, { choices: FAILED }) }
}

/** Text in the choice itself: no client of this operation reads it. */
function isOfOtherOperation({ delta, message, text }: JsonObject): boolean {
  return typeof text === 'string' && !isObject(delta) && !isObject(message)
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
