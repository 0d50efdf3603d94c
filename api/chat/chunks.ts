/** Rewrites the chunks of a stream for strict clients; usage and finish are held back for the last one. */
import { isObject, objectsIn, parseJson, withoutNulls, type JsonObject } from '../untrusted/json.ts'
import {
  finishMembers,
  identityOf,
  isFilter,
  nativeFinish,
  plainMessage,
  throwIfError,
  withoutFinish,
  type ReplyIdentity,
} from './completion.ts'
import { failureOf } from './failures.ts'
import { DONE, type ProviderEvent } from './provider.ts'
import { indexOf, ToolCalls } from './tool-calls.ts'
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
  readonly tools: ToolCalls
  hasFunctionCall: boolean
}

/**
 * Reads the stream of one attempt, event by event.
 * - A token, a tool call or an empty end makes it an answer; a role or a keep-alive does not.
 * - It is whole once every choice has finished, or with [DONE] after content.
 * - Some providers set a finish in every chunk, so a finish beside content may not be the end.
 * - Id and time are those of the first chunk that has them (Azure's first has none), the same in every chunk.
 */
export class ChunkReader {
  /** By index. */
  readonly #choices = new Map<number, OpenChoice>()
  readonly #expected: number
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
  read({ data, isError = false }: ProviderEvent): JsonObject | undefined {
    if (data === DONE) {
      this.#isDone = true
      return undefined
    }
    // A keep-alive, which other servers send as a comment.
    if (data === '' && !isError) return undefined
    const value = parseJson(data)
    if (!isObject(value) || isError) throw failureOf(OK, value ?? data)
    throwIfError(value)
    if (!this.#isIdentityFixed) this.#identity = identityOf(value, this.#identity)
    this.#usage = laterUsage(this.#usage, usageIn(value))
    this.#endedWithContent = false
    const choices = objectsIn(value['choices'])
      .map((choice, position) => this.#readChoice(choice, indexOf(choice) ?? position))
      .filter((choice) => choice !== undefined)
    const rest = withoutNulls(value)
    for (const key of REWRITTEN) delete rest[key]
    if (choices.length > 0) return { ...rest, choices }
    this.#more = { ...this.#more, ...rest }
    return undefined
  }

  /** Whether it is an answer from here on. */
  get isMeaningful(): boolean {
    return this.#hasContent || this.#areOver
  }

  /** Whether the provider marked the reply as whole. */
  get isWhole(): boolean {
    const isHalfCalled = this.#all.some(({ isOver, tools }) => !isOver && tools.isHalf)
    return this.#areOver || (this.#isDone && this.#hasContent && !isHalfCalled)
  }

  /** Milliseconds to wait for the rest once every requested choice is over; undefined before. */
  get restMs(): number | undefined {
    if (!this.#areOver || this.#choices.size < this.#expected || this.#endedWithContent) return undefined
    return this.#usage === undefined ? USAGE_MS : END_MS
  }

  /** Whether the provider's filter held everything back: another model may be less strict. */
  get isFilteredOut(): boolean {
    return !this.#hasContent && this.#areOver && this.#all.every(({ native }) => isFilter(native))
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
    const open = [...this.#choices].toSorted(([a], [b]) => a - b)
    const calls = open.flatMap(([index, choice]) => {
      const parts = choice.tools.finish()
      if (parts.length === 0) return []
      return [{ index, delta: begin(choice, { tool_calls: parts }), finish_reason: null }]
    })
    const choices = open.map(([index, { hasBegun, native, more, tools, hasFunctionCall }]) => ({
      ...more,
      index,
      delta: hasBegun ? {} : { role: 'assistant', content: '' },
      ...finishMembers(native, !tools.isEmpty ? 'tool_calls' : hasFunctionCall ? 'function_call' : undefined),
    }))
    const finish = { ...this.#more, choices }
    const usage = usageReply(this.usage)
    const last = separateUsage ? [finish, { choices: [], usage }] : [{ ...finish, usage }]
    return calls.length === 0 ? last : [{ choices: calls }, ...last]
  }

  get #all(): readonly OpenChoice[] {
    return [...this.#choices.values()]
  }

  get #areOver(): boolean {
    for (const { isOver } of this.#choices.values()) if (!isOver) return false
    return this.#choices.size > 0
  }

  /** The choice without its finish; undefined if it holds nothing else. */
  #readChoice(choice: JsonObject, index: number): JsonObject | undefined {
    const { delta: sent, message: whole = sent, ...rest } = withoutFinish(choice)
    const open = this.#open(index)
    const native = nativeFinish(choice)
    if (native !== undefined) Object.assign(open, { native, isOver: true })
    // The form of another operation: no client reads it.
    if (whole === undefined && typeof rest['text'] === 'string') throw failureOf(OK, choice)
    const { delta, isSilent } = readDelta(whole, open)
    if (!isSilent) this.#noteContent(open)
    const isEmpty = isEmptyDelta(delta) && rest['logprobs'] === undefined
    if (isEmpty && native !== undefined) open.more = rest
    // A role alone is sent and keeps a client waiting; a tool call with nothing to send is waited for.
    if (isEmpty && (native !== undefined || !isSilent)) return undefined
    return { ...rest, index, delta: begin(open, delta), finish_reason: null }
  }

  #noteContent({ isOver }: OpenChoice): void {
    this.#hasContent = true
    this.#endedWithContent ||= isOver
  }

  #open(index: number): OpenChoice {
    const known = this.#choices.get(index)
    if (known !== undefined) return known
    const open = {
      hasBegun: false,
      isOver: false,
      native: undefined,
      more: {},
      tools: new ToolCalls(),
      hasFunctionCall: false,
    }
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

/** A delta for the client; a tool call counts as content even while its first part is held back. */
function readDelta(sent: unknown, open: OpenChoice) {
  const { tool_calls: calls, ...delta } = plainMessage(isObject(sent) ? sent : {})
  const isSilent = isEmptyDelta(delta) && objectsIn(calls).length === 0
  const parts = open.tools.read(calls)
  if (parts.length > 0) delta['tool_calls'] = parts
  open.hasFunctionCall ||= isObject(delta['function_call'])
  return { delta, isSilent }
}

/** Clients that assemble a message need its role once. */
function begin(open: OpenChoice, delta: JsonObject): JsonObject {
  const first = open.hasBegun ? {} : { role: 'assistant' }
  open.hasBegun = true
  return { ...first, ...delta }
}

/** Only a role, empty texts and empty lists. */
function isEmptyDelta(delta: JsonObject): boolean {
  for (const key in delta) {
    const value = delta[key]
    if (key !== 'role' && value !== '' && !(Array.isArray(value) && value.length === 0)) return false
  }
  return true
}
