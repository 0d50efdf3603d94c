/** One tool call while its parts come. */
import { randomUUID } from 'node:crypto'
import { isObject, withoutNulls, type JsonObject } from '../../untrusted/json.ts'
import { JsonScan } from './json-scan.ts'

export class OpenCall {
  readonly index: number
  /** Whether its first part went out. */
  isSent = false
  name = ''
  #id: string | undefined
  #type = ''
  #text = ''
  /** What waits for the first part to go out. */
  #more: Record<string, unknown> = {}
  #moreOfFunction: Record<string, unknown> = {}
  readonly #scan = new JsonScan()

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
    return this.#scan.isWhole
  }

  /** Whether its arguments have begun and are not over. */
  get isHalf(): boolean {
    return this.#scan.isOpen
  }

  /** Whether `text` says its whole arguments once more. */
  isRepeated(text: string): boolean {
    return this.isWhole && text.trim() === this.#text.trim()
  }

  /** Where in `text` another object or list begins after a whole one; undefined where none does. */
  secondValue(text: string): number | undefined {
    return this.#scan.secondValue(text)
  }

  /**
   * Takes a part, with the `text` of its arguments; gives what goes out now. The first part waits for the arguments to
   * begin: by then the name is whole, of which some clients read the first part alone.
   */
  take(part: JsonObject, text: string): JsonObject[] {
    const { id: _id, index: _index, type, function: inner, ...more } = withoutNulls(part)
    if (this.#type === '' && typeof type === 'string') this.#type = type
    const added = { ...more, ...this.#takeFunction(inner, text) }
    if (this.isSent) return Object.keys(added).length > 0 ? [{ ...added, index: this.index }] : []
    Object.assign(this.#more, more)
    const mustWait = this.#isFunction && (this.name === '' || this.#text.trim() === '')
    return mustWait ? [] : this.flush()
  }

  /** Takes the function of a part; gives what is new in it. */
  #takeFunction(inner: unknown, text: string): JsonObject {
    const { name, arguments: _arguments, ...more } = isObject(inner) ? withoutNulls(inner) : {}
    const addedName = typeof name === 'string' ? this.#newOf(name) : ''
    this.name += addedName
    this.#text += text
    this.#scan.read(text)
    Object.assign(this.#moreOfFunction, more)
    const added = { ...more, ...(addedName && { name: addedName }), ...(text && { arguments: text }) }
    return Object.keys(added).length > 0 ? { function: added } : {}
  }

  /** Some repeat the name in every part, or all that is known of it; others spread it over several. */
  #newOf(name: string): string {
    return name.startsWith(this.name) ? name.slice(this.name.length) : name
  }

  /** Its first part, where that did not go out yet. */
  flush(): JsonObject[] {
    return this.isSent ? [] : [this.first(false)]
  }

  /** What is left to say of it: arguments of which nothing came are known to be empty. */
  finish(): JsonObject[] {
    if (!this.isSent) return [this.first(true)]
    if (!this.#isFunction || this.#text.trim() !== '') return []
    this.#text = '{}'
    return [{ index: this.index, function: { arguments: '{}' } }]
  }

  /** Its first part; `isOver`: no more arguments come. */
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

/** The name in a part; empty where there is none. */
export function nameIn({ function: inner }: JsonObject): string {
  return isObject(inner) && typeof inner['name'] === 'string' ? inner['name'] : ''
}

/** Arguments as text, byte for byte as the model wrote them: some servers send what they parsed. */
export function textIn({ function: inner }: JsonObject): string {
  const text = isObject(inner) ? inner['arguments'] : undefined
  if (text === undefined || text === null) return ''
  return typeof text === 'string' ? text : JSON.stringify(text)
}

function makeId(): string {
  return `call_${randomUUID().replaceAll('-', '')}`
}
