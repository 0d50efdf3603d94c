import { once } from 'node:events'
import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { makeKey, startApi, startProgram, startServer } from '../support/api.ts'
import { startWithoutPrivilege } from '../support/processes.ts'
import { TemporaryFolders } from '../support/nightly.ts'
import { portOf } from '../support/ports.ts'
import { publishSnapshot } from '../support/snapshot.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

describe('npm run serve', () => {
  it('serves what keys made and writes its log to stderr alone', async () => {
    const dataDir = folders.make()
    await publishSnapshot(dataDir, {
      asOf: new Date('2026-11-20T02:00:00Z'),
      dataThrough: '2026-11-19',
      apps: [{ id: 1, name: 'App' }],
      daily: [{ day: '2026-11-19', app: 1, tokens: 5 }],
    })
    const server = await startServer({ DATA_DIR: dataDir })
    const key = await makeKey({ DATA_DIR: dataDir })
    const response = await fetch(`${server.origin}/api/v1/datasets/app-rankings`, {
      headers: { Authorization: `Bearer ${key}` },
    })
    expect(response.status).toBe(200)
    // Longer than proxies keep idle connections.
    expect(response.headers.get('Keep-Alive')).toBe('timeout=65')
    server.child.kill('SIGTERM')
    const ending = await server.ended
    expect(ending).toMatchObject({ code: 0, stdout: '' })
    expect(ending.stderr).not.toContain(key)
  })

  it('exits with 2 and one line that names PORT when the port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const settings = { DATA_DIR: folders.make(), PORT: String(portOf(other)), LOG_LEVEL: 'error' }
    const run = await startProgram('server.ts', [], settings).ended
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toMatch(/^Port \d+ is already in use: set PORT [^\n]*\n$/)
    other.close()
  })

  it('exits with 2 and one line that names DATA_DIR when it cannot be made', async () => {
    const file = join(folders.make(), 'file')
    writeFileSync(file, '')
    const run = await startProgram('server.ts', [], { DATA_DIR: file, PORT: '0' }).ended
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toMatch(/^DATA_DIR "[^"]+" cannot be used: [^\n]*\n$/)
    // The system makes no folders in /proc, and nobody any inside of a file.
    for (const dataDir of [join(file, 'data'), '/proc/data', '/proc/a/b'])
      await expect(startApi(dataDir)).rejects.toThrow(/^DATA_DIR "[^"]+" cannot be used: /)
  })

  it('exits with 2 and says which right is missing when it must not write into DATA_DIR', async () => {
    const dataDir = folders.make()
    chmodSync(dataDir, 0o500)
    const environment = { DATA_DIR: dataDir, PORT: '0' }
    const run = await startWithoutPrivilege(['api/server.ts'], environment).ended
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toBe(
      `DATA_DIR "${dataDir}" cannot be used: EACCES: permission denied, access '${dataDir}'\n`,
    )
  })

  it('exits with 2 and says which right is missing to the file of the store', async () => {
    const dataDir = folders.make()
    const file = join(dataDir, 'service.sqlite')
    writeFileSync(file, '')
    chmodSync(file, 0o000)
    const environment = { DATA_DIR: dataDir, PORT: '0' }
    const run = await startWithoutPrivilege(['api/server.ts'], environment).ended
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toContain(`EACCES: permission denied, access '${file}'`)
  })

  it('exits with 2 and tells every fault of the settings at once', async () => {
    const run = await startProgram('server.ts', [], { PORT: 'x', LOG_LEVEL: 'y' }).ended
    expect(run.code).toBe(2)
    expect(run.stderr).toContain('PORT')
    expect(run.stderr).toContain('LOG_LEVEL')
  })

  it.each(['server.ts', 'start.ts'])(
    '%s refuses an argument, tells its settings and starts nothing',
    async (file) => {
      const dataDir = folders.make()
      const wrong = await startProgram(file, ['--port', '80'], { DATA_DIR: dataDir }).ended
      expect(wrong).toMatchObject({ code: 2, stdout: '' })
      expect(wrong.stderr).toMatch(/Unexpected argument "--port"[^]* {2}PORT {2}/)
      expect(readdirSync(dataDir)).toEqual([])
    },
  )

  it('start.ts tells every fault of the settings, those of the pipeline too, before it publishes anything', async () => {
    const dataDir = folders.make()
    const faulty = { DATA_DIR: dataDir, PORT: 'x', GATE_VOLUME_LOW: 'half' }
    const both = await startProgram('start.ts', [], faulty).ended
    expect(both.code).toBe(2)
    expect(both.stderr).toMatch(/GATE_VOLUME_LOW[^]*PORT/)
    const one = await startProgram('start.ts', [], { ...faulty, PORT: '0' }).ended
    expect(one.code).toBe(2)
    expect(readdirSync(dataDir)).toEqual([])
  })

  it('start.ts tells a fault of MODELS_FILE before it publishes anything', async () => {
    const dataDir = folders.make()
    const file = join(folders.make(), 'models.json')
    writeFileSync(file, '{')
    const run = await startProgram('start.ts', [], { DATA_DIR: dataDir, PORT: '0', MODELS_FILE: file }).ended
    expect(run.code).toBe(2)
    expect(run.stderr).toContain('models.json')
    expect(readdirSync(dataDir)).toEqual([])
  })
})
