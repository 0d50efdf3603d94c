import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FAILURES, readFailure } from '../../../api/scim/failures.ts'
import { REPOSITORY } from '../../support/processes.ts'

const readme = readFileSync(join(REPOSITORY, 'api', 'scim', 'README.md'), 'utf8')

describe('FAILURES', () => {
  it.each(Object.entries(FAILURES))('the README lists the remedy for %s', (_failure, sentence) => {
    expect(readme).toMatch(new RegExp(`^\\| ${sentence} +\\| \\w`, 'm'))
  })

  it('has a sentence of its own for each cause', () => {
    const sentences = Object.values(FAILURES)
    expect(new Set(sentences).size).toBe(sentences.length)
  })
})

describe('readFailure', () => {
  it('treats an unknown cause as an internal one', () => {
    expect(readFailure('timed_out')).toBe('timed_out')
    expect(readFailure('of_a_later_version')).toBe('internal')
    expect(readFailure('toString')).toBe('internal')
  })
})
