/** How `npm run serve` ends: on one signal in good order, on a second one at once. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { startServer } from '../../support/api.ts'
import { halfRequest, untilClosing } from '../../support/connections.ts'
import { TemporaryFolders } from '../../support/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

describe('npm run serve', () => {
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

  it('under npm, which passes on the Ctrl-C that we have had, ends at once on the next', async () => {
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
