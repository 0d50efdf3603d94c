/** The reply of one attempt, read chunk by chunk and rewritten for strict clients: as chunks, or as a whole. */
import { isObject, objectsIn, withoutNulls, type JsonObject } from '../untrusted/json.ts'
import { Choice, finishMeant, nativeFinish } from './choice.ts'
import { AttemptFailure, failureIn } from './failures.ts'
import { DONE } from './provider.ts'
import { indexOf } from './tool-calls.ts'
import { laterUsage, readUsage, usageIn, usageReply } from './usage.ts'

/** Members that are written anew, and the empty error that some providers send with every reply. */
const REWRITTEN = ['id', 'object', 'created', 'model', 'provider', 'choices', 'usage', 'error'] as const
/** Chunks without content that are passed on before the first token. */
const SILENT_CHUNKS = 64

/** Milliseconds to wait once every choice is over: for the end, and for the usage if it is not known. */
const END_MS = 1000
const USAGE_MS = 4000

/**
 * A reply as far as it was read.
 * - A token, a tool call or an empty end makes it an answer; a role or a keep-alive does not.
 * - It is whole once every choice has finished, or with [DONE] after content.
 * - Some providers set a finish in every chunk, so a finish beside content may not be the end.
 * - Usage and finishes are held back for the last chunk.
 */
export class Completion {
  /** By index, in the order of their first parts. */
  readonly #choices = new Map<number, Choice>()
  readonly #expected: number
  /** The provider's id and time for it, of the first chunk that has an id: Azure's first has none. */
  sentIdentity: ReturnType<typeof identityIn>
  /** As reported so far, and its tokens. */
  #usage: JsonObject = {}
  usage: ReturnType<typeof readUsage>
  /** Members of chunks without choices. */
  #more: JsonObject = {}
  /** Whether a choice of the last chunk had its finish beside content. */
  #endedWithContent = false
  /** Chunks without content so far. */
  #silent = 0
  /** What ended it, if anything: [DONE], the end of the body, or an error or a break. */
  #end: AttemptFailure | typeof DONE | 'body' | undefined

  /** `expected`: the requested number of choices. */
  constructor(expected: unknown) {
    this.#expected = typeof expected === 'number' ? expected : 1
  }

