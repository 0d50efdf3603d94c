/** CONTRACT 4.6: clients that hold idle connections up to the limit of open files keep no snapshot from being served. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { makeKey, said, statusSchema, until } from '../../../support/api.ts'
import { makeFolder } from '../../../support/folders.ts'
import { oneApp, publishSnapshot } from '../../../support/pipeline/snapshot.ts'
import { startProgram } from '../../../support/processes.ts'

it('a run that publishes while all connections are taken is served, and the service goes on', async () => {
  const dataDir = makeFolder()
  await publishSnapshot(dataDir, oneApp())
  const key = await makeKey({ DATA_DIR: dataDir })
  const limited = ['bash', '-c', 'ulimit -n 256 && exec "$0" "$@"']
  const server = startProgram('api/server.ts', [], { DATA_DIR: dataDir, PORT: '0' }, limited)
  const [, origin = ''] = await said(server, 'stderr', /"origin":"([^"]+)"/)
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
  await said(server, 'stderr', /20270101T020000Z/)
  for (const socket of sockets) socket.destroy()
  const asOf = async () => {
    const reply = await fetch(`${origin}/api/v1/status`).catch(() => undefined)
    return reply?.ok === true && statusSchema.parse(await reply.json()).data.as_of
  }
  expect(await until(asOf)).toBe('2027-01-01T02:00:00Z')
  expect((await fetch(rankings, request)).status).toBe(200)
  server.child.kill('SIGTERM')
  expect(await server.ended).toMatchObject({ code: 0 })
})
