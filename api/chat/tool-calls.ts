/** Repairs tool calls, so that clients can assemble the calls of any provider. */
import { randomUUID } from 'node:crypto'
import { isObject, parseJson, withoutNulls, type JsonObject } from '../untrusted/json.ts'

/** A part of a call as the provider sent it; texts are empty where it says nothing. */
type Part = ReturnType<typeof readPart>

function readPart(part: JsonObject) {
  const { name: bare, arguments: text, ...members } = withoutNulls(part)
  const { id, index: _index, type, function: inner, ...more } = members
  // Cloudflare sends name and arguments without a function around them.
  const named = isObject(inner) ? withoutNulls(inner) : { name: bare, arguments: text }
  const { name, arguments: sent = '', ...moreOfFunction } = named
  return {
    id: typeof id === 'string' || typeof id === 'number' ? String(id) : '',
    index: indexOf(part),
    type: typeof type === 'string' ? type : '',
    name: typeof name === 'string' ? name : '',
    /** The arguments, byte for byte as the model wrote them. */
    text: typeof sent === 'string' ? sent : JSON.stringify(sent),
    /** Further members, and further members of the function. */
    more: more as JsonObject,
    moreOfFunction: moreOfFunction as JsonObject,
  }
}

/**
 * The tool calls of one choice, whole or part by part. Each part gets the index of its call, counted from 0 without
 * gaps. The first part has id, type and name, and waits until the arguments begin: then the name is whole.
 * - A new id begins a call, whatever its index. Exception: without a name, or with the same name amid the arguments, it
 *   belongs to the call whose arguments have not ended, since some providers make up an id for each part or send it late.
 * - A known id with a name at an index of its own begins a call: some providers give all calls one id.
 * - Without an id a part belongs to the call of its index. Without an index, or with a new index and no name, it belongs
 *   to the last one, unless that came in the same delta.
 * - Another name after arguments begins a call.
 * - A second object after a whole one is another call. The same arguments again, or `{}`, are none.
 * - A name may be late or in fragments. Parts may repeat it, and all arguments so far, which may be null or parsed JSON.
 */
export class ToolCalls {
  readonly #calls: ToolCall[] = []

  get isEmpty(): boolean {
    return this.#calls.length === 0
  }

  /** Whether a call breaks off within its arguments. */
  get isHalf(): boolean {
    return this.#calls.some((call) => call.isHalf)
  }

  /** The parts for the client that the calls of one delta make. */
  read(parts: readonly JsonObject[]): JsonObject[] {
    return parts.flatMap((part, position) => this.#readPart(readPart(part), position > 0))
  }

  /** The rest once the choice is over: no more arguments follow. */
  finish(): JsonObject[] {
    return this.#calls.flatMap((call) => call.finish())
  }

  /** All calls in the form of a whole message; no part may follow. */
  whole(): JsonObject[] {
    this.finish()
    return this.#calls.map((call) => call.whole())
  }

  #readPart(part: Part, isBeside: boolean): JsonObject[] {
    const found = part.id === '' ? this.#callWithoutId(part, isBeside) : this.#callWithId(part)
    // Clients see calls in order: the first part of the one before does not wait any longer.
    const before = found === undefined ? (this.#calls.at(-1)?.sendFirst() ?? []) : []
    const call = found ?? this.#begin(part)
    const { sent, rest } = call.add(part)
    if (rest === '') return [...before, ...sent]
    // What follows a whole value is the next call of the same function.
    const next = { ...part, id: '', name: call.name, text: rest, more: {}, moreOfFunction: {} }
    this.#begin(next)
    return [...before, ...sent, ...call.sendFirst(), ...this.#readPart(next, false)]
  }

  /** The call that a part without an id belongs to; undefined if it begins one. */
  #callWithoutId({ index, name }: Part, isBeside: boolean): ToolCall | undefined {
    const call = this.#lastAt(index) ?? (name === '' ? this.#calls.at(-1) : undefined)
    return call?.takes(name, isBeside && index === undefined) === true ? call : undefined
  }

  /** The call that a part with an id belongs to; undefined if it begins one. */
  #callWithId({ id, index, name, text }: Part): ToolCall | undefined {
    const open = this.#lastAt(index)
    const known = this.#calls.findLast(({ ids }) => ids.has(id))
    if (known !== undefined) {
      // LocalAI repeats a call at further indexes.
      const isElsewhere = index !== undefined && open === undefined && !['', text].includes(known.text)
      return known.takes(name, isElsewhere) ? known : undefined
    }
    const goesOn = name === '' ? open?.isWhole === false : open?.name === name && open.isHalf
    return goesOn ? open?.adopt(id) : undefined
  }

  #lastAt(index: number | undefined): ToolCall | undefined {
    return this.#calls.findLast((call) => index === undefined || call.sentIndex === index)
  }

  #begin({ id, index }: Part): ToolCall {
    const isTaken = this.#calls.some(({ ids }) => ids.has(id))
    const call = new ToolCall(this.#calls.length, index, isTaken ? '' : id)
    if (id !== '') call.ids.add(id)
    this.#calls.push(call)
    return call
  }
}

/** Some providers send `{}` before or after the arguments. */
const PLACEHOLDER = /^\s*\{\s*\}\s*$/

/** How many places within one part are examined: braces in a text of code look alike. */
const PLACES = 100

