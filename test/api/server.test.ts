import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { makeKey, startProgram, startServer } from '../support/api.ts'
import { TemporaryFolders } from '../support/nightly.ts'
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
    server.child.kill('SIGTERM')
    const ending = await server.ended
    expect(ending).toMatchObject({ code: 0, stdout: '' })
    expect(ending.stderr).not.toContain(key)
  })

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'on %s finishes the request in flight, closes idle connections and exits with 0',
    async (signal) => {
      const server = await startServer({ DATA_DIR: folders.make() })
      const { hostname, port } = new URL(server.origin)
      const idle = connect(Number(port), hostname)
      idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
      await once(idle, 'data')

      const busy = connect(Number(port), hostname)
      let answer = ''
      busy.setEncoding('utf8').on('data', (text: string) => (answer += text))
      busy.write('GET /healthz HTTP/1.1\r\nHost: x\r\n')
      // The half request must have arrived before the signal: a whole one sent after it has.
      await fetch(`${server.origin}/healthz`)
      server.child.kill(signal)
      await once(idle, 'close')
      busy.write('\r\n')
      await once(busy, 'close')
      expect(answer).toMatch(/^HTTP\/1\.1 200 /)
      expect(answer).toMatch(/^Connection: close/im)
      expect(await server.ended).toMatchObject({ code: 0 })
    },
  )

  it('ends at once on a second signal', async () => {
    const server = await startServer({ DATA_DIR: folders.make() })
    const { hostname, port } = new URL(server.origin)
    const idle = connect(Number(port), hostname)
    idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(idle, 'data')
    const busy = connect(Number(port), hostname).on('error', () => undefined)
    busy.write('GET /healthz HTTP/1.1\r\nHost: x\r\n')
    await fetch(`${server.origin}/healthz`)
    server.child.kill('SIGTERM')
    await once(idle, 'close')
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: null, signal: 'SIGTERM' })
  })

  it('exits with 2 and one line that names PORT when the port is taken', async () => {
    const first = await startServer({ DATA_DIR: folders.make() })
    const { port } = new URL(first.origin)
    const second = await startProgram('server.ts', [], {
      DATA_DIR: folders.make(),
      PORT: port,
      LOG_LEVEL: 'error',
    }).ended
    expect(second).toMatchObject({ code: 2, stdout: '' })
    expect(second.stderr).toMatch(/^Port \d+ is already in use: set PORT [^\n]*\n$/)
    first.child.kill('SIGTERM')
    await first.ended
  })

  it('exits with 2 and one line that names DATA_DIR when it cannot be written', async () => {
    const file = join(folders.make(), 'file')
    writeFileSync(file, '')
    const run = await startProgram('server.ts', [], { DATA_DIR: file, PORT: '0' }).ended
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toMatch(/^DATA_DIR "[^"]+" cannot be used: [^\n]*\n$/)
  })

  it('exits with 2 and tells every fault of the settings at once', async () => {
    const run = await startProgram('server.ts', [], { PORT: 'x', LOG_LEVEL: 'y' }).ended
    expect(run.code).toBe(2)
    expect(run.stderr).toContain('PORT')
    expect(run.stderr).toContain('LOG_LEVEL')
  })
})
