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

it.each<Encoding>(['identity', 'gzip'])(
  'a caller who leaves while others wait for the same body, in %s, fails alone',
  async (encoding) => {
    const cache = createBodyCache<{ body: Buffer }>(3500)
    const leaving = new AbortController()
    const left = cache(
      'a',
      encoding,
      () =>
        new Promise((_resolve, reject) =>
          leaving.signal.addEventListener('abort', () => reject(new Error('cut'))),
        ),
      leaving.signal,
    )
    const staying = cache(
      'a',
      encoding,
      async () => ({ body: Buffer.alloc(1) }),
      new AbortController().signal,
    )
    leaving.abort(new Error('left'))
    await expect(left).rejects.toThrow('left')
    expect((await staying).body.length).toBeGreaterThan(0)
  },
)
