/** Connections that ignore an unrequested `100 Continue`. */
import { Socket } from 'node:net'
import { buildConnector } from 'undici'

const CONTINUE = 'HTTP/1.1 100'
const END_OF_HEAD = '\r\n\r\n'

/**
 * Opens connections in at most `timeout` milliseconds. A client discards an unrequested 1xx (RFC 9110, 15.2), but
 * undici takes a 100 for a broken connection; so it is hidden from undici.
 */
export function connectDiscardingContinue(timeout: number): buildConnector.connector {
  const connect = buildConnector({ timeout })
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result
      // Undefined if nobody listens, despite its type.
      if (socket instanceof Socket) discardContinue(socket)
      callback(...result)
    })
}

function discardContinue(socket: Socket): void {
  const read = socket.read.bind(socket)
  socket.read = (size?: number): unknown => {
    const part: unknown = read(size)
    if (!(part instanceof Buffer) || !part.subarray(0, CONTINUE.length).equals(Buffer.from(CONTINUE)))
      return part
    const end = part.indexOf(END_OF_HEAD)
    if (end === -1) return part
    const rest = part.subarray(end + END_OF_HEAD.length)
    return rest.length > 0 ? rest : read(size)
  }
}
