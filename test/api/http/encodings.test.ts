/** CONTRACT 4.6: bodies are computed and compressed once. */
import { gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { createBodyCache, type Encoding } from '../../../api/http/encodings.ts'

it('a body is computed once, for all concurrent callers and codings, and again after a failure or once it is evicted', async () => {
  const made: string[] = []
  const cache = createBodyCache<{ body: Buffer }>(3500)
  const ask = (key: string, encoding: Encoding = 'identity') =>
    cache(key, encoding, async () => {
      made.push(key)
      return { body: Buffer.alloc(1000) }
    })
  const [plain, same, packed] = await Promise.all([ask('a'), ask('a'), ask('a', 'gzip'), ask('a', 'gzip')])
  expect(same).toBe(plain)
  expect(gunzipSync(packed.body)).toEqual(plain.body)
  expect(await ask('a', 'gzip')).toBe(packed)
  expect(made).toEqual(['a'])

  const failing = () => cache('b', 'identity', () => Promise.reject(new Error('no')))
  await expect(Promise.all([failing(), failing()])).rejects.toThrow('no')
  for (const key of ['b', 'c', 'd', 'a']) await ask(key)
  expect(made).toEqual(['a', 'b', 'c', 'd', 'a'])
})
