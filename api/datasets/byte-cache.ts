/** A cache of bounded size of what takes work to make. */

export interface ByteCache<Value> {
  /** The value of `key`, made by `work` where there is none yet; those who ask meanwhile wait for the same one. */
  readonly keep: (key: string, work: () => Promise<Value>) => Promise<Value>
}

interface Entry<Value> {
  readonly value: Promise<Value>
  /** 0 until it is made. */
  bytes: number
}

/** What an entry takes beside its bytes. */
const OVERHEAD_BYTES = 500

/** Keeps values of at most `maxBytes` together; those that were asked for longest ago go first. */
export function createByteCache<Value extends { readonly body: Buffer }>(maxBytes: number): ByteCache<Value> {
  // In the order of their last use, the latest at the end.
  const entries = new Map<string, Entry<Value>>()
  let bytes = 0

  function forget(key: string): void {
    bytes -= entries.get(key)?.bytes ?? 0
    entries.delete(key)
  }

  function count(entry: Entry<Value>, { body }: Value): void {
    entry.bytes = body.length + OVERHEAD_BYTES
    bytes += entry.bytes
    for (const oldest of entries.keys()) {
      if (bytes <= maxBytes) return
      forget(oldest)
    }
  }

  return {
    async keep(key, work) {
      const found = entries.get(key)
      if (found !== undefined) {
        entries.delete(key)
        entries.set(key, found)
        return await found.value
      }
      const entry: Entry<Value> = { value: work(), bytes: 0 }
      entries.set(key, entry)
      try {
        const value = await entry.value
        if (entries.get(key) === entry) count(entry, value)
        return value
      } catch (error) {
        // What failed is tried again by the next who asks.
        if (entries.get(key) === entry) forget(key)
        throw error
      }
    },
  }
}
