/** One tool call while its parts arrive. */
import { randomUUID } from 'node:crypto'
import { isObject, withoutNulls, type JsonObject } from '../untrusted/json.ts'
import { JsonScan } from './json-scan.ts'

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
  /** Members that wait for the first part to be sent. */
  #more: Record<string, unknown> = {}
  #moreOfFunction: Record<string, unknown> = {}
  #scan = new JsonScan()

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

  /** Some providers send `{}` before the arguments. */
  get #isPlaceholder(): boolean {
    return !this.isSent && PLACEHOLDER.test(this.#text)
  }

  /** Whether its arguments have begun and not ended. */
  get isHalf(): boolean {
    return this.#scan.isOpen
  }

  /** Whether `text` repeats its whole arguments. */
  isRepeated(text: string): boolean {
    return this.isWhole && text.trim() === this.#text.trim()
  }

  /** The position in `text` where another object or list begins after a whole one; undefined if none does. */
  secondValue(text: string): number | undefined {
    return this.#isPlaceholder ? undefined : this.#scan.secondValue(text)
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
    const mustWait = this.#isFunction && (this.name === '' || this.#text.trim() === '' || this.#isPlaceholder)
    return mustWait ? [] : this.flush()
  }

  /** Takes the function of a part; returns its new members. */
  #takeFunction(inner: unknown, text: string): JsonObject {
    const { name, arguments: _arguments, ...more } = isObject(inner) ? withoutNulls(inner) : {}
    const addedName = typeof name === 'string' ? this.#newOf(name) : ''
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

  /** Some providers repeat the name, or its beginning, in every part; others spread it over several. */
  #newOf(name: string): string {
    return name.startsWith(this.name) ? name.slice(this.name.length) : name
  }

  /** Its first part, if it was not sent yet. */
  flush(): JsonObject[] {
    return this.isSent ? [] : [this.first(false)]
  }

  /** The rest of it: without a part, the arguments are empty. */
  finish(): JsonObject[] {
    if (!this.isSent) return [this.first(true)]
    if (!this.#isFunction || this.#text.trim() !== '') return []
    this.#text = '{}'
    return [{ index: this.index, function: { arguments: '{}' } }]
  }

  /** Its first part; `isOver`: no more arguments follow. */
  first(isOver: boolean): JsonObject {
    this.isSent = true
    if (isOver && this.#text.trim() === '') this.#text = '{}'
    const head = {
      ...this.#more,
      index: this.index,
      id: this.#id ?? makeId(),
      type: this.#type || 'function',
    }
    if (!this.#isFunction) return head
    return { ...head, function: { ...this.#moreOfFunction, name: this.name, arguments: this.#text } }
  }

  get #isFunction(): boolean {
    return this.#type === '' || this.#type === 'function'
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

function makeId(): string {
  return `call_${randomUUID().replaceAll('-', '')}`
}
