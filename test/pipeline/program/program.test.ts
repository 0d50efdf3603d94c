/** CONTRACT 9: exit codes of the programs. */
import { DatabaseSync } from 'node:sqlite'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { failureText } from '../../../pipeline/program/program.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** The text of what `work` throws. */
function textOf(work: () => void): string {
  try {
    work()
  } catch (error) {
    return failureText(error)
  }
  throw new Error('Nothing was thrown')
}

describe('a command reports in a sentence without a stack that', () => {
  it('another process has the store locked', () => {
    const path = join(folders.make(), 'store')
    using holder = new DatabaseSync(path)
    holder.exec('BEGIN EXCLUSIVE')
    using other = new DatabaseSync(path, { timeout: 0 })
    expect(textOf(() => other.exec('CREATE TABLE t (a)'))).toBe('database is locked')
  })

  it('the store has no room', () => {
    using store = new DatabaseSync(':memory:')
    store.exec('PRAGMA max_page_count = 2')
    expect(textOf(() => store.exec('CREATE TABLE t AS SELECT randomblob(100000) AS a'))).toBe(
      'database or disk is full',
    )
  })

  it('the disk has no room', () => {
    expect(textOf(() => writeFileSync('/dev/full', 'x'))).toMatch(/^ENOSPC: no space left on device, write$/)
  })
})

it('an unexpected error is printed with its stack', () => {
  expect(failureText(new TypeError('undefined is no function'))).toMatch(/^Crashed: TypeError: .*\n {4}at /)
})
