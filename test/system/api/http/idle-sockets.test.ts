/** CONTRACT 4.6: clients that hold idle connections up to the limit of open files keep no snapshot from being served. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, expect, it } from 'vitest'
import { makeKey } from '../../../support/api.ts'
import { TemporaryFolders } from '../../../support/pipeline/nightly.ts'
import { oneApp, publishSnapshot } from '../../../support/pipeline/snapshot.ts'
import { startProcess } from '../../../support/processes.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

it('a run that publishes while all connections are taken is served, and the service goes on', async () => {
  const dataDir = folders.make()
  await publishSnapshot(dataDir, oneApp())
  const key = await makeKey({ DATA_DIR: dataDir })
  const command = 'ulimit -n 256 && exec node_modules/.bin/node api/server.ts'
  const environment = { DATA_DIR: dataDir, PORT: '0' }
  const server = startProcess('bash', ['-c', command], { environment })
  let origin: string | undefined
  while (origin === undefined) {
    await Promise.race([once(server.child.stderr, 'data'), server.ended])
    origin = /"origin":"([^"]+)"/.exec(server.output.stderr)?.[1]
  }
  const { hostname, port } = new URL(origin)
  const request = { headers: { Authorization: `Bearer ${key}` } }
  const rankings = `${origin}/api/v1/datasets/app-rankings`
  expect((await fetch(rankings, request)).status).toBe(200)

  const sockets: Socket[] = []
  for (let index = 0; index < 300; index += 1) {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    sockets.push(socket)
    await once(socket, 'connect')
  }
  await publishSnapshot(dataDir, { ...oneApp(), asOf: new Date('2027-01-01T02:00:00Z') })
  while (!server.output.stderr.includes('20270101T020000Z')) {
    await Promise.race([once(server.child.stderr, 'data'), server.ended])
    expect(server.child.exitCode).toBeNull()
    expect(server.child.signalCode).toBeNull()
  }
  for (const socket of sockets) socket.destroy()
  for (;;) {
    const response = await fetch(rankings, request).catch(() => undefined)
    if (response?.status === 200) break
  }
  server.child.kill('SIGTERM')
  expect(await server.ended).toMatchObject({ code: 0 })
})
