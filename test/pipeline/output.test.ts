/** What becomes of a run when nobody takes what it says. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, it } from 'vitest'
import { REPOSITORY, TemporaryFolders } from '../support/nightly.ts'
import { SECOND_NIGHT, expectSecondNight, publishFirstNight } from '../support/two-nights.ts'

const FULL = '/dev/full'
const APPS = 3

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** A command of `npm run nightly` in a shell that redirects its output. */
function redirected(redirection: string, dataDir: string, ...args: readonly string[]) {
  const program = join(REPOSITORY, 'pipeline', 'nightly.ts')
  const command = ['-c', `exec "$0" "$@" ${redirection}`, process.execPath, program]
  return spawn('sh', [...command, ...args], { env: { ...process.env, DATA_DIR: dataDir }, stdio: 'pipe' })
}

async function publishedFirst(): Promise<string> {
  const dataDir = folders.make()
  await publishFirstNight(dataDir, APPS)
  return dataDir
}

describe.skipIf(!existsSync(FULL))('on a full disk', () => {
  it('a run whose messages are lost publishes all the same', async () => {
    const dataDir = await publishedFirst()
    const run = redirected(`2>${FULL}`, dataDir, 'run', '--as-of', SECOND_NIGHT)
    expect(await once(run, 'close')).toEqual([0, null])
    await expectSecondNight(dataDir, APPS)
  })

  it('data that is lost is told, with exit code 2', async () => {
    const command = redirected(`>${FULL}`, await publishedFirst(), 'status')
    const [stderr, ending] = await Promise.all([text(command.stderr), once(command, 'close')])
    expect(stderr).toMatch(/^Cannot write to stdout: ENOSPC.*\n$/)
    expect(ending).toEqual([2, null])
  })
})

describe('with a reader that is gone', () => {
  it('a run publishes all the same', async () => {
    const dataDir = await publishedFirst()
    const run = redirected('', dataDir, 'run', '--json', '--as-of', SECOND_NIGHT)
    run.stderr.destroy()
    run.stdout.destroy()
    expect(await once(run, 'close')).toEqual([0, null])
    await expectSecondNight(dataDir, APPS)
  })

  it('a command ends quietly', async () => {
    const command = redirected('', await publishedFirst(), 'status')
    command.stdout.destroy()
    const [stderr, ending] = await Promise.all([text(command.stderr), once(command, 'close')])
    expect(stderr).toBe('')
    expect(ending).toEqual([0, null])
  })
})
