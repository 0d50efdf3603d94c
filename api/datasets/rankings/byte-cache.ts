/** A cache of bounded size of what takes work to make. */

export interface ByteCache<Value> {
  /** The value of `key`: at once where it is kept, else made by `work`, once for all who ask meanwhile. */
  readonly keep: (key: string, work: () => Promise<Value>) => Value | Promise<Value>
}

interface Entry<Value> {
  value: Value | Promise<Value>
  /** 0 until it is made. */
  bytes: number
}

/** What an entry takes beside its bytes. */
const OVERHEAD_BYTES = 500

/** Keeps values of at most `maxBytes` together; those that were asked for longest ago go first. */
export function createByteCache<Value extends { readonly body: { readonly length: number } }>(
  maxBytes: number,
): ByteCache<Value> {
  // In the order of their last use, the latest at the end.
  const entries = new Map<string, Entry<Value>>()
  let latest: string | undefined
  let bytes = 0

  function use(key: string, entry: Entry<Value>): void {
    if (key === latest) return
    entries.delete(key)
    entries.set(key, entry)
    latest = key
  }

  function forget(key: string): void {
    bytes -= entries.get(key)?.bytes ?? 0
    entries.delete(key)
    if (key === latest) latest = undefined
  }

  function count(entry: Entry<Value>, { body }: Value): void {
    entry.bytes = body.length + OVERHEAD_BYTES
    bytes += entry.bytes
    for (const oldest of entries.keys()) {
      if (bytes <= maxBytes) return
      forget(oldest)
    }
  }

  async function make(key: string, work: () => Promise<Value>): Promise<Value> {
    const made = work()
    const entry: Entry<Value> = { value: made, bytes: 0 }
    use(key, entry)
    try {
      const value = await made
      entry.value = value
      if (entries.get(key) === entry) count(entry, value)
      return value
    } catch (error) {
      // What failed is tried again by the next who asks.
      if (entries.get(key) === entry) forget(key)
      throw error
    }
  }

  return {
    keep(key, work) {
      const found = entries.get(key)
      if (found === undefined) return make(key, work)
      use(key, found)
      return found.value
    },
  }
}
