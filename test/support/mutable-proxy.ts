import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { portOf } from './ports.ts'

/** A TCP proxy to a database that can fall silent: connections stay open and new ones are accepted, but no data passes. */
export async function startMutableProxy(databaseUrl: string) {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  let isMute = false
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    return socket
  }
  // Half-open, since a silent host does not close connections.
  const server = createServer({ allowHalfOpen: true }, (near) => {
    keep(near)
    if (isMute) return
    const far = keep(connect(Number(target.port), target.hostname))
    near.on('data', (bytes) => isMute || far.write(bytes))
    far.on('data', (bytes) => isMute || near.write(bytes))
    near.on('end', () => isMute || far.end())
    far.on('end', () => isMute || near.end())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = new URL(databaseUrl)
  url.hostname = '127.0.0.1'
  url.port = String(portOf(server))
  return {
    url: url.href,
    mute: () => (isMute = true),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
