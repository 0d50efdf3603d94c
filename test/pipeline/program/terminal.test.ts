/** Output of every program: counts with nouns, text for a terminal, wrapped lines. */
import { expect, it } from 'vitest'
import { pluralize, printable, wrap } from '../../../pipeline/program/terminal.ts'

it.each([
  [0, '0 days'],
  [1, '1 day'],
  [2, '2 days'],
  ['1', '1 day'],
  ['11', '11 days'],
  [1n, '1 day'],
  [10_000_000_000_000_000_001n, '10000000000000000001 days'],
])('pluralize gives %s a noun with the right ending', (count, text) => {
  expect(pluralize(count, 'day')).toBe(text)
})

it('control characters do not reach the terminal, tabs and line ends do', () => {
  expect(printable('a\u001B[2Jb\tc\nd')).toBe('a\uFFFD[2Jb\tc\nd')
})

it('wrap breaks text at 100 columns, each line after the indent', () => {
  const lines = wrap('word '.repeat(60).trim(), '    ').split('\n')
  expect(lines.join(' ').split(/\s+/).filter(Boolean)).toHaveLength(60)
  for (const line of lines) expect(line).toMatch(/^ {4}word.{0,92}$/)
})

it('wrap leaves a word longer than a line whole', () => {
  expect(wrap('x'.repeat(120), '  ')).toBe(`  ${'x'.repeat(120)}`)
})
