/** CONTRACT 9: programs with output that cannot be written, or that nobody reads. */
import { existsSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { until } from '../support/api.ts'
import { TemporaryFolders, startNightly } from '../support/pipeline/nightly.ts'
import { SECOND_NIGHT, expectSecondNight, publishFirstNight } from '../support/pipeline/two-nights.ts'
import { freePort } from '../support/ports.ts'
import { startRedirected } from '../support/processes.ts'

const APPS = 3
/** A device that is always full; only Linux has it. */
const FULL_DISK = '/dev/full'
const COMMANDS = [
  ['api/commands/keys.ts', 'list'],
  ['pipeline/nightly.ts', 'status'],
] as const

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

async function publishedFirst(): Promise<string> {
  const dataDir = folders.make()
  await publishFirstNight(dataDir, APPS)
  return dataDir
}

/** The service, once it answers, and the question whether it does. */
async function startService(redirection: string) {
  const port = await freePort()
  const environment = { DATA_DIR: folders.make(), PORT: String(port), LOG_LEVEL: 'debug' }
  const service = startRedirected(redirection, ['api/server.ts'], environment)
  const isHealthy = async () =>
    (await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined))?.ok === true
  await until(isHealthy)
  return { ...service, isHealthy }
}

describe.skipIf(!existsSync(FULL_DISK))('on a full disk', () => {
  it('the log blocks neither the service nor its end', async () => {
    const service = await startService(`2>${FULL_DISK}`)
    // A log line that fails meanwhile must not matter either.
    for (let request = 0; request < 200; request += 1) expect(await service.isHealthy()).toBe(true)
    service.child.kill('SIGTERM')
    expect(await service.ended).toMatchObject({ code: 0 })
  })

  it('a run with lost messages publishes all the same', async () => {
    const dataDir = await publishedFirst()
    const command = ['pipeline/nightly.ts', 'run', '--as-of', SECOND_NIGHT] as const
    const run = await startRedirected(`2>${FULL_DISK}`, command, { DATA_DIR: dataDir }).ended
    expect(run).toMatchObject({ code: 0, signal: null })
    await expectSecondNight(dataDir, APPS)
  })

  it.each(COMMANDS)('lost data of %s %s is reported, with exit code 2', async (...command) => {
    const environment = { DATA_DIR: await publishedFirst() }
    const ended = await startRedirected(`>${FULL_DISK}`, command, environment).ended
    expect(ended.stderr).toMatch(/^Cannot write to stdout: ENOSPC.*\n$/)
    expect(ended).toMatchObject({ code: 2, signal: null })
  })
})

describe('without a reader', () => {
  it('the service goes on', async () => {
    const service = await startService('')
    service.child.stderr.destroy()
    service.child.stdout.destroy()
    for (let request = 0; request < 200; request += 1) expect(await service.isHealthy()).toBe(true)
    service.child.kill('SIGTERM')
    expect(await service.ended).toMatchObject({ code: 0 })
  })

  it('a run publishes all the same', async () => {
    const dataDir = await publishedFirst()
    const { child, ended } = startNightly(dataDir, '--json', '--as-of', SECOND_NIGHT)
    child.stderr.destroy()
    child.stdout.destroy()
    expect(await ended).toMatchObject({ code: 0, signal: null })
    await expectSecondNight(dataDir, APPS)
  })

  it.each(COMMANDS)('%s %s ends quietly', async (...command) => {
    const { child, ended } = startRedirected('', command, { DATA_DIR: await publishedFirst() })
    child.stdout.destroy()
    expect(await ended).toMatchObject({ code: 0, signal: null, stderr: '' })
  })
})
