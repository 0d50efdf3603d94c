import { expect, it } from 'vitest'
import { measureJson, objectsIn } from '../../../api/untrusted/json.ts'

it('finds the objects in a list of anything, and none outside a list', () => {
  expect(objectsIn([null, 'text', { a: 1 }, [{ b: 2 }], 3])).toEqual([{ a: 1 }])
  for (const value of [null, undefined, 'text', { length: 1 }]) expect(objectsIn(value)).toEqual([])
})

it.each([
  ['null', 0, 1],
  ['[]', 1, 2],
  ['{"a":[1,{"b":2}]}', 3, 7],
  [String.raw`["[[", "a\"[", "\\", "{\\\"["]`, 1, 5],
  ['"[[[', 0, 1],
  [']]][', 0, 2],
])('measures %s: levels %j, values %j', (text, levels, values) => {
  expect(measureJson(Buffer.from(text), { levels: 9, values: 99 })).toEqual({ levels, values })
})

it('stops measuring at a limit', () => {
  const deep = Buffer.from('['.repeat(1000))
  expect(measureJson(deep, { levels: 3, values: 99 }).levels).toBe(4)
  expect(measureJson(deep, { levels: 99, values: 3 }).values).toBe(4)
})
