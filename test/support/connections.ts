/** Connections that a server has to deal with when it ends. */
import { once } from 'node:events'
import { connect } from 'node:net'

/** An idle connection; `closed` resolves when the server, about to end, has closed it. */
export async function untilClosing(origin: string): Promise<{ readonly closed: Promise<unknown> }> {
  const { hostname, port } = new URL(origin)
  const idle = connect(Number(port), hostname)
  idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(idle, 'data')
  return { closed: once(idle, 'close') }
}

/** A request that lacks its last line, which `finish` sends; it gives the whole answer. */
export async function halfRequest(origin: string) {
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname).on('error', () => undefined)
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n')
  // The half must have arrived before what the test does next: a whole request sent after it has.
  await fetch(`${origin}/healthz`)
  return {
    async finish(): Promise<string> {
      socket.write('\r\n')
      await once(socket, 'close')
      return answer
    },
  }
}
