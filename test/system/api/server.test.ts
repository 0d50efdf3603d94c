/** CONTRACT 9: how `npm run serve` starts and ends: gracefully on one signal, at once on a second. */
import { once } from 'node:events'
import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { makeKey, startApi, startProgram, startServer } from '../../support/api.ts'
import { halfRequest, untilClosing } from '../../support/connections.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { portOf } from '../../support/ports.ts'
import { startWithoutPrivilege } from '../../support/processes.ts'
import { oneApp, publishSnapshot } from '../../support/pipeline/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

describe('npm run serve', () => {
  it('serves keys of `npm run keys` and writes its log only to stderr', async () => {
    const dataDir = folders.make()
    await publishSnapshot(dataDir, oneApp())
    const server = await startServer({ DATA_DIR: dataDir })
    const key = await makeKey({ DATA_DIR: dataDir })
    const response = await fetch(`${server.origin}/api/v1/datasets/app-rankings`, {
      headers: { Authorization: `Bearer ${key}` },
    })
    expect(response.status).toBe(200)
    // Longer than proxies keep idle connections.
    expect(response.headers.get('Keep-Alive')).toMatch(/^timeout=65\b/)
    server.child.kill('SIGTERM')
    const ending = await server.ended
    expect(ending).toMatchObject({ code: 0, stdout: '' })
    expect(ending.stderr).not.toContain(key)
  })

  it('exits with 2 and one line that names PORT if the port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const settings = { DATA_DIR: folders.make(), PORT: String(portOf(other)), LOG_LEVEL: 'error' }
    const run = await startProgram('server.ts', [], settings).ended
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toMatch(/^Port \d+ is already in use: set PORT [^\n]*\n$/)
    other.close()
  })

  it('exits with 2 and one line that names DATA_DIR if it cannot be created', async () => {
    const file = join(folders.make(), 'file')
    writeFileSync(file, '')
    const run = await startProgram('server.ts', [], { DATA_DIR: file, PORT: '0' }).ended
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toMatch(/^DATA_DIR "[^"]+" cannot be used: [^\n]*\n$/)
    // The system creates no folders in /proc, and nobody creates one inside a file.
    for (const dataDir of [join(file, 'data'), '/proc/data', '/proc/a/b'])
      await expect(startApi(dataDir)).rejects.toThrow(/^DATA_DIR "[^"]+" cannot be used: /)
  })

  it('exits with 2 and names the missing permission if it may not write into DATA_DIR', async () => {
    const dataDir = folders.make()
    chmodSync(dataDir, 0o500)
    const environment = { DATA_DIR: dataDir, PORT: '0' }
    const run = await startWithoutPrivilege(['api/server.ts'], environment).ended
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toBe(
      `DATA_DIR "${dataDir}" cannot be used: EACCES: permission denied, access '${dataDir}'\n`,
    )
  })

  it('exits with 2 and names the missing permission for the file of the store', async () => {
    const dataDir = folders.make()
    const file = join(dataDir, 'service.sqlite')
    writeFileSync(file, '')
    chmodSync(file, 0o000)
    const environment = { DATA_DIR: dataDir, PORT: '0' }
    const run = await startWithoutPrivilege(['api/server.ts'], environment).ended
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toContain(`EACCES: permission denied, access '${file}'`)
  })

  it('exits with 2 and reports every fault of the settings at once', async () => {
    const run = await startProgram('server.ts', [], { PORT: 'x', LOG_LEVEL: 'y' }).ended
    expect(run.code).toBe(2)
    expect(run.stderr).toContain('PORT')
    expect(run.stderr).toContain('LOG_LEVEL')
  })

  it.each(['server.ts', 'start.ts'])(
    '%s rejects an argument, prints its settings and starts nothing',
    async (file) => {
      const dataDir = folders.make()
      const wrong = await startProgram(file, ['--port', '80'], { DATA_DIR: dataDir }).ended
      expect(wrong).toMatchObject({ code: 2, stdout: '' })
      expect(wrong.stderr).toMatch(/Unexpected argument "--port"[^]* {2}PORT {2}/)
      expect(readdirSync(dataDir)).toEqual([])
    },
  )

  it('start.ts reports every fault of all settings, also of the pipeline, before it publishes anything', async () => {
    const dataDir = folders.make()
    const faulty = { DATA_DIR: dataDir, PORT: 'x', GATE_VOLUME_LOW: 'half' }
    const both = await startProgram('start.ts', [], faulty).ended
    expect(both.code).toBe(2)
    expect(both.stderr).toMatch(/PORT[^]*GATE_VOLUME_LOW/)
    const one = await startProgram('start.ts', [], { ...faulty, PORT: '0' }).ended
    expect(one.code).toBe(2)
    expect(readdirSync(dataDir)).toEqual([])
  })

  it('start.ts reports a fault of MODELS_FILE before it publishes anything', async () => {
    const dataDir = folders.make()
    const file = join(folders.make(), 'models.json')
    writeFileSync(file, '{')
    const run = await startProgram('start.ts', [], { DATA_DIR: dataDir, PORT: '0', MODELS_FILE: file }).ended
    expect(run.code).toBe(2)
    expect(run.stderr).toContain('models.json')
    expect(readdirSync(dataDir)).toEqual([])
  })

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'on %s finishes the request in flight, closes idle connections and exits with 0',
    async (signal) => {
      const server = await startServer({ DATA_DIR: folders.make() })
      const idle = await untilClosing(server.origin)
      const busy = await halfRequest(server.origin)
      server.child.kill(signal)
      await idle.closed
      const answer = await busy.finish()
      expect(answer).toMatch(/^HTTP\/1\.1 200 /)
      expect(answer).toMatch(/^Connection: close/im)
      expect(await server.ended).toMatchObject({ code: 0 })
    },
  )

  it.each([
    ['SIGTERM', 'SIGTERM'],
    ['SIGTERM', 'SIGINT'],
    ['SIGINT', 'SIGINT'],
  ] as const)('on %s and then %s ends at once', async (first, second) => {
    const server = await startServer({ DATA_DIR: folders.make(), npm_lifecycle_event: '' })
    const idle = await untilClosing(server.origin)
    await halfRequest(server.origin)
    server.child.kill(first)
    await idle.closed
    server.child.kill(second)
    expect(await server.ended).toMatchObject({ code: null, signal: second })
  })

  it('under npm, which passes on a Ctrl-C a second time, ends at once on the next', async () => {
    const server = await startServer({ DATA_DIR: folders.make(), npm_lifecycle_event: 'serve' })
    const idle = await untilClosing(server.origin)
    const busy = [await halfRequest(server.origin), await halfRequest(server.origin)]
    await halfRequest(server.origin)
    server.child.kill('SIGINT')
    await idle.closed
    server.child.kill('SIGINT')
    for (const request of busy) expect(await request.finish()).toMatch(/^HTTP\/1\.1 200 /)
    server.child.kill('SIGINT')
    expect(await server.ended).toMatchObject({ code: null, signal: 'SIGINT' })
  })

  it('under npm, ends at once on a second SIGTERM that comes too late to be passed on', async () => {
    const server = await startServer({ DATA_DIR: folders.make(), npm_lifecycle_event: 'serve' })
    const idle = await untilClosing(server.origin)
    await halfRequest(server.origin)
    server.child.kill('SIGTERM')
    await idle.closed
    await sleep(1100)
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: null, signal: 'SIGTERM' })
  })
})
