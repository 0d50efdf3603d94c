/** Scans JSON text that arrives in pieces for the end of an object or list. */
export class JsonScan {
  #depth = 0
  #isInText = false
  #isEscaped = false
  #isWhole = false

  /** Whether an object or list was read to its end. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /** Whether an object or list has begun and not ended. */
  get isOpen(): boolean {
    return this.#depth > 0
  }

  read(text: string): void {
    this.#scan(text, false)
  }

  /** The position in `text` where another object or list begins after a whole one; does not consume `text`. */
  secondValue(text: string): number | undefined {
    const ahead = new JsonScan()
    ahead.#depth = this.#depth
    ahead.#isInText = this.#isInText
    ahead.#isEscaped = this.#isEscaped
    ahead.#isWhole = this.#isWhole
    return ahead.#scan(text, true)
  }

  #scan(text: string, stopsAtSecond: boolean): number | undefined {
    for (let place = 0; place < text.length; place += 1) {
      const character = text[place]
      const begins = character === '{' || character === '['
      if (stopsAtSecond && begins && this.#isWhole && !this.#isInText) return place
      if (this.#isInText) this.#readInText(character)
      else if (character === '"') this.#isInText = true
      else if (begins) this.#open()
      else if (character === '}' || character === ']') this.#close()
    }
    return undefined
  }

  #readInText(character: string | undefined): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (character === '\\') this.#isEscaped = true
    else if (character === '"') this.#isInText = false
  }

  #open(): void {
    this.#depth += 1
    this.#isWhole = false
  }

  #close(): void {
    this.#depth -= 1
    if (this.#depth === 0) this.#isWhole = true
  }
}
