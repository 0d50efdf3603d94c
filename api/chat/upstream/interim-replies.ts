/** Connections on which an unasked-for `100 Continue` does no harm. */
import { Socket } from 'node:net'
import { buildConnector } from 'undici'

const CONTINUE = 'HTTP/1.1 100'
const END_OF_HEAD = '\r\n\r\n'

/**
 * Opens connections in at most `timeout` milliseconds. A client discards a 1xx that it did not ask for (RFC 9110,
 * 15.2); undici instead takes a 100 for a broken connection, so it does not get to see one.
 */
export function connectDiscardingContinue(timeout: number): buildConnector.connector {
  const connect = buildConnector({ timeout })
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result
      // Where nobody listens it is undefined, whatever the types say.
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
