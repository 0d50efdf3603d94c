/**
 * CONTRACT 9: output of every program: counts with nouns, text for a terminal, wrapped lines, the progress of a run.
 */
import { describe, expect, it } from 'vitest'
import { pluralize, printable, wrap } from '../../../pipeline/program/terminal.ts'
import { createBriefProgress, createProgress } from '../../../pipeline/terminal/progress.ts'

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

/** The output of a progress for one stage of 40 steps. */
function written(isTTY: boolean): string {
  let text = ''
  const progress = createProgress({ isTTY, write: (piece: string) => (text += piece) })
  for (let done = 1; done <= 40; done += 1) progress.step('load', done, 40)
  progress.finished('load', '40 days counted', 1234)
  progress.note('a note')
  return text
}

describe('createProgress', () => {
  it('progress redraws a bar on a terminal', () => {
    const text = written(true)
    expect(text).toContain(`\r\u001B[2Kload     ${'█'.repeat(12)}${'░'.repeat(12)} 20 of 40`)
    expect(text.match(/\n/g)).toHaveLength(2)
  })

  it('progress writes one plain line per stage elsewhere', () => {
    expect(written(false)).toBe('load     40 days counted  1.23 s\na note\n')
  })

  it('brief progress writes one line for a whole run', () => {
    let text = ''
    const { progress, end } = createBriefProgress(
      createProgress({ write: (piece: string) => (text += piece) }),
    )
    progress.finished('load', '40 days counted', 1000)
    progress.finished('rank', '3 apps', 250)
    progress.note('a note')
    progress.finished('publish', 'done', 500)
    end()
    expect(text).toBe('a note\nrun      3 apps  1.75 s\n')
  })

  it('progress writes no terminal control characters', () => {
    let text = ''
    createProgress({ write: (piece: string) => (text += piece) }).note('a\u001B[2Jb\u009Bc\td\n  e')
    expect(text).toBe('a\uFFFD[2Jb\uFFFDc\td\n  e\n')
  })
})
