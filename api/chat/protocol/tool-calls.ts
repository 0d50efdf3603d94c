/** Repairs of tool calls, so that clients can put the calls together whatever a provider makes of them. */
import { objectsIn, type JsonObject } from '../../untrusted/json.ts'
import { nameIn, OpenCall, textIn } from './open-tool-call.ts'

/** The tool calls of a whole message, each with type, name, arguments as text, and an id that no other one has. */
export function repairToolCalls(calls: unknown): JsonObject[] {
  const known = new Set<string>()
  return objectsIn(calls).map((call) => {
    const id = idOf(call)
    const open = new OpenCall(0, id === undefined || known.has(id) ? undefined : id)
    if (id !== undefined) known.add(id)
    open.take(call, textIn(call))
    const { index: _index, ...whole } = open.first(true)
    return whole
  })
}

/** The function call of a message in the form that tools have replaced, with arguments as text. */
export function repairFunctionCall(call: JsonObject): unknown {
  const open = new OpenCall(0, undefined)
  const part = { function: call }
  open.take(part, textIn(part))
  return open.first(true)['function']
}

/**
 * The tool calls of one choice of a stream: each part gets the index of its call, counted from 0 without gaps.
 * Providers give every call the index 0, leave the index out, or repeat id and name in every part.
 * - An id that is new begins a call, whatever its index, unless it comes without a name amid the arguments of another:
 *   some make up an id for each part.
 * - One that is known begins a call where a whole one is followed by a name and other arguments, or by a name at another
 *   index: some give all calls one id.
 * - A part without an index belongs to the last call. Where there is no id either, a call begins with a name beside
 *   another one, and where a whole value of arguments is followed by another.
 */
export class ToolCallStream {
  readonly #calls: OpenCall[] = []
  readonly #byId = new Map<string, OpenCall>()
  readonly #bySentIndex = new Map<number, OpenCall>()
  #functionCall: OpenCall | undefined

  /** What it means for the end of the choice that something was called; undefined where nothing was. */
  get called(): 'tool_calls' | 'function_call' | undefined {
    if (this.#calls.length > 0) return 'tool_calls'
    return this.#functionCall === undefined ? undefined : 'function_call'
  }

  /** Whether a call is in the midst of its arguments. */
  get isHalf(): boolean {
    return this.#calls.some((call) => call.isHalf) || this.#functionCall?.isHalf === true
  }

  /** What the parts of one delta make for the client. */
  read(parts: unknown): JsonObject[] {
    return objectsIn(parts).flatMap((part, position) => this.#readPart(part, position > 0))
  }

  /** The same for a part of the one call in the form that tools have replaced. */
  readFunctionCall(call: JsonObject): unknown {
    this.#functionCall ??= new OpenCall(0, undefined)
    const part = { function: call }
    return this.#functionCall.take(part, textIn(part))[0]?.['function']
  }

  /** What is left to say once the choice is over: no more arguments come. */
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
    const text = id !== undefined && call.isRepeated(sent) ? '' : sent
    const second = id === undefined ? call.secondValue(text) : undefined
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
    // Some name the call first and give its id later.
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

  /** A new call; the one before it goes out first, so that clients see them in their order. */
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
  return nameIn(part) !== '' && (isElsewhere || (text !== '' && !known.isRepeated(text)))
}

/** Where a part belongs by its index: the call that is open there. */
interface Place {
  readonly open: OpenCall | undefined
  readonly sentIndex: number | undefined
}

/** The index of a choice or of a call; undefined where it has none. */
export function indexOf({ index }: JsonObject): number | undefined {
  const number = typeof index === 'string' && index !== '' ? Number(index) : index
  return typeof number === 'number' && Number.isInteger(number) ? number : undefined
}

function idOf({ id }: JsonObject): string | undefined {
  if (typeof id === 'number') return String(id)
  return typeof id === 'string' && id !== '' ? id : undefined
}
