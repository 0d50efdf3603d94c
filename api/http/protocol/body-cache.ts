import { LRUCache } from 'lru-cache'
import { encode, type Encoding } from './encodings.ts'

/**
 * Returns the cached value of `key` with its body in this coding, or what `make` returns, which runs once for
 * concurrent callers, whatever their coding. Failures are not cached.
 * @param signal ends this caller's `make`; if it was another caller's that ended, this one's runs.
 */
export type BodyCache<Value> = (
  key: string,
  encoding: Encoding,
  make: () => Promise<Value>,
  signal?: AbortSignal,
) => Promise<Value>

/** Bytes of an entry beside its body. */
const OVERHEAD_BYTES = 500

/** The caller whose `make` ran has left. */
class CallerLeft extends Error {}

/** An LRU cache for at most `maxBytes` of bodies. */
export function createBodyCache<Value extends { readonly body: Buffer }>(maxBytes: number): BodyCache<Value> {
  const cache = new LRUCache<string, Value, () => Promise<Value>>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length + OVERHEAD_BYTES,
    fetchMethod: (_key, _stale, { context: make }) => make(),
    // Waiting callers get the value even if it is evicted meanwhile.
    ignoreFetchAbort: true,
  })

  const get: BodyCache<Value> = async (key, encoding, make, signal) => {
    const makeOwn = async () => {
      try {
        return await make()
      } catch (error) {
        throw signal?.aborted === true ? new CallerLeft('left', { cause: error }) : error
      }
    }
    const makeCoded = async () => {
      const plain = await get(key, 'identity', make, signal)
      return { ...plain, body: await encode(plain.body, encoding) }
    }
    for (;;) {
      try {
        return await cache.forceFetch(`${encoding} ${key}`, {
          context: encoding === 'identity' ? makeOwn : makeCoded,
        })
      } catch (error) {
        if (!(error instanceof CallerLeft)) throw error
        signal?.throwIfAborted()
      }
    }
  }
  return get
}
