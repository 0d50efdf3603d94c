/** Repairs tool calls, so that clients can assemble the calls of any provider. */
import { isObject, objectsIn, type JsonObject } from '../untrusted/json.ts'
import { nameIn, OpenCall, textIn } from './tool-call.ts'

/** The tool calls of a whole message, each with type, name, arguments as text, and a unique id. */
export function wholeCalls(calls: unknown): readonly JsonObject[] {
  const stream = new ToolCallStream()
  const parts = objectsIn(calls).flatMap((call, index) => stream.read([{ ...call, index }]))
  const { tool_calls: rest } = stream.finish()
  return joinedCalls([], [...parts, ...objectsIn(rest)]).map(({ index: _index, ...call }) => call)
}

/** The deprecated `function_call` of a whole message, with arguments as text. */
export function wholeFunctionCall(call: JsonObject): unknown {
  const stream = new ToolCallStream()
  return stream.readFunctionCall(call) ?? stream.finish()['function_call']
}

/** Calls with the parts that follow: names and arguments are appended, other members replaced. */
export function joinedCalls(
  known: readonly JsonObject[],
  added: readonly JsonObject[],
): readonly JsonObject[] {
  const calls = new Map(known.map((call) => [call['index'], call]))
  for (const part of added) {
    const before = calls.get(part['index']) ?? {}
    const [inner, more] = [before['function'], part['function']]
    const both: Record<string, unknown> = { ...(isObject(inner) && inner), ...(isObject(more) && more) }
    const [name, text] = [nameIn(before) + nameIn(part), textIn(before) + textIn(part)]
    if (name !== '') both['name'] = name
    if (text !== '') both['arguments'] = text
    const hasFunction = Object.keys(both).length > 0
    calls.set(part['index'], { ...before, ...part, ...(hasFunction && { function: both }) })
  }
  return [...calls.values()]
}

/**
 * The tool calls of one choice of a stream: each part gets the index of its call, counted from 0 without gaps.
 * Providers send index 0 for every call, omit the index, or repeat id and name in every part.
 * - A new id begins a call, whatever its index. Exception: it has no name and arrives within the arguments of another
 *   call, since some providers make up an id for each part.
 * - A known id begins a call if a whole call is followed by a name and other arguments, or by a name at another index:
 *   some providers give all calls one id.
 * - Whatever the id, a second object or list after a whole one is another call; `{}` before or after them is none.
 * - A part without an index belongs to the last call. Without an id too, a call begins with a different name, or when a
 *   whole value of arguments is followed by another.
 */
export class ToolCallStream {
  readonly #calls: OpenCall[] = []
  readonly #byId = new Map<string, OpenCall>()
  readonly #bySentIndex = new Map<number, OpenCall>()
  #functionCall: OpenCall | undefined

  /** The finish that a call implies; undefined without a call. */
  get called(): 'tool_calls' | 'function_call' | undefined {
    if (this.#calls.length > 0) return 'tool_calls'
    return this.#functionCall === undefined ? undefined : 'function_call'
  }

  /** Whether a call breaks off within its arguments. */
  get isHalf(): boolean {
    return this.#calls.some((call) => call.isHalf) || this.#functionCall?.isHalf === true
  }

  /** The parts for the client that one delta makes. */
  read(parts: unknown): JsonObject[] {
    return objectsIn(parts).flatMap((part, position) => this.#readPart(part, position > 0))
  }

  /** The same for a part of the deprecated `function_call`. */
  readFunctionCall(call: JsonObject): unknown {
    this.#functionCall ??= new OpenCall(0, undefined)
    const part = { function: call }
    return this.#functionCall.take(part, textIn(part))[0]?.['function']
  }

  /** The rest once the choice is over: no more arguments follow. */
  finish(): JsonObject {
    const calls = this.#calls.flatMap((call) => call.finish())
    const old = this.#functionCall?.finish()[0]?.['function']
    return {
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(old !== undefined && { function_call: old }),
    }
  }

  #readPart(part: JsonObject, isBeside: boolean): JsonObject[] {
    const sentIndex = indexOf(part)
    const open = sentIndex === undefined ? this.#calls.at(-1) : this.#bySentIndex.get(sentIndex)
    const id = idOf(part)
    const known =
      id === undefined
        ? this.#withoutId(part, open, isBeside && sentIndex === undefined)
        : this.#withId(part, id, { open, sentIndex })
    const { call, before } = known === undefined ? this.#begin(id) : { call: known, before: [] }
    if (sentIndex !== undefined) this.#bySentIndex.set(sentIndex, call)
    const sent = textIn(part)
    const text = (id !== undefined || nameIn(part) === '') && call.repeats(sent) ? '' : sent
    const second = call.secondValue(text)
    if (second === undefined) return [...before, ...call.take(part, text)]
    const whole = call.take(part, text.slice(0, second))
    const rest = { function: { name: call.name, arguments: text.slice(second) } }
    const next = this.#begin(undefined)
    if (sentIndex !== undefined) this.#bySentIndex.set(sentIndex, next.call)
    return [...before, ...whole, ...next.before, ...next.call.take(rest, text.slice(second))]
  }

  #withId(part: JsonObject, id: string, { open, sentIndex }: Place): OpenCall | undefined {
    const known = this.#byId.get(id)
    if (known !== undefined) {
      const isElsewhere = sentIndex !== undefined && open === undefined
      return known.isWhole && isOther(known, part, isElsewhere) ? undefined : known
    }
    if (open === undefined || nameIn(part) !== '') return undefined
    // Some providers send the name first and the id later.
    if (!open.hasOwnId && !open.isSent) {
      open.adopt(id)
      this.#byId.set(id, open)
      return open
    }
    return open.isWhole ? undefined : open
  }

  #withoutId(part: JsonObject, open: OpenCall | undefined, isBeside: boolean): OpenCall | undefined {
    const name = nameIn(part)
    if (open === undefined || open.name === '' || name === '') return open
    if (isBeside) return undefined
    return open.isWhole && (name !== open.name || textIn(part) !== '') ? undefined : open
  }

  /** A new call; the previous one is sent first, so that clients see them in order. */
  #begin(id: string | undefined): { readonly call: OpenCall; readonly before: readonly JsonObject[] } {
    const before = this.#calls.at(-1)?.flush() ?? []
    const isTaken = id !== undefined && this.#byId.has(id)
    const call = new OpenCall(this.#calls.length, isTaken ? undefined : id)
    this.#calls.push(call)
    if (id !== undefined) this.#byId.set(id, call)
    return { call, before }
  }
}

/** Whether a part with the id of a whole call begins another one; `isElsewhere`: it has an index of its own. */
function isOther(known: OpenCall, part: JsonObject, isElsewhere: boolean): boolean {
  const text = textIn(part)
  return nameIn(part) !== '' && (isElsewhere || (text !== '' && !known.repeats(text)))
}

/** Where a part belongs by its index: the open call there. */
interface Place {
  readonly open: OpenCall | undefined
  readonly sentIndex: number | undefined
}

/** The index of a choice or of a call; undefined if it has none. */
export function indexOf({ index }: JsonObject): number | undefined {
  const number = typeof index === 'string' && index !== '' ? Number(index) : index
  return typeof number === 'number' && Number.isInteger(number) ? number : undefined
}

function idOf({ id }: JsonObject): string | undefined {
  if (typeof id === 'number') return String(id)
  return typeof id === 'string' && id !== '' ? id : undefined
}
