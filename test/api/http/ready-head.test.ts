import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import express from 'express'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createExpressServer } from '../../../api/http/server/express-server.ts'
import { endReady, headLines } from '../../../api/http/ready-head.ts'
import { sendRaw } from '../../support/api.ts'

describe('headLines', () => {
  it('gives a line for each header', () => {
    expect(headLines({ ETag: '"a"', Vary: 'Accept' })).toBe('ETag: "a"\r\nVary: Accept\r\n')
    expect(headLines({})).toBe('')
  })

  it('refuses what would make a line of its own', () => {
    expect(() => headLines({ ETag: 'a\r\nSet-Cookie: b' })).toThrow(/Invalid character/)
    expect(() => headLines({ 'E Tag': 'a' })).toThrow(/valid HTTP token/)
    expect(() => headLines({ ETag: 'Ā' })).toThrow(/Invalid character/)
  })
})

const LINES = headLines({ ETag: '"a:b"', 'Content-Type': 'text/plain' })

/** The same replies by both ways: as they stand ready, and as Node puts them together. */
const { server } = createExpressServer(
  express()
    .use('/stopping', (_request, reply, next) => {
      reply.setHeader('Connection', 'close')
      next()
    })
    .use((request, reply) => {
      const { keepAlive } = reply.locals
      const status = request.path.endsWith('/304') ? 304 : 200
      const body = status === 304 ? '' : 'ä'
      const lines = status === 304 ? LINES : `${LINES}Content-Length: 1\r\n`
      const ready = { status, lines, body }
      endReady(reply, ready, request.path.startsWith('/node/') ? undefined : keepAlive)
      made.push(reply)
    }),
  { keepAliveTimeout: 7000 },
)
const made: ServerResponse[] = []
let origin: string

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  origin = `http://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`
})

afterAll(() => {
  server.close()
  server.closeAllConnections()
})

/** What is answered to a request after which the client ends its side; header lines in alphabetical order, without the time. */
async function answerTo(text: string) {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(origin).port) })
  let answer = ''
  socket.setEncoding('latin1').on('data', (part: string) => (answer += part))
  socket.end(text)
  await once(socket, 'close')
  const [head = '', ...body] = answer.split('\r\n\r\n')
  const [status, ...lines] = head.replace(/\r\nDate: [^\r]+ GMT/, '\r\nDate: now').split('\r\n')
  return { status, lines: lines.toSorted(), body: body.join('\r\n\r\n') }
}

describe('endReady', () => {
  it.each([
    ['a GET', 'GET /HOW/ HTTP/1.1', ''],
    ['a GET that is answered 304', 'GET /HOW/304 HTTP/1.1', ''],
    ['a HEAD', 'HEAD /HOW/ HTTP/1.1', ''],
    ['the last request on a connection', 'GET /HOW/ HTTP/1.1', 'Connection: close\r\n'],
    ['a request by HTTP/1.0', 'GET /HOW/ HTTP/1.0', ''],
    ['a connection that is kept by HTTP/1.0', 'GET /HOW/ HTTP/1.0', 'Connection: keep-alive\r\n'],
    ['a 304 by HTTP/1.0', 'GET /HOW/304 HTTP/1.0', 'Connection: keep-alive\r\n'],
    ['a client that asks whether to go on', 'GET /HOW/ HTTP/1.1', 'Expect: 100-continue\r\n'],
  ])('says what Node would say to %s', async (_what, line, header) => {
    const ask = (how: string) => answerTo(`${line.replace('HOW', how)}\r\nHost: x\r\n${header}\r\n`)
    const ready = await ask('ready')
    expect(ready).toEqual(await ask('node'))
    expect(ready.status).toMatch(/^HTTP\/1\.1 (?:100 Continue|200 OK|304 Not Modified)$/)
    const text = [...ready.lines, ready.body].join('\n')
    expect(text).toContain('ETag: "a:b"')
    expect(text).toMatch(/Date: (?:now|\w{3}, \d\d)/)
  })

  it('leaves what was set before to Node', async () => {
    const { lines } = await answerTo('GET /stopping HTTP/1.1\r\nHost: x\r\n\r\n')
    expect(lines).toContain('Connection: close')
    expect(lines).toContain('ETag: "a:b"')
    expect(lines.join()).not.toContain('keep-alive')
  })

  it('keeps the connection for further requests, also those that were sent without waiting', async () => {
    const ask = 'GET /ready/ HTTP/1.1\r\nHost: x\r\n'
    const answer = await sendRaw(origin, `${ask}\r\n${ask}\r\n${ask}Connection: close\r\n\r\n`)
    expect(answer.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3)
    expect(answer.match(/Connection: keep-alive\r\nKeep-Alive: timeout=7\r\n/g)).toHaveLength(2)
    expect(answer.match(/Connection: close\r\n/g)).toHaveLength(1)
  })

  it('tells of the reply what Node would tell', async () => {
    made.length = 0
    await answerTo('GET /ready/304 HTTP/1.1\r\nHost: x\r\n\r\n')
    await answerTo('GET /node/304 HTTP/1.1\r\nHost: x\r\n\r\n')
    const told = made.map(({ statusCode, headersSent, writableEnded, writableFinished }) => {
      return { statusCode, headersSent, writableEnded, writableFinished }
    })
    expect(told).toHaveLength(2)
    expect(told[0]).toEqual({
      statusCode: 304,
      headersSent: true,
      writableEnded: true,
      writableFinished: true,
    })
    expect(told[1]).toEqual(told[0])
  })
})
