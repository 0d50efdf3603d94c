/** CONTRACT 9: the nightly schedule as a process: makes up for a missed night, starts on time, and ends on request. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { until } from '../../support/api.ts'
import { makeFolder } from '../../support/folders.ts'
import { deliver, register } from '../../support/pipeline/nightly.ts'
import { REPOSITORY } from '../../support/processes.ts'

const NEVER = '0 0 29 2 *'
const EVERY_SECOND = '* * * * * *'

function folder(): string {
  const dataDir = makeFolder()
  register(dataDir, ['1,One,public,,,2025-01-01'])
  deliver(dataDir, '2026-01-06', ['1,1,0'])
  return dataDir
}

function start(dataDir: string, expression: string, ...args: readonly string[]) {
  const program = join(REPOSITORY, 'pipeline', 'schedule.ts')
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...process.env, DATA_DIR: dataDir, NIGHTLY_SCHEDULE: expression },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const output = { stderr: '' }
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  return { child, output, ended: once(child, 'close') }
}

it('makes up for a missed night at its start, and ends on SIGTERM', async () => {
  const dataDir = folder()
  const { child, output, ended } = start(dataDir, NEVER)
  await until(() => existsSync(join(dataDir, 'current', 'app-rankings.duckdb')))
  await until(() => output.stderr.includes('the next nightly run'))
  expect(output.stderr).toMatch(/the next nightly run is at \d{4}-02-29T00:00:00\.000Z/)
  child.kill('SIGTERM')
  expect(await ended).toEqual([null, 'SIGTERM'])
})

it('reports how a failed run ended', async () => {
  const { child, output, ended } = start(makeFolder(), NEVER)
  await until(() => output.stderr.includes('schedule: nightly run ended with exit code 1\n'))
  child.kill('SIGTERM')
  await ended
})

it('runs on time, one run at a time', async () => {
  const { child, output, ended } = start(folder(), EVERY_SECOND, '--no-catch-up')
  await until(() => (output.stderr.match(/nothing new is published/g) ?? []).length >= 2)
  expect(output.stderr).not.toContain('exit code')
  child.kill('SIGTERM')
  await ended
})

it('ends together with the program that started it', async () => {
  const { child, output } = start(folder(), NEVER, '--no-catch-up')
  await until(() => output.stderr.includes('the next nightly run'))
  // Node emits no "close" for a child if the parent closed the channel.
  const exited = once(child, 'exit')
  child.disconnect()
  expect(await exited).toEqual([null, 'SIGTERM'])
})

it('rejects an invalid cron expression', async () => {
  const { output, child, ended } = start(folder(), 'at night')
  await ended
  expect(child.exitCode).toBe(2)
  expect(output.stderr).toContain('NIGHTLY_SCHEDULE')
})
