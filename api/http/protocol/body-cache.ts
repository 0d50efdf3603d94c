import { LRUCache } from 'lru-cache'
import { encode, type Encoding } from './encodings.ts'

/**
 * Gives the value of `key` with its body in this coding: the one that is kept, else what `make` gives, which is called
 * once for all who ask meanwhile, in whatever coding. What failed is made again for the next who asks.
 */
export type BodyCache<Value> = (key: string, encoding: Encoding, make: () => Promise<Value>) => Promise<Value>

/** What an entry takes beside its bytes. */
const OVERHEAD_BYTES = 500

/** Keeps bodies of at most `maxBytes` together; those that were asked for longest ago go first. */
export function createBodyCache<Value extends { readonly body: Buffer }>(maxBytes: number): BodyCache<Value> {
  const cache = new LRUCache<string, Value, () => Promise<Value>>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length + OVERHEAD_BYTES,
    fetchMethod: (_key, _stale, { context: make }) => make(),
    // Who waits gets the value also when others have taken its place meanwhile.
    ignoreFetchAbort: true,
  })

  const get: BodyCache<Value> = (key, encoding, make) => {
    const makeCoded = async () => {
      const plain = await get(key, 'identity', make)
      return { ...plain, body: await encode(plain.body, encoding) }
    }
    const context = encoding === 'identity' ? make : makeCoded
    return cache.forceFetch(`${encoding} ${key}`, { context })
  }
  return get
}
