/** CONTRACT 4.6: which coding a client prefers, and bodies that are compressed once. */
import { gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { createBodyCache, type Encoding } from '../../../api/http/encodings.ts'

function make(maxBytes: number) {
  const made: string[] = []
  const cache = createBodyCache<{ body: Buffer }>(maxBytes)
  const ask = (key: string, bytes = 1000, encoding: Encoding = 'identity') =>
    cache(key, encoding, async () => {
      made.push(key)
      return { body: Buffer.alloc(bytes) }
    })
  return { cache, made, ask }
}

it('computes a value once, also for concurrent callers', async () => {
  const { ask, made } = make(100_000)
  const [first, second] = await Promise.all([ask('a'), ask('a')])
  expect(second).toBe(first)
  expect(await ask('a')).toBe(first)
  expect(made).toEqual(['a'])
})

it('computes a value once for all its codings', async () => {
  const { ask, made } = make(100_000)
  const [plain, packed] = await Promise.all([ask('a'), ask('a', 1000, 'gzip'), ask('a', 1000, 'gzip')])
  expect(gunzipSync(packed.body)).toEqual(plain.body)
  expect(await ask('a', 1000, 'gzip')).toBe(packed)
  expect(made).toEqual(['a'])
})

it('evicts the least recently used value when it is full', async () => {
  const { ask, made } = make(3500)
  await ask('a')
  await ask('b')
  await ask('a')
  await ask('c')
  await ask('a')
  await ask('b')
  expect(made).toEqual(['a', 'b', 'c', 'b'])
})

it('does not store a value larger than the cache', async () => {
  const { ask, made } = make(3000)
  await ask('a', 5000)
  await ask('a', 5000)
  expect(made).toEqual(['a', 'a'])
})

it('counts nothing that was evicted while it was computed', async () => {
  const { cache, ask, made } = make(3000)
  for (const slow of ['a', 'b']) {
    const { promise, resolve } = Promise.withResolvers<{ body: Buffer }>()
    const asked = cache(slow, 'identity', () => promise)
    await ask('large', 5000)
    resolve({ body: Buffer.alloc(1000) })
    await asked
  }
  await ask('c')
  await ask('c')
  expect(made).toEqual(['large', 'large', 'c'])
})

it('retries after a failure', async () => {
  const { cache, ask } = make(3000)
  const failing = () => cache('a', 'identity', () => Promise.reject(new Error('no')))
  await expect(Promise.all([failing(), failing()])).rejects.toThrow('no')
  expect((await ask('a')).body).toHaveLength(1000)
})
