/** Replies whose head stands ready as text: what is the same for many requests is checked and put together once. */
import { STATUS_CODES, validateHeaderName, validateHeaderValue, type ServerResponse } from 'node:http'
import type { Headers } from './call.ts'
import { createOncePer } from '../process/once-per.ts'

declare module 'node:http' {
  interface OutgoingMessage {
    /** Status line and headers as they go over the wire, which Node makes of what `writeHead` is given. */
    _header: string | null
  }
}

/** Lines of a head, each with its end. */
export type HeadLines = string

/**
 * The lines of these headers.
 * @throws {TypeError} when a name or a value cannot be sent.
 */
export function headLines(headers: Headers): HeadLines {
  return Object.entries(headers)
    .map(([name, value]) => {
      validateHeaderName(name)
      validateHeaderValue(name, value)
      return `${name}: ${value}\r\n`
    })
    .join('')
}

/** A reply without those of its lines that belong to the connection. */
interface ReadyReply {
  readonly status: number
  readonly lines: HeadLines
  /** Its bytes, one character for each (latin1); the lines tell their number. */
  readonly body: string
}

/**
 * Ends a reply. To set and check two dozen headers anew for each takes Node longer than all else about a ready answer,
 * so its head is put where Node would put the one it makes (`_header`), if that would not differ.
 * @param keepAlive the lines of a connection that is kept; undefined where they are not known.
 */
export function endReady(reply: ServerResponse, ready: ReadyReply, keepAlive: HeadLines | undefined): void {
  const { status, lines, body } = ready
  if (keepAlive !== undefined && isPlain(reply)) {
    reply.statusCode = status
    // oxlint-disable-next-line no-underscore-dangle -- the name is Node's
    reply._header = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}${dateLine(Date.now())}${keepAlive}\r\n`
  } else {
    reply.writeHead(status, namesAndValues(lines))
  }
  reply.end(body, 'latin1')
}

/** Whether Node would add to the head what it adds to nearly all: the date, and that the connection is kept. */
function isPlain(reply: ServerResponse): boolean {
  return reply.shouldKeepAlive && reply.req.httpVersion === '1.1' && reply.getHeaderNames().length === 0
}

function namesAndValues(lines: HeadLines): string[] {
  return lines
    .split('\r\n')
    .slice(0, -1)
    .flatMap((line) => {
      const [name = ''] = line.split(':', 1)
      return [name, line.slice(name.length + ': '.length)]
    })
}

const dateLine = createOncePer(1000, (time) => `Date: ${new Date(time).toUTCString()}\r\n`)