  /** Reads chunks of the provider; returns those for the client, without their identity. */
  read(values: readonly unknown[]): readonly JsonObject[] {
    return values.flatMap((value) => {
      // Some send the usage after [DONE].
      if (this.#end === DONE && isObject(value)) this.#noteUsage(value)
      if (this.isOver) return []
      this.#end = endIn(value)
      const chunk = isObject(value) && !this.isOver ? this.#readChunk(value) : undefined
      const isSent = chunk !== undefined && (this.isMeaningful || this.#silent++ < SILENT_CHUNKS)
      return isSent ? [chunk] : []
    })
  }

  /** The body has ended, or with a `failure` broken. */
  end(failure?: AttemptFailure): void {
    this.#end ??= failure ?? 'body'
  }

  /** Whether it is an answer from here on. */
  get isMeaningful(): boolean {
    return this.#hasContent || this.#areOver
  }

  /** Whether nothing more is read. */
  get isOver(): boolean {
    return this.#end !== undefined
  }

  /** Why a reply that is over is not whole. A break after the end of every requested choice loses nothing. */
  get failure(): AttemptFailure | undefined {
    const end = this.#end
    const isBroken = end instanceof AttemptFailure
    if (end === undefined || (isBroken ? this.#areAllOver : this.#areOver)) return undefined
    if (isBroken) return end
    const isHalfCalled = this.#choices.values().some(({ isOver, tools }) => !isOver && tools.isHalf)
    if (end === DONE && this.#hasContent && !isHalfCalled) return undefined
    return new AttemptFailure(this.#hasContent ? 'cut' : 'invalidReply')
  }

  /** Milliseconds to wait for the rest once every requested choice is over; undefined before. */
  get restMs(): number | undefined {
    if (!this.#areAllOver || this.#endedWithContent) return undefined
    return this.usage === undefined ? USAGE_MS : END_MS
  }

  /** Whether the provider's filter held everything back: another model may be less strict. */
  get isFilteredOut(): boolean {
    return !this.#hasContent && this.#areOver && this.#choices.values().every(({ isFiltered }) => isFiltered)
  }

  /** The last chunks: what is left of tool calls, the finishes, and the usage, in a chunk of its own if asked. */
  ending(separateUsage = false): JsonObject[] {
    const all = [...this.#choices.values()].toSorted((a, b) => a.index - b.index)
    const calls = all.map((choice) => choice.lastCalls()).filter((part) => part !== undefined)
    const finish = { ...this.#more, choices: all.map((choice) => choice.ending()) }
    const usage = usageReply(this.#usage, this.usage)
    const last = separateUsage ? [finish, { choices: [], usage }] : [{ ...finish, usage }]
    return calls.length === 0 ? last : [{ choices: calls }, ...last]
  }

  /** The whole reply from its `chunks`, without its identity. */
  whole(chunks: readonly JsonObject[]): JsonObject {
    const { choices, ...reply } = joined([...chunks, ...this.ending()])
    return {
      ...reply,
      object: 'chat.completion',
      // Required, but nullable.
      system_fingerprint: reply['system_fingerprint'] ?? null,
      choices: objectsIn(choices).map((choice) => {
        const calls = this.#choice(indexOf(choice) ?? 0).tools.whole()
        const { content = null, ...message } = isObject(choice['message']) ? choice['message'] : {}
        const more = calls.length > 0 && { tool_calls: calls }
        return { ...choice, message: { ...message, content, ...more } }
      }),
    }
  }

  #readChunk(value: JsonObject): JsonObject | undefined {
    this.sentIdentity ??= identityIn(value)
    this.#noteUsage(value)
    this.#endedWithContent = false
    const choices: JsonObject[] = []
    for (const [position, sent] of objectsIn(value['choices']).entries()) {
      const choice = this.#choice(indexOf(sent) ?? position)
      const part = choice.read(sent)
      this.#endedWithContent ||= choice.endedWithContent
      if (part !== undefined) choices.push(part)
    }
    const rest = withoutNulls(value)
    for (const key of REWRITTEN) delete rest[key]
    if (choices.length > 0) return { ...rest, choices }
    this.#more = { ...this.#more, ...rest }
    return undefined
  }

  #noteUsage(value: JsonObject): void {
    const sent = usageIn(value)
    if (sent === undefined) return
    this.#usage = laterUsage(this.#usage, sent)
    this.usage = readUsage(this.#usage)
  }

  get #hasContent(): boolean {
    for (const { hasContent } of this.#choices.values()) if (hasContent) return true
    return false
  }

  get #areOver(): boolean {
    for (const { isOver } of this.#choices.values()) if (!isOver) return false
    return this.#choices.size > 0
  }

  /** Some providers send one choice, however many were requested. */
  get #areAllOver(): boolean {
    return this.#areOver && this.#choices.size >= this.#expected
  }

  #choice(index: number): Choice {
    return this.#choices.getOrInsertComputed(index, () => new Choice(index))
  }
}

/** What a chunk ends the reply with: [DONE], or the error that it is, or that ended one of its choices. */
function endIn(value: unknown): AttemptFailure | typeof DONE | undefined {
  if (value === DONE || value instanceof AttemptFailure) return value
  if (!isObject(value)) return failureIn(value)
  for (const choice of objectsIn(value['choices'])) {
    const native = nativeFinish(choice)
    if (finishMeant(native) === 'error' || isErrorValue(choice['error']))
      return failureIn({ code: native, error: value['error'] ?? choice['error'] })
    // The form of another operation: no client reads it.
    if (typeof choice['text'] === 'string' && !choice['message'] && !choice['delta']) return failureIn(choice)
  }
  return isError(value) ? failureIn(value) : undefined
}

/** Members that mark data without choices and usage as an error. */
const MARKS = /^(?:message|msg|detail|code|errors|error_(?:code|msg|message)|statusCode)$/i

/** Whether data of a stream, or a whole reply, is an error instead of an answer. */
function isError(value: JsonObject): boolean {
  const { error, base_resp: minimax, choices, usage } = value
  if (isErrorValue(error) || (isObject(minimax) && isErrorValue(minimax['status_code']))) return true
  if (objectsIn(choices).length > 0 || isObject(usage)) return false
  return Object.keys(value).some((key) => MARKS.test(key) && isErrorValue(value[key]))
}

/** Some providers send every error member with every reply, empty or 0 without an error. */
function isErrorValue(value: unknown): boolean {
  if (isObject(value)) return Object.values(value).some(isErrorValue)
  return value !== undefined && value !== null && value !== '' && value !== false && Number(value) !== 0
}

function identityIn({ id, created }: JsonObject) {
  if (typeof id !== 'string' || id === '') return undefined
  const hasTime = typeof created === 'number' && Number.isInteger(created) && created > 0
  return { id, ...(hasTime && { created }) }
}

/** All chunks as one value: texts and lists of a message and of logprobs are appended, other members replaced. */
function joined(chunks: readonly JsonObject[]): JsonObject {
  const choices = new Map<unknown, Record<string, unknown>>()
  const reply: Record<string, unknown> = {}
  for (const { choices: parts, ...more } of chunks) {
    Object.assign(reply, more)
    for (const { delta, ...rest } of objectsIn(parts)) {
      const choice = choices.get(rest['index'])
      const message = appended(choice?.['message'], delta)
      const grown = rest['logprobs'] ? { logprobs: appended(choice?.['logprobs'], rest['logprobs']) } : {}
      choices.set(rest['index'], { ...choice, ...rest, ...grown, message })
    }
  }
  return { ...reply, choices: [...choices.values()] }
}

function appended(message: unknown, delta: unknown): JsonObject {
  const both: Record<string, unknown> = isObject(message) ? { ...message } : {}
  for (const [key, added] of Object.entries(isObject(delta) ? delta : {})) {
    const known = both[key]
    // A copy for each chunk would hold up the process: some have a list in each of many thousands.
    if (Array.isArray(known) && Array.isArray(added)) known.push(...added)
    else if (typeof known === 'string' && typeof added === 'string' && key !== 'role')
      both[key] = known + added
    else both[key] = isObject(known) ? appended(known, added) : added
  }
  return both
}
