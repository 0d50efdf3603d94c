/** Repairs tool calls, so that clients can assemble the calls of any provider. */
import { randomUUID } from 'node:crypto'
import { isObject, objectsIn, parseJson, withoutNulls, type JsonObject } from '../untrusted/json.ts'

/** What a part says of a call; texts are empty where it says nothing. */
interface Said {
  id: string | undefined
  type: string
  name: string
  /** The arguments, byte for byte as the model wrote them. */
  text: string
  /** Further members, and further members of the function. */
  more: JsonObject
  moreOfFunction: JsonObject
}

/** One call, as far as it was read. */
interface OpenCall extends Said {
  readonly index: number
  /** Whether its first part was sent. */
  isSent: boolean
}

/** A part of a call as the provider sent it. */
type Part = Readonly<Said> & { readonly index: number | undefined }

function readPart(part: JsonObject): Part {
  const { id, index: _index, type, function: inner, ...more } = withoutNulls(part)
  const { name, arguments: sent, ...moreOfFunction } = isObject(inner) ? withoutNulls(inner) : {}
  return {
    id: (typeof id === 'string' && id !== '') || typeof id === 'number' ? String(id) : undefined,
    index: indexOf(part),
    type: typeof type === 'string' ? type : '',
    name: typeof name === 'string' ? name : '',
    text: typeof sent === 'string' ? sent : sent === undefined ? '' : JSON.stringify(sent),
    more,
    moreOfFunction,
  }
}

/** Some providers send `{}` before or after the arguments. */
const PLACEHOLDER = /^\s*\{\s*\}\s*$/

/**
 * The tool calls of one choice, whole or part by part. Each part gets the index of its call, counted from 0 without
 * gaps. The first part has id, type and name, and waits until the arguments begin: then the name is whole.
 * - A new id begins a call, whatever its index. Exception: without a name it belongs to the call whose arguments have
 *   not ended, since some providers make up an id for each part or send it late.
 * - A known id with a name at an index of its own begins a call: some providers give all calls one id.
 * - Without an id a part belongs to the call of its index, and without an index to the last one, unless that came in
 *   the same delta.
 * - Another name after a whole call begins a call.
 * - A second object after a whole one is another call. The same arguments again, or `{}`, are none.
 * - A name may come late, in fragments, or repeated in every part; arguments may be missing, null, or parsed JSON.
 */
export class ToolCalls {
  readonly #calls: OpenCall[] = []
  readonly #byId = new Map<string, OpenCall>()
  readonly #bySentIndex = new Map<number, OpenCall>()

  get isEmpty(): boolean {
    return this.#calls.length === 0
  }

  /** Whether a call breaks off within its arguments. */
  get isHalf(): boolean {
    return this.#calls.some(({ text }) => text.trim() !== '' && parseJson(text) === undefined)
  }

  /** The parts for the client that the calls of one delta make. */
  read(parts: unknown): JsonObject[] {
    return objectsIn(parts).flatMap((part, position) => this.#readPart(part, position > 0))
  }

  /** The rest once the choice is over: no more arguments follow. */
  finish(): JsonObject[] {
    return this.#calls.flatMap((call) => {
      const isMissing = call.text.trim() === '' && isFunction(call)
      if (isMissing) call.text = '{}'
      if (!call.isSent) return sendFirst(call)
      return isMissing ? [{ index: call.index, function: { arguments: '{}' } }] : []
    })
  }

  /** All calls in the form of a whole message; no part may follow. */
  whole(): JsonObject[] {
    this.finish()
    return this.#calls.map((call) => wholeCall(call))
  }

  #readPart(sent: JsonObject, isBeside: boolean): JsonObject[] {
    const part = readPart(sent)
    const found = this.#callOf(part, isBeside)
    const call = found ?? this.#begin(part)
    const before = found === undefined ? this.#sendPrevious() : []
    call.type ||= part.type
    call.more = { ...call.more, ...part.more }
    call.moreOfFunction = { ...call.moreOfFunction, ...part.moreOfFunction }
    const name = part.name.startsWith(call.name) ? part.name.slice(call.name.length) : part.name
    call.name += name
    const { text, rest } = takeText(call, part.text)
    if (call.isSent) before.push(...furtherPart(call, { ...part, name, text }))
    else if (!isFunction(call) || (call.name !== '' && hasText(call))) before.push(...sendFirst(call))
    if (rest === '') return before
    // What follows a whole value is the next call of the same function.
    const next = { index: sent['index'], function: { name: call.name, arguments: rest } }
    this.#begin({ id: undefined, index: part.index })
    return [...before, ...this.#sendPrevious(), ...this.#readPart(next, false)]
  }

  /** The call that a part belongs to; undefined if it begins one. */
  #callOf(part: Part, isBeside: boolean): OpenCall | undefined {
    const { id, index, name } = part
    const open = index === undefined ? this.#calls.at(-1) : this.#bySentIndex.get(index)
    const known = id === undefined ? open : this.#byId.get(id)
    if (known === undefined) return open === undefined || name !== '' ? undefined : this.#adopt(open, id)
    if (name === '' || known.name === '' || (name === known.name && !isElsewhere())) return known
    return isElsewhere() || isWhole(known) ? undefined : known

    function isElsewhere(): boolean {
      return id === undefined ? isBeside && index === undefined : index !== undefined && open === undefined
    }
  }

  /** A part without a name, but with a new id, belongs to a call that has not ended. */
  #adopt(open: OpenCall, id = ''): OpenCall | undefined {
    if (isWhole(open)) return undefined
    open.id ??= id
    this.#byId.set(id, open)
    return open
  }

  #begin({ id, index }: Pick<Part, 'id' | 'index'>): OpenCall {
    const call: OpenCall = {
      index: this.#calls.length,
      id: id === undefined || this.#byId.has(id) ? undefined : id,
      type: '',
      name: '',
      text: '',
      isSent: false,
      more: {},
      moreOfFunction: {},
    }
    this.#calls.push(call)
    if (id !== undefined) this.#byId.set(id, call)
    if (index !== undefined) this.#bySentIndex.set(index, call)
    return call
  }

  /** The first part of the call before the last one, so that clients see calls in order. */
  #sendPrevious(): JsonObject[] {
    const previous = this.#calls.at(-2)
    return previous === undefined ? [] : sendFirst(previous)
  }
}

