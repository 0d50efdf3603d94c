import { LRUCache } from 'lru-cache'
import { encode, type Encoding } from './encodings.ts'

/**
 * Returns the cached value of `key` with its body in this coding, or what `make` returns, which runs once for
 * concurrent callers, whatever their coding. Failures are not cached.
 */
export type BodyCache<Value> = (key: string, encoding: Encoding, make: () => Promise<Value>) => Promise<Value>

/** Bytes of an entry beside its body. */
const OVERHEAD_BYTES = 500

/** An LRU cache for at most `maxBytes` of bodies. */
export function createBodyCache<Value extends { readonly body: Buffer }>(maxBytes: number): BodyCache<Value> {
  const cache = new LRUCache<string, Value, () => Promise<Value>>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length + OVERHEAD_BYTES,
    fetchMethod: (_key, _stale, { context: make }) => make(),
    // Waiting callers get the value even if it is evicted meanwhile.
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
