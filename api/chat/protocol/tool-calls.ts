/** Repairs of tool calls, so that clients can put the calls together whatever a provider makes of them. */
import { objectsIn, type JsonObject } from '../../untrusted/json.ts'
import { nameIn, OpenCall, textIn } from './open-tool-call.ts'

/** The tool calls of a whole message, each with id, type, name and arguments as text. */
export function repairToolCalls(calls: unknown): JsonObject[] {
  return objectsIn(calls).map((call) => {
    const open = new OpenCall(0, idOf(call))
    open.take(call, textIn(call))
    const { index: _index, ...whole } = open.first(true)
    return whole
  })
}

/**
 * The tool calls of one choice of a stream: each part gets the index of its call, counted from 0 without gaps.
 * Providers give every call the index 0, leave the index out, or repeat id and name in every part. An id that is new
 * begins a call, whatever its index; a part without an index belongs to the last. Where there is no id either, a call
 * begins with a name beside another one, and where a whole value of arguments is followed by another.
 */
export class ToolCallStream {
  readonly #calls: OpenCall[] = []
  readonly #byId = new Map<string, OpenCall>()
  readonly #bySentIndex = new Map<number, OpenCall>()

  /** How many calls there are so far. */
  get count(): number {
    return this.#calls.length
  }

  /** What the parts of one delta make for the client. */
  read(parts: unknown): JsonObject[] {
    return objectsIn(parts).flatMap((part, position) => this.#readPart(part, position > 0))
  }

  /** What is left to say once the choice is over: no more arguments come. */
  finish(): JsonObject[] {
    return this.#calls.flatMap((call) => call.finish())
  }

  #readPart(part: JsonObject, isBeside: boolean): JsonObject[] {
    const sentIndex = indexOf(part)
    const open = sentIndex === undefined ? this.#calls.at(-1) : this.#bySentIndex.get(sentIndex)
    const id = idOf(part)
    const known =
      id === undefined
        ? this.#withoutId(part, open, isBeside && sentIndex === undefined)
        : this.#withId(part, id, open)
    const { call, before } = known === undefined ? this.#begin(id) : { call: known, before: [] }
    if (sentIndex !== undefined) this.#bySentIndex.set(sentIndex, call)
    const text = textIn(part)
    const second = id === undefined ? call.secondValue(text) : undefined
    if (second === undefined) return [...before, ...call.take(part, text)]
    const whole = call.take(part, text.slice(0, second))
    const rest = { function: { name: call.name, arguments: text.slice(second) } }
    const next = this.#begin(undefined)
    if (sentIndex !== undefined) this.#bySentIndex.set(sentIndex, next.call)
    return [...before, ...whole, ...next.before, ...next.call.take(rest, text.slice(second))]
  }

  #withId(part: JsonObject, id: string, open: OpenCall | undefined): OpenCall | undefined {
    const known = this.#byId.get(id)
    if (known !== undefined || open === undefined) return known
    // Some name the call first and give its id later.
    if (!open.hasOwnId && !open.isSent && nameIn(part) === '') {
      open.adopt(id)
      this.#byId.set(id, open)
      return open
    }
    return undefined
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
    const call = new OpenCall(this.#calls.length, id)
    this.#calls.push(call)
    if (id !== undefined) this.#byId.set(id, call)
    return { call, before }
  }
}

function indexOf({ index }: JsonObject): number | undefined {
  const number = typeof index === 'string' && index !== '' ? Number(index) : index
  return typeof number === 'number' && Number.isInteger(number) ? number : undefined
}

function idOf(call: JsonObject): string | undefined {
  return typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : undefined
}
