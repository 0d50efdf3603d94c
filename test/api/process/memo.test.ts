import { describe, expect, it } from 'vitest'
import { createMemo } from '../../../api/process/memo.ts'

/** A memo of this size with the keys that had to be worked out, in their order. */
function counted(atMost: number) {
  const memo = createMemo<string>(atMost)
  const worked: string[] = []
  const ask = (key: string) =>
    memo(key, () => {
      worked.push(key)
      return `value of ${key}`
    })
  return { ask, worked }
}

describe('createMemo', () => {
  it('works a key out once', () => {
    const { ask, worked } = counted(2)
    expect([ask('a'), ask('b'), ask('a')]).toEqual(['value of a', 'value of b', 'value of a'])
    expect(worked).toEqual(['a', 'b'])
  })

  it('forgets the oldest where there are too many', () => {
    const { ask, worked } = counted(2)
    for (const key of ['a', 'b', 'c', 'c', 'b', 'a']) ask(key)
    expect(worked).toEqual(['a', 'b', 'c', 'a'])
  })

  it('remembers neither what was thrown nor what was asked at great length', () => {
    const memo = createMemo<number>(2)
    const fail = () => {
      throw new Error('no value')
    }
    expect(() => memo('a', fail)).toThrow('no value')
    expect(memo('a', () => 1)).toBe(1)
    const long = 'x'.repeat(10_000)
    expect([memo(long, () => 1), memo(long, () => 2)]).toEqual([1, 2])
  })
})
