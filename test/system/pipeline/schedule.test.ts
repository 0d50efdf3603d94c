/** CONTRACT 9: the nightly schedule as a process: makes up for a missed night, starts on time, and ends on request. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { until } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { LONG } from '../../support/long.ts'
import { deliver, withApps } from '../../support/pipeline/nightly.ts'
import { REPOSITORY, startProgram } from '../../support/processes.ts'

const NEVER = '0 0 29 2 *'
const EVERY_SECOND = '* * * * * *'

function folder(): string {
  const dataDir = withApps('One')
  deliver(dataDir, '2026-01-06', ['1,1,0'])
  return dataDir
}

function start(dataDir: string, expression: string, ...args: readonly string[]) {
  return startProgram('pipeline/schedule.ts', args, { DATA_DIR: dataDir, NIGHTLY_SCHEDULE: expression })
}

it('makes up for a missed night at its start, and ends on SIGTERM', async () => {
  const dataDir = folder()
  const { output, stop } = start(dataDir, NEVER)
  await until(() => existsSync(join(dataDir, 'current', 'app-rankings.duckdb')))
  await until(() => output.stderr.includes('the next nightly run'))
  expect(output.stderr).toMatch(/the next nightly run is at \d{4}-02-29T00:00:00\.000Z/)
  expect(await stop()).toMatchObject({ signal: 'SIGTERM' })
})

it('starts no run at its start with --no-catch-up', LONG, async () => {
  const dataDir = folder()
  const { output, stop } = start(dataDir, NEVER, '--no-catch-up')
  await until(() => output.stderr.includes('the next nightly run'))
  // A run that the schedule had started would have written by the end of this one.
  await startProgram('pipeline/nightly.ts', [], { DATA_DIR: dataDir }).ended
  expect(output.stderr).not.toContain('load')
  await stop()
})

it('reports how a failed run ended', async () => {
  const { output, stop } = start(makeFolder(), NEVER)
  await until(() => output.stderr.includes('schedule: nightly run ended with exit code 1\n'))
  await stop()
})

it('runs on time, one run at a time', LONG, async () => {
  const { output, stop } = start(folder(), EVERY_SECOND, '--no-catch-up')
  await until(() => (output.stderr.match(/nothing new is published/g) ?? []).length >= 2)
  expect(output.stderr).not.toContain('exit code')
  await stop()
})

it('ends together with the program that started it', async () => {
  // As `npm start` does: the channel closes when either of the two ends.
  const child = fork(join(REPOSITORY, 'pipeline/schedule.ts'), ['--no-catch-up'], {
    env: { ...process.env, DATA_DIR: folder(), NIGHTLY_SCHEDULE: NEVER },
    silent: true,
  })
  const exited = once(child, 'exit')
  let messages = ''
  child.stderr?.on('data', (text) => (messages += String(text)))
  await until(() => messages.includes('the next nightly run'))
  child.disconnect()
  expect(await exited).toEqual([null, 'SIGTERM'])
})
