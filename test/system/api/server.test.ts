/** CONTRACT 9: how `npm run serve` starts and ends: gracefully on one signal, at once on a second. */
import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startApi, startServer } from '../../support/api.ts'
import { halfRequest, untilClosing } from '../../support/connections.ts'
import { makeFolder } from '../../support/folders.ts'
import { startProgram, UNPRIVILEGED } from '../../support/processes.ts'

it('exits with 2 and one line if DATA_DIR cannot be created, or may not be written', async () => {
  const folder = makeFolder()
  const file = join(folder, 'file')
  writeFileSync(file, '')
  // The system creates no folders in /proc, and nobody creates one inside a file.
  for (const dataDir of [join(file, 'data'), '/proc/data', '/proc/a/b'])
    await expect(startApi(dataDir)).rejects.toThrow(/^DATA_DIR "[^"]+" cannot be used: /)
  chmodSync(folder, 0o500)
  const run = await startProgram('api/server.ts', [], { DATA_DIR: folder, PORT: '0' }, UNPRIVILEGED).ended
  expect(run).toMatchObject({
    code: 2,
    stdout: '',
    stderr: `DATA_DIR "${folder}" cannot be used: EACCES: permission denied, access '${folder}'\n`,
  })
})

it('rejects an argument, names the help and starts nothing', async () => {
  const dataDir = makeFolder()
  const wrong = await startProgram('api/server.ts', ['--port', '80'], { DATA_DIR: dataDir }).ended
  const stderr = 'Unexpected argument "--port": settings come from the environment. See --help\n'
  expect(wrong).toMatchObject({ code: 2, stdout: '', stderr })
  expect(readdirSync(dataDir)).toEqual([])
})

it.each(['SIGTERM', 'SIGINT'] as const)(
  'on %s finishes the request in flight, closes idle connections and exits with 0',
  async (signal) => {
    const server = await startServer({ DATA_DIR: makeFolder() })
    const idle = await untilClosing(server.origin)
    const busy = await halfRequest(server.origin)
    server.child.kill(signal)
    await idle.closed
    const answer = await busy.finish()
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer).toMatch(/^Connection: close/im)
    expect(await server.ended).toMatchObject({ code: 0, stdout: '' })
  },
)

it.each([
  ['SIGTERM', 'SIGTERM'],
  ['SIGTERM', 'SIGINT'],
  ['SIGINT', 'SIGINT'],
] as const)('on %s and then %s ends at once', async (first, second) => {
  const server = await startServer({ DATA_DIR: makeFolder(), npm_lifecycle_event: '' })
  const idle = await untilClosing(server.origin)
  await halfRequest(server.origin)
  server.child.kill(first)
  await idle.closed
  server.child.kill(second)
  expect(await server.ended).toMatchObject({ code: null, signal: second })
})

it('under npm, which passes on a Ctrl-C a second time, ends at once on the next', async () => {
  const server = await startServer({ DATA_DIR: makeFolder(), npm_lifecycle_event: 'serve' })
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
