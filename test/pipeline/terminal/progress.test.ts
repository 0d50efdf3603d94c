import { describe, expect, it } from 'vitest'
import { createProgress } from '../../../pipeline/terminal/progress.ts'

/** What a progress writes for one stage of 40 steps. */
function written(isTTY: boolean): string {
  let text = ''
  const progress = createProgress({ isTTY, write: (piece: string) => (text += piece) })
  for (let done = 1; done <= 40; done += 1) progress.step('load', done, 40)
  progress.finished('load', '40 days counted', 1234)
  progress.note('a note')
  return text
}

describe('createProgress', () => {
  it('redraws a bar on a terminal', () => {
    const text = written(true)
    expect(text).toContain(`\r\u001B[2Kload     ${'█'.repeat(12)}${'░'.repeat(12)} 20 of 40`)
    expect(text.match(/\n/g)).toHaveLength(2)
  })

  it('writes plain lines elsewhere, one for each tenth of a long stage', () => {
    const lines = written(false).split('\n')
    expect(lines.slice(0, 2)).toEqual(['load: 4 of 40', 'load: 8 of 40'])
    expect(lines.slice(10)).toEqual(['load     40 days counted  1.23 s', 'a note', ''])
    expect(written(false)).not.toContain('\u001B')
  })

  it('notes nothing that a terminal would obey', () => {
    let text = ''
    createProgress({ write: (piece: string) => (text += piece) }).note('a\u001B[2Jb\u009Bc\td\n  e')
    expect(text).toBe('a\uFFFD[2Jb\uFFFDc\td\n  e\n')
  })

  it('does not report the steps of a short stage in plain output', () => {
    let text = ''
    createProgress({ write: (piece: string) => (text += piece) }).step('load', 1, 3)
    expect(text).toBe('')
  })
})
