/** One tool call while its parts arrive. */
import { randomUUID } from 'node:crypto'
import { isObject, withoutNulls, type JsonObject } from '../untrusted/json.ts'

/** Some providers send `{}` before the arguments. */
const PLACEHOLDER = /^\s*\{\s*\}\s*$/
const PLACEHOLDER_FIRST = /^\s*\{\s*\}\s*(?=\{)/

export class OpenCall {
  readonly index: number
  /** Whether its first part was sent. */
  isSent = false
  name = ''
  #id: string | undefined
  #type = ''
  #text = ''
  #scan = new JsonScan()
  /** Members that wait for the first part to be sent. */
  #more: Record<string, unknown> = {}
  #moreOfFunction: Record<string, unknown> = {}

  constructor(index: number, id: string | undefined) {
    this.index = index
    this.#id = id
  }

  /** Whether the provider gave it an id. */
  get hasOwnId(): boolean {
    return this.#id !== undefined
  }

  adopt(id: string): void {
    this.#id = id
  }

  /** Whether its arguments are a whole object or list. */
  get isWhole(): boolean {
    return this.#scan.isWhole && !this.#isPlaceholder
  }

  /** Whether its arguments have begun and not ended. */
  get isHalf(): boolean {
    return this.#scan.isOpen
  }

  /** Whether `text` repeats its whole arguments, or adds none to them. */
  repeats(text: string): boolean {
    return this.isWhole && (text.trim() === this.#text.trim() || PLACEHOLDER.test(text))
  }

  /** The position in `text` where another object or list begins after a whole one. */
  secondValue(text: string): number | undefined {
    return this.#isPlaceholder ? undefined : this.#scan.ahead().read(text)
  }

  /**
   * Takes a part, with the `text` of its arguments; returns the parts to send. The first part waits until the arguments
   * begin: then the name is whole, and some clients read it from the first part alone.
   */
  take(part: JsonObject, text: string): JsonObject[] {
    const { id: _id, index: _index, type, function: inner, ...more } = withoutNulls(part)
    if (this.#type === '' && typeof type === 'string') this.#type = type
    const added = { ...more, ...this.#takeFunction(inner, text) }
    if (this.isSent) return Object.keys(added).length > 0 ? [{ ...added, index: this.index }] : []
    Object.assign(this.#more, more)
    const mustWait = this.#isFunction && (this.name === '' || this.#isEmpty)
    return mustWait ? [] : this.flush()
  }

  /** Takes the function of a part; returns its new members. */
  #takeFunction(inner: unknown, text: string): JsonObject {
    const { name, arguments: _arguments, ...more } = isObject(inner) ? withoutNulls(inner) : {}
    // Some providers repeat the name, or its beginning, in every part; others spread it over several.
    const sent = typeof name === 'string' ? name : ''
    const addedName = sent.startsWith(this.name) ? sent.slice(this.name.length) : sent
    this.name += addedName
    if (this.#isPlaceholder && text.trim() !== '') {
      this.#text = ''
      this.#scan = new JsonScan()
    }
    this.#text += text
    this.#scan.read(text)
    Object.assign(this.#moreOfFunction, more)
    const added = { ...more, ...(addedName && { name: addedName }), ...(text && { arguments: text }) }
    return Object.keys(added).length > 0 ? { function: added } : {}
  }

  /** Its first part, if it was not sent yet. */
  flush(): JsonObject[] {
    if (this.isSent) return []
    this.isSent = true
    const head = {
      ...this.#more,
      index: this.index,
      id: this.#id ?? `call_${randomUUID().replaceAll('-', '')}`,
      type: this.#type || 'function',
    }
    if (!this.#isFunction) return [head]
    return [{ ...head, function: { ...this.#moreOfFunction, name: this.name, arguments: this.#text } }]
  }

  /** The rest of it: no more arguments follow. */
  finish(): JsonObject[] {
    const isMissing = this.#isFunction && this.#text.trim() === ''
    if (isMissing) this.#text = '{}'
    if (!this.isSent) return this.flush()
    return isMissing ? [{ index: this.index, function: { arguments: '{}' } }] : []
  }

  get #isFunction(): boolean {
    return this.#type === '' || this.#type === 'function'
  }

  get #isPlaceholder(): boolean {
    return !this.isSent && PLACEHOLDER.test(this.#text)
  }

  get #isEmpty(): boolean {
    return this.#text.trim() === '' || this.#isPlaceholder
  }
}

/** The name in a part, or ''. */
export function nameIn({ function: inner }: JsonObject): string {
  return isObject(inner) && typeof inner['name'] === 'string' ? inner['name'] : ''
}

/** Arguments as text, byte for byte as the model wrote them; some servers send parsed JSON. */
export function textIn({ function: inner }: JsonObject): string {
  const text = isObject(inner) ? inner['arguments'] : undefined
  if (text === undefined || text === null) return ''
  return typeof text === 'string' ? text.replace(PLACEHOLDER_FIRST, '') : JSON.stringify(text)
}

/** Scans JSON text that arrives in pieces for the end of an object or list. */
class JsonScan {
  #depth = 0
  #isInText = false
  #isEscaped = false
  isWhole = false

  /** Whether an object or list has begun and not ended. */
  get isOpen(): boolean {
    return this.#depth > 0
  }

  /** A scan that goes on from here and leaves this one as it is. */
  ahead(): JsonScan {
    const copy = new JsonScan()
    copy.#depth = this.#depth
    copy.#isInText = this.#isInText
    copy.#isEscaped = this.#isEscaped
    copy.isWhole = this.isWhole
    return copy
  }

  /** Reads on; the position of the first object or list that follows a whole one. */
  read(text: string): number | undefined {
    let second: number | undefined
    for (let place = 0; place < text.length; place += 1) {
      const character = text[place]
      const begins = character === '{' || character === '['
      if (begins && this.isWhole && !this.#isInText) second ??= place
      if (this.#isInText) this.#readInText(character)
      else if (character === '"') this.#isInText = true
      else if (begins) this.#move(1)
      else if (character === '}' || character === ']') this.#move(-1)
    }
    return second
  }

  #readInText(character: string | undefined): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (character === '\\') this.#isEscaped = true
    else if (character === '"') this.#isInText = false
  }

  #move(levels: number): void {
    this.#depth += levels
    this.isWhole = this.#depth === 0
  }
}
