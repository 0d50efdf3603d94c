/** CONTRACT 9: the nightly schedule as a process: makes up for a missed night, starts on time, and ends on request. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  openSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { until } from '../../support/api.ts'
import { TemporaryFolders, currentSnapshot, publish, writeRaw } from '../../support/pipeline/nightly.ts'
import { REPOSITORY } from '../../support/processes.ts'

// Tens of seconds on an idle machine, minutes on a busy one.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const SCHEDULE = join(REPOSITORY, 'pipeline', 'schedule.ts')
const NEVER = '0 0 29 2 *'
const EVERY_SECOND = '* * * * * *'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

function folder(): string {
  const dataDir = folders.make()
  writeRaw(dataDir, 'apps/registry.csv', 'app_id,app_name,visibility,updated_at\n1,One,public,2025-01-01\n')
  writeRaw(
    dataDir,
    'usage/date=2026-01-06/rows.csv',
    'ts,app_id,prompt_tokens,completion_tokens\n2026-01-06,1,1,0\n',
  )
  return dataDir
}

function start(dataDir: string, expression: string, ...args: readonly string[]) {
  return startWith([process.execPath], { dataDir, expression }, ...args)
}

type Start = {
  readonly dataDir: string
  readonly expression: string
  readonly environment?: Readonly<Record<string, string>>
}

function startWith(
  [node = '', ...options]: readonly string[],
  { dataDir, expression, environment }: Start,
  ...args: readonly string[]
) {
  const child = spawn(node, [...options, SCHEDULE, ...args], {
    env: { ...process.env, DATA_DIR: dataDir, NIGHTLY_SCHEDULE: expression, ...environment },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const output = { stderr: '' }
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  return { child, output, ended: once(child, 'close') }
}

describe('npm run schedule', () => {
  it('makes up for a missed night at its start, and ends on SIGTERM', async () => {
    const dataDir = folder()
    const { child, output, ended } = start(dataDir, NEVER)
    await until(() => existsSync(join(dataDir, 'current', 'app-rankings.duckdb')))
    await until(() => output.stderr.includes('the next nightly run'))
    expect(output.stderr).toMatch(/the next nightly run is at \d{4}-02-29T00:00:00\.000Z/)
    child.kill('SIGTERM')
    expect(await ended).toEqual([null, 'SIGTERM'])
  })

  it('runs on time, one run at a time', async () => {
    const dataDir = folder()
    const { child, output, ended } = start(dataDir, EVERY_SECOND, '--no-catch-up')
    await until(() => (output.stderr.match(/nothing new is published/g) ?? []).length >= 2)
    expect(output.stderr).not.toContain('exit code 75')
    child.kill('SIGTERM')
    await ended
  })

  it('verifies the published files once a day, after the run', async () => {
    const dataDir = folder()
    await publish(dataDir, '2026-01-07T02:00:00Z')
    appendFileSync(join(currentSnapshot(dataDir), 'apps.csv'), 'x')
    const { child, output, ended } = start(dataDir, EVERY_SECOND, '--no-catch-up')
    await until(() => output.stderr.includes('nightly verify ended with exit code 1'))
    const runs = () => output.stderr.split('nothing new is published').length
    const before = runs()
    await until(() => runs() > before)
    expect(output.stderr.split('nightly verify ended')).toHaveLength(2)
    child.kill('SIGTERM')
    await ended
  })

  it('reports how a failed run ended', async () => {
    const { child, output, ended } = start(folders.make(), NEVER)
    await until(() => output.stderr.includes('schedule: nightly run ended with exit code 1\n'))
    child.kill('SIGTERM')
    await ended
  })

  it.each([
    ['makes up for a night', []],
    ['an earlier hour began', ['--no-catch-up']],
  ])('skips a run while the one that %s is under way', async (_which, options) => {
    const dataDir = folder()
    const credit = join(dataDir, 'raw', 'ATTRIBUTION')
    // The reader of a named pipe waits for its writer.
    execFileSync('mkfifo', [credit])
    const { child, output, ended } = start(dataDir, EVERY_SECOND, ...options)
    await until(() => /still under way; this one is skipped|exit code/.test(output.stderr))
    const writing = openSync(credit, 'w')
    writeFileSync(`${credit}.new`, 'Source: somebody')
    renameSync(`${credit}.new`, credit)
    closeSync(writing)
    await until(() => existsSync(join(dataDir, 'current', 'app-rankings.duckdb')))
    expect(output.stderr).not.toContain('exit code')
    child.kill('SIGTERM')
    await ended
  })

  it('continues after a run that could not be started', async () => {
    const dataDir = folder()
    const node = join(folders.make(), 'node')
    copyFileSync(process.execPath, node, constants.COPYFILE_FICLONE)
    const { child, output, ended } = startWith([node], { dataDir, expression: EVERY_SECOND }, '--no-catch-up')
    await until(() => output.stderr.includes('the next nightly run'))
    // As while an update replaces the programs.
    renameSync(node, `${node}.old`)
    await until(() => output.stderr.includes('the run could not be started'))
    renameSync(`${node}.old`, node)
    await until(() => existsSync(join(dataDir, 'current', 'app-rankings.duckdb')))
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
})
