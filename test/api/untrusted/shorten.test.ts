/** CONTRACT 3: texts of strangers in messages are short. */
import { expect, it } from 'vitest'
import { shorten } from '../../../api/untrusted/shorten.ts'

it.each([
  ['a'.repeat(100), 'a'.repeat(100)],
  ['a'.repeat(101), `${'a'.repeat(100)}…`],
  ['😀'.repeat(100), '😀'.repeat(100)],
  ['😀'.repeat(101), `${'😀'.repeat(100)}…`],
  [`${'a'.repeat(99)}😀${'b'.repeat(500)}`, `${'a'.repeat(99)}😀…`],
  [`a${'😀'.repeat(150)}`, `a${'😀'.repeat(99)}…`],
])('shorten keeps a hundred whole characters', (text, shown) => {
  expect(shorten(text)).toBe(shown)
})
