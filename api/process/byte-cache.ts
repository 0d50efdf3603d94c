import { LRUCache } from 'lru-cache'

/**
 * Gives the value of `key`: the one that is kept, else what `make` gives, which is called once for all who ask
 * meanwhile. What failed is made again for the next who asks.
 */
export type ByteCache<Value> = (key: string, make: () => Promise<Value>) => Promise<Value>

/** What an entry takes beside its bytes. */
const OVERHEAD_BYTES = 500

/** Keeps values of at most `maxBytes` together; those that were asked for longest ago go first. */
export function createByteCache<Value extends { readonly body: { readonly length: number } }>(
  maxBytes: number,
): ByteCache<Value> {
  const cache = new LRUCache<string, Value, () => Promise<Value>>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length + OVERHEAD_BYTES,
    fetchMethod: (_key, _stale, { context: make }) => make(),
    // Who waits gets the value also when others have taken its place meanwhile.
    ignoreFetchAbort: true,
  })
  return (key, make) => cache.forceFetch(key, { context: make })
}
