/** What becomes of the service when nobody takes what it says. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { startAll, startCommand, startProgram, until } from '../support/api.ts'
import { REPOSITORY, TemporaryFolders } from '../support/nightly.ts'
import { freePort } from '../support/ports.ts'

const FULL = '/dev/full'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** A program of api/ in a shell that redirects its output. */
function redirected(redirection: string, program: string, environment: Readonly<Record<string, string>>) {
  const [file = '', ...args] = program.split(' ')
  const command = ['-c', `exec "$0" "$@" ${redirection}`, process.execPath, join(REPOSITORY, 'api', file)]
  return startCommand('sh', [...command, ...args], { environment })
}

async function healthy(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined)
  return response?.ok === true
}

describe.skipIf(!existsSync(FULL))('on a full disk', () => {
  it('the log holds up neither the service nor its end', async () => {
    const port = await freePort()
    const environment = { DATA_DIR: folders.make(), PORT: String(port) }
    const server = redirected(`2>${FULL}`, 'server.ts', environment)
    await until(() => healthy(port))
    // A log line that fails in between must not matter either.
    for (let request = 0; request < 200; request += 1) expect(await healthy(port)).toBe(true)
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 0 })
  })

  it('data that is lost is told, with exit code 2', async () => {
    const run = await redirected(`>${FULL}`, 'accounts/keys.ts list', { DATA_DIR: folders.make() }).ended
    expect(run.code).toBe(2)
    expect(run.stderr).toMatch(/^Cannot write to stdout: ENOSPC.*\n$/)
  })
})

describe('with a reader that is gone', () => {
  it('the service goes on', async () => {
    const service = await startAll({ DATA_DIR: folders.make(), LOG_LEVEL: 'debug' })
    service.child.stderr.destroy()
    service.child.stdout.destroy()
    const origin = /^Address: +(http:\/\/[^/]*)/m.exec(service.welcome)?.[1] ?? ''
    for (let request = 0; request < 200; request += 1) {
      expect((await fetch(`${origin}/healthz`)).status).toBe(200)
    }
    service.child.kill('SIGTERM')
    expect(await service.ended).toMatchObject({ code: 0 })
  })

  it('a command ends quietly', async () => {
    const command = startProgram('accounts/keys.ts', ['list'], { DATA_DIR: folders.make() })
    command.child.stdout.destroy()
    expect(await command.ended).toMatchObject({ code: 0, stderr: '' })
  })
})
