/** CONTRACT 9: the service when its output cannot be written. */
import { existsSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { startAll, startProgram, until } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { freePort } from '../../../support/ports.ts'
import { FULL_DISK, startRedirected } from '../../../support/processes.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

async function healthy(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined)
  return response?.ok === true
}

describe.skipIf(!existsSync(FULL_DISK))('on a full disk', () => {
  it('the log blocks neither the service nor its end', async () => {
    const port = await freePort()
    const environment = { DATA_DIR: folders.make(), PORT: String(port) }
    const server = startRedirected(`2>${FULL_DISK}`, ['api/server.ts'], environment)
    await until(() => healthy(port))
    // A log line that fails meanwhile must not matter either.
    for (let request = 0; request < 200; request += 1) expect(await healthy(port)).toBe(true)
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 0 })
  })

  it('lost data is reported, with exit code 2', async () => {
    const list = ['api/commands/keys.ts', 'list'] as const
    const run = await startRedirected(`>${FULL_DISK}`, list, { DATA_DIR: folders.make() }).ended
    expect(run.code).toBe(2)
    expect(run.stderr).toMatch(/^Cannot write to stdout: ENOSPC.*\n$/)
  })
})

describe('without a reader', () => {
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
    const command = startProgram('commands/keys.ts', ['list'], { DATA_DIR: folders.make() })
    command.child.stdout.destroy()
    expect(await command.ended).toMatchObject({ code: 0, stderr: '' })
  })
})
