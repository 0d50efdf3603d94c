/** CONTRACT 3: JSON of strangers. */
import { expect, it } from 'vitest'
import { objectsIn } from '../../../api/untrusted/json.ts'

it('finds the objects in a list of anything, and none outside a list', () => {
  expect(objectsIn([null, 'text', { a: 1 }, [{ b: 2 }], 3])).toEqual([{ a: 1 }])
  for (const value of [null, undefined, 'text', { length: 1 }]) expect(objectsIn(value)).toEqual([])
})
