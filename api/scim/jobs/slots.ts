/** Slots for concurrent syncs. A sync that waits for its directory lends its slot to another one. */

export interface Slots {
  /** Takes a slot if one is free and nobody waits. */
  tryTake(): boolean
  take(): Promise<void>
  release(): void
}

export function createSlots(count: number): Slots {
  let free = count
  const waiting: (() => void)[] = []
  return {
    tryTake() {
      if (free === 0) return false
      free -= 1
      return true
    },
    async take() {
      if (free > 0) free -= 1
      else await new Promise<void>((resolve) => waiting.push(resolve))
    },
    release() {
      const next = waiting.shift()
      if (next === undefined) free += 1
      else next()
    },
  }
}

/** The slot of one sync. */
export class HeldSlot {
  readonly #slots: Slots
  readonly #onFree: () => void
  #isHeld = true
  #hasEnded = false
  #pauses = 0
  #taking: Promise<void> | undefined

  /** `onFree` is called whenever the slot is free for another sync. */
  constructor(slots: Slots, onFree: () => void) {
    this.#slots = slots
    this.#onFree = onFree
  }

  /** Frees the slot while the sync only pauses, and takes it back afterwards. */
  readonly whilePausing = async <Result>(pause: () => Promise<Result>): Promise<Result> => {
    this.#pauses += 1
    this.#giveAway()
    try {
      return await pause()
    } finally {
      this.#pauses -= 1
      if (this.#pauses === 0) await this.#takeBack()
    }
  }

  end(): void {
    this.#hasEnded = true
    this.#giveAway()
  }

  async #takeBack(): Promise<void> {
    if (this.#isHeld || this.#hasEnded) return
    // Concurrent requests of one sync share its slot.
    this.#taking ??= this.#take()
    await this.#taking
  }

  async #take(): Promise<void> {
    await this.#slots.take()
    this.#taking = undefined
    this.#isHeld = true
    if (this.#hasEnded || this.#pauses > 0) this.#giveAway()
  }

  #giveAway(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#slots.release()
    this.#onFree()
  }
}
