/** Connections whose bytes the test writes. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const HALF = 'GET /healthz HTTP/1.1\r\nHost: x\r\n'

/** A new connection with these options, on which this text is sent. */
export function sendOver(origin: string, text: string, options: { allowHalfOpen?: boolean } = {}): Socket {
  const { hostname, port } = new URL(origin)
  const socket = connect({ host: hostname, port: Number(port), ...options }).on('error', () => undefined)
  socket.write(text)
  return socket
}

/** A request without its last line, which `finish` sends; returns the whole answer. */
export async function halfRequest(origin: string) {
  const socket = sendOver(origin, HALF)
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => (answer += text))
  await once(socket, 'connect')
  // The half must arrive before the test continues: a complete request on a later connection proves that.
  await once(sendOver(origin, `${HALF}Connection: close\r\n\r\n`).resume(), 'close')
  return {
    async finish(): Promise<string> {
      socket.write('\r\n')
      await once(socket, 'close')
      return answer
    },
  }
}
