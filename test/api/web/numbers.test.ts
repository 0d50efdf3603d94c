import { expect, it } from 'vitest'
import { counted } from '../../../api/web/numbers.ts'

it.each([
  [0n, '0 apps'],
  [1n, '1 app'],
  [2345n, '2,345 apps'],
  [1, '1 app'],
])('counted pluralizes the noun of %s', (number, text) => {
  expect(counted(number, 'app')).toBe(text)
})