/** Appends arguments; returns what was added, and the rest if another call begins within them. */
function takeText(call: OpenCall, text: string): { readonly text: string; readonly rest: string } {
  const end = endOfValue(call.text, text)
  if (end === undefined) {
    call.text += text
    return { text, rest: '' }
  }
  const [own, rest] = [text.slice(0, end), text.slice(end)]
  if (!call.isSent && PLACEHOLDER.test(call.text + own)) {
    call.text = ''
    return takeText(call, rest)
  }
  const isRepeated = PLACEHOLDER.test(rest) || rest.trim() === (call.text + own).trim()
  call.text += own
  return { text: own, rest: isRepeated ? '' : rest }
}

/** The part that follows; nothing if it adds nothing. */
function furtherPart(call: OpenCall, { name, text, more, moreOfFunction }: Part): JsonObject[] {
  const inner = { ...moreOfFunction, ...(name !== '' && { name }), ...(text !== '' && { arguments: text }) }
  const added = { ...more, ...(Object.keys(inner).length > 0 && { function: inner }) }
  return Object.keys(added).length > 0 ? [{ index: call.index, ...added }] : []
}

/** The first part of a call with all that is known of it; nothing if it was sent. */
function sendFirst(call: OpenCall): JsonObject[] {
  if (call.isSent) return []
  call.isSent = true
  return [{ index: call.index, ...wholeCall(call) }]
}

function wholeCall(call: OpenCall): JsonObject {
  call.id ??= `call_${randomUUID().replaceAll('-', '')}`
  const { id, type, name, text, more, moreOfFunction } = call
  const inner = { ...moreOfFunction, name, arguments: text }
  return { ...more, id, type: type || 'function', ...(isFunction(call) && { function: inner }) }
}

function isFunction({ type }: OpenCall): boolean {
  return type === '' || type === 'function'
}

/** Whether its arguments have begun, beyond a placeholder. */
function hasText({ text }: OpenCall): boolean {
  return text.trim() !== '' && !PLACEHOLDER.test(text)
}

/** Whether its arguments are a whole value. */
function isWhole(call: OpenCall): boolean {
  return hasText(call) && parseJson(call.text) !== undefined
}

/** How many places within one part are examined: braces in a text of code look alike. */
const PLACES = 100

/** Where in `text`, which follows `known`, another value begins after a whole one; undefined if it does not. */
function endOfValue(known: string, text: string): number | undefined {
  const last = known.trimEnd().slice(-1)
  for (const { index, 0: between } of `${last}${text}`.matchAll(/\}\s*(?=\{)/g).take(PLACES)) {
    const end = index + between.length - last.length
    if (parseJson(known + text.slice(0, end)) !== undefined) return end
  }
  return undefined
}

/** The index of a choice or of a call; undefined if it has none. */
export function indexOf({ index }: JsonObject): number | undefined {
  const number = typeof index === 'string' && index !== '' ? Number(index) : index
  return typeof number === 'number' && Number.isInteger(number) ? number : undefined
}
