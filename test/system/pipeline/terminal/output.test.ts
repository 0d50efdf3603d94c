/** CONTRACT 9: runs without a reader for their output. */
import { existsSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { TemporaryFolders, startCommand, startNightly } from '../../../support/pipeline/nightly.ts'
import { FULL_DISK, startRedirected } from '../../../support/processes.ts'
import { SECOND_NIGHT, expectSecondNight, publishFirstNight } from '../../../support/pipeline/two-nights.ts'

const APPS = 3

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const NIGHTLY = 'pipeline/nightly.ts'

async function publishedFirst(): Promise<string> {
  const dataDir = folders.make()
  await publishFirstNight(dataDir, APPS)
  return dataDir
}

describe.skipIf(!existsSync(FULL_DISK))('on a full disk', () => {
  it('a run with lost messages publishes all the same', async () => {
    const dataDir = await publishedFirst()
    const secondRun = [NIGHTLY, 'run', '--as-of', SECOND_NIGHT] as const
    const run = await startRedirected(`2>${FULL_DISK}`, secondRun, { DATA_DIR: dataDir }).ended
    expect(run).toMatchObject({ code: 0, signal: null })
    await expectSecondNight(dataDir, APPS)
  })

  it('lost data is reported, with exit code 2', async () => {
    const environment = { DATA_DIR: await publishedFirst() }
    const command = await startRedirected(`>${FULL_DISK}`, [NIGHTLY, 'status'], environment).ended
    expect(command.stderr).toMatch(/^Cannot write to stdout: ENOSPC.*\n$/)
    expect(command).toMatchObject({ code: 2, signal: null })
  })
})

describe('without a reader', () => {
  it('a run without a reader publishes all the same', async () => {
    const dataDir = await publishedFirst()
    const { child, ended } = startNightly(dataDir, '--json', '--as-of', SECOND_NIGHT)
    child.stderr.destroy()
    child.stdout.destroy()
    expect(await ended).toMatchObject({ code: 0, signal: null })
    await expectSecondNight(dataDir, APPS)
  })

  it('a command without a reader ends quietly', async () => {
    const { child, ended } = startCommand(await publishedFirst(), 'status')
    child.stdout.destroy()
    expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' })
  })
})