/** One call, as far as it was read. */
class ToolCall {
  readonly #index: number
  readonly sentIndex: number | undefined
  /** All ids that the provider gave it. */
  readonly ids = new Set<string>()
  name = ''
  text = ''
  /** The id for the client; empty until it is known. */
  #id: string
  #type = ''
  #more: JsonObject = {}
  #moreOfFunction: JsonObject = {}
  /** Whether its first part was sent. */
  #isSent = false
  /** Whether its parts have all arguments so far. */
  #repeats = false

  constructor(index: number, sentIndex: number | undefined, id: string) {
    this.#index = index
    this.sentIndex = sentIndex
    this.#id = id
  }

  /** Whether its arguments are a whole value, beyond a placeholder. */
  get isWhole(): boolean {
    return this.#hasText && parseJson(this.text) !== undefined
  }

  /** Whether it breaks off within its arguments. */
  get isHalf(): boolean {
    return this.text.trim() !== '' && parseJson(this.text) === undefined
  }

  get #hasText(): boolean {
    return this.text.trim() !== '' && !PLACEHOLDER.test(this.text)
  }

  get #isFunction(): boolean {
    return this.#type === '' || this.#type === 'function'
  }

  /** Whether a part with this name may belong to it; `isElsewhere`: its place speaks for another call. */
  takes(name: string, isElsewhere: boolean): boolean {
    if (name === '' || this.name === '') return true
    return !isElsewhere && (name === this.name || this.text.trim() === '')
  }

  /** Takes a further id. */
  adopt(id: string): this {
    this.#id ||= id
    this.ids.add(id)
    return this
  }

  /** Adds a part; returns what is sent of it, and the rest of its arguments if another call begins within them. */
  add(part: Part): { readonly sent: readonly JsonObject[]; readonly rest: string } {
    this.#type ||= part.type
    this.#more = { ...this.#more, ...part.more }
    this.#moreOfFunction = { ...this.#moreOfFunction, ...part.moreOfFunction }
    const name = part.name.startsWith(this.name) ? part.name.slice(this.name.length) : part.name
    this.name += name
    const { text, rest } = this.#take(part.text)
    const hasBegun = !this.#isFunction || (this.name !== '' && this.#hasText)
    if (!this.#isSent) return { sent: hasBegun ? this.sendFirst() : [], rest }
    const inner = { ...part.moreOfFunction, ...(name && { name }), ...(text && { arguments: text }) }
    const added = { ...part.more, ...(Object.keys(inner).length > 0 && { function: inner }) }
    return { sent: Object.keys(added).length > 0 ? [{ index: this.#index, ...added }] : [], rest }
  }

  /** The first part with all that is known of it; nothing if it was sent. */
  sendFirst(): JsonObject[] {
    if (this.#isSent) return []
    this.#isSent = true
    return [{ index: this.#index, ...this.whole() }]
  }

  /** The rest, since no more arguments follow. */
  finish(): JsonObject[] {
    const isMissing = this.text.trim() === '' && this.#isFunction
    if (isMissing) this.text = '{}'
    if (!this.#isSent) return this.sendFirst()
    return isMissing ? [{ index: this.#index, function: { arguments: '{}' } }] : []
  }

  whole(): JsonObject {
    this.#id ||= `call_${randomUUID().replaceAll('-', '')}`
    const inner = { ...this.#moreOfFunction, name: this.name, arguments: this.text }
    const type = this.#type || 'function'
    return { ...this.#more, id: this.#id, type, ...(this.#isFunction && { function: inner }) }
  }

  /** Appends arguments; returns what was added, and the rest if another call begins within them. */
  #take(sent: string): { readonly text: string; readonly rest: string } {
    const text = this.#added(sent)
    // It reads all arguments: of a long call not again with each part.
    const end = text.includes('{') ? this.#endIn(text) : undefined
    const own = text.slice(0, end)
    const rest = text.slice(own.length)
    if (rest !== '' && !this.#isSent && PLACEHOLDER.test(this.text + own)) {
      this.text = ''
      return this.#take(rest)
    }
    this.text += own
    const isRepeated = rest !== '' && (PLACEHOLDER.test(rest) || rest.trim() === this.text.trim())
    return { text: own, rest: isRepeated ? '' : rest }
  }

  /** What `sent` adds. Some servers repeat all that they sent before, and some send null for no arguments. */
  #added(sent: string): string {
    if (this.text === '' && sent === 'null') return ''
    // Where a value begins, it may be a nested object that begins like the one around it.
    const isSame = sent.startsWith(this.text) && this.text.startsWith('{')
    this.#repeats ||= isSame && !/[:,[]\s*$/.test(this.text)
    return isSame && this.#repeats ? sent.slice(this.text.length) : sent
  }

  /** Where in `text`, which follows the known arguments, another value begins after a whole one. */
  #endIn(text: string): number | undefined {
    const last = this.text.trimEnd().slice(-1)
    for (const { index, 0: between } of `${last}${text}`.matchAll(/\}\s*(?=\{)/g).take(PLACES)) {
      const end = index + between.length - last.length
      if (parseJson(this.text + text.slice(0, end)) !== undefined) return end
    }
    return undefined
  }
}

/** The index of a choice or of a call; undefined if it has none. */
export function indexOf({ index }: JsonObject): number | undefined {
  const number = typeof index === 'string' && index !== '' ? Number(index) : index
  return typeof number === 'number' && Number.isInteger(number) ? number : undefined
}
