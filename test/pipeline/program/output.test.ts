/** CONTRACT 9: the progress of a run on a terminal and elsewhere, and failures as sentences. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { failureText, programOf } from '../../../pipeline/program/program.ts'
import { createProgress } from '../../../pipeline/terminal/progress.ts'
import { makeFolder } from '../../support/folders.ts'

/** The output of a progress for one stage of 40 steps. */
function written(isTTY: boolean): string {
  let text = ''
  const progress = createProgress({ isTTY, write: (piece: string) => (text += piece) })
  for (let done = 1; done <= 40; done += 1) progress.step('load', done, 40)
  progress.finished('load', '40 days counted', 1234)
  progress.note('a\u001B[2Jb\u009Bc\td\n  e')
  return text
}

it('progress redraws a line on a terminal, and writes one plain line per stage elsewhere; no control character gets there', () => {
  const text = written(true)
  expect(text).toContain('\r\u001B[2Kload     20 of 40')
  expect(text.match(/\n/g)).toHaveLength(3)
  expect(written(false)).toBe('load     40 days counted  1.23 s\na\uFFFD[2Jb\uFFFDc\td\n  e\n')
})

it('a flag is switched off by its name with no- before it', async () => {
  const given: unknown[] = []
  const run = programOf('npm run schedule', {
    summary: 'starts',
    options: { 'catch-up': z.boolean().default(true) },
    work: async (_, options) => void given.push(options),
  })
  const silent = { environment: {}, print: () => undefined, note: () => undefined }
  for (const args of [['--no-catch-up'], []]) expect(await run({ ...silent, args })).toBe(0)
  expect(given).toEqual([{ 'catch-up': false }, { 'catch-up': true }])
})

describe('a failure', () => {
  /** The text of what `work` throws. */
  function textOf(work: () => void): string {
    try {
      work()
    } catch (error) {
      return failureText(error)
    }
    throw new Error('Nothing was thrown')
  }

  it('of the system is a sentence without a stack: a locked or full store, a full disk', () => {
    const path = join(makeFolder(), 'store')
    using holder = new DatabaseSync(path)
    holder.exec('BEGIN EXCLUSIVE')
    using other = new DatabaseSync(path, { timeout: 0 })
    expect(textOf(() => other.exec('CREATE TABLE t (a)'))).toBe('database is locked')
    using store = new DatabaseSync(':memory:')
    store.exec('PRAGMA max_page_count = 2')
    const filling = () => store.exec('CREATE TABLE t AS SELECT randomblob(100000) AS a')
    expect(textOf(filling)).toBe('database or disk is full')
    expect(textOf(() => writeFileSync('/dev/full', 'x'))).toMatch(
      /^ENOSPC: no space left on device, write. Free some; npm run nightly -- prune removes old snapshots$/,
    )
  })

  it('of memory names the settings', () => {
    const message = 'Out of Memory Error: failed to offload data block (800.0 KiB/976.5 KiB used).\nA hint'
    expect(failureText(new Error(message))).toMatch(/used\)\. Raise PIPELINE_MEMORY or PIPELINE_SPILL$/)
  })

  it('that nobody expects is printed with its stack, which a notice has not', () => {
    const error = new TypeError('undefined is no function')
    expect(failureText(error, { withStack: true })).toMatch(/^Crashed: TypeError: .*\n {4}at /)
    expect(failureText(error)).toBe('Crashed: undefined is no function')
  })
})
