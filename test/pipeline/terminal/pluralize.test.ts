import { expect, it } from 'vitest'
import { counted } from '../../../pipeline/terminal/pluralize.ts'

it.each([
  [0, '0 days'],
  [1, '1 day'],
  [2, '2 days'],
  ['1', '1 day'],
  ['11', '11 days'],
  [1n, '1 day'],
  [10_000_000_000_000_000_001n, '10000000000000000001 days'],
])('%s of a noun', (count, text) => {
  expect(counted(count, 'day')).toBe(text)
})
