/** CONTRACT 6: odd HTTP on bare sockets, each behaviour whole and streamed. */
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MESSAGES, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import { portOf } from '../../support/ports.ts'
import { chunksOf, completion, sse } from '../../support/chat/upstream.ts'

/** What the socket sends; `body` is the requested reply. */
type Speak = (socket: Socket, body: string) => void

const HEAD = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const chunked = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
const reply = (body: string) => `${HEAD}${chunked(body)}0\r\n\r\n`
const isEvents = (body: string) => body.startsWith('data:')
const withoutDone = (body: string) => body.replace('data: [DONE]\n\n', '')

const SERVED: Readonly<Record<string, Speak>> = {
  'that sends 100 Continue first': (socket, body) => {
    socket.write('HTTP/1.1 100 Continue\r\n\r\n')
    setTimeout(() => socket.write(reply(body)), 20)
  },
  'that sends early hints first': (socket, body) =>
    void socket.write(`HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n${reply(body)}`),
  'of HTTP/1.0': (socket, body) => void socket.end(`HTTP/1.0 200 OK\r\n\r\n${body}`),
  'whose head comes slowly': (socket, body) => {
    const text = reply(body)
    const pieces = text.match(/[\s\S]{1,60}/g) ?? []
    const timer = setInterval(() => {
      const piece = pieces.shift()
      if (piece === undefined) clearInterval(timer)
      else socket.write(piece)
    }, 2)
  },
  'that stays open after [DONE]': (socket, body) =>
    void socket.write(isEvents(body) ? HEAD + chunked(body) : reply(body)),
  'that stays open after usage': (socket, body) =>
    void socket.write(isEvents(body) ? HEAD + chunked(withoutDone(body)) : reply(body)),
  'that goes on with comments after usage': (socket, body) => {
    if (!isEvents(body)) return void socket.write(reply(body))
    socket.write(HEAD + chunked(withoutDone(body)))
    const timer = setInterval(() => socket.write(chunked(': still here\n\n')), 100)
    socket.once('close', () => clearInterval(timer))
  },
  'that comments before its first token': (socket, body) => {
    if (!isEvents(body)) return void socket.write(reply(body))
    socket.write(HEAD + chunked(': still here\n\n'))
    setTimeout(() => socket.write(`${chunked(body)}0\r\n\r\n`), 50)
  },
  'that is reset after usage': (socket, body) => {
    if (!isEvents(body)) return void socket.write(reply(body))
    socket.write(HEAD + chunked(withoutDone(body)))
    setTimeout(() => socket.resetAndDestroy(), 50)
  },
  'that closes right after each reply': (socket, body) => {
    socket.write(reply(body))
    setTimeout(() => socket.destroy(), 3)
  },
}

const FAILED: Readonly<Record<string, Speak>> = {
  'that is closed without a reply': (socket) => void socket.destroy(),
  'whose lines end without a carriage return': (socket, body) =>
    void socket.end(`HTTP/1.1 200 OK\nContent-Length: ${body.length}\n\n${body}`),
  'that ends halfway': (socket, body) =>
    void socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n${body.slice(0, 20)}`),
}

let chat: ScriptedChat
let server: Server
let speak: Speak = () => undefined

beforeAll(async () => {
  server = createServer((socket) => {
    let request = ''
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      request += data.toString()
      const length = Number(/content-length: (\d+)/i.exec(request)?.[1] ?? Infinity)
      if (request.length < request.indexOf('\r\n\r\n') + 4 + length) return
      const streams = request.includes('"stream":true')
      request = ''
      speak(socket, streams ? sse(chunksOf(['Hello'])) : JSON.stringify(completion('Hello')))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  chat = await startScriptedChat({
    wire: (provider) => ({
      'a/one': [{ ...provider, base_url: `http://127.0.0.1:${portOf(server)}/v1` }],
    }),
  })
})
afterAll(async () => {
  await chat.stop()
  server.close()
})

async function ask(streams: boolean) {
  const response = await chat.api.post({ model: 'a/one', messages: MESSAGES, stream: streams })
  return { status: response.status, text: await response.text() }
}

describe.each([{ streams: false }, { streams: true }])(
  'with stream: $streams, a connection',
  ({ streams }) => {
    it.each(Object.entries(SERVED))('%s returns the reply', async (_name, behaviour) => {
      speak = behaviour
      // The second request may find the connection of the first.
      for (const { status, text } of [await ask(streams), await ask(streams)]) {
        expect({ status, text }).toMatchObject({ status: 200, text: expect.stringContaining('Hello') })
        expect(text).toContain('"prompt_tokens":7')
        if (streams) expect(text).toMatch(/\[DONE\]\n\n$/)
      }
    })

    it.each(Object.entries(FAILED))('%s is a failure of the provider', async (_name, behaviour) => {
      speak = behaviour
      expect((await ask(streams)).status).toBe(502)
      expect(chat.records().at(-1)).toMatchObject({ requests: 0, outcome: 'failed' })
    })
  },
)

describe('a proxy that the environment names', () => {
  /** Answers plain requests itself, and rejects tunnels; `asked` holds the requests. */
  async function askThrough(
    baseUrl: (plain: string) => string,
    environment: (proxy: string) => Record<string, string>,
  ) {
    const asked: string[] = []
    const proxy = createHttpServer((request, response) => {
      asked.push(request.url ?? '')
      response.end(JSON.stringify(completion('from the proxy')))
    })
    proxy.on('connect', ({ url }, socket) => {
      asked.push(`CONNECT ${url}`)
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    await using service = await startScriptedChat({
      environment: environment(`http://127.0.0.1:${portOf(proxy)}`),
      wire: (provider) => ({ 'a/one': [{ ...provider, base_url: baseUrl(provider.base_url) }] }),
    })
    service.script((response) => void response.end(JSON.stringify(completion('straight'))))
    const response = await service.api.post({ model: 'a/one', messages: MESSAGES })
    proxy.close()
    return { asked, status: response.status, text: await response.text() }
  }

  it.each([
    [
      'gets plain requests whole',
      'http://models.example/v1',
      'http_proxy',
      'http://models.example/v1/chat/completions',
    ],
    [
      'gets tunnel requests for https addresses',
      'https://models.example/v1',
      'HTTPS_PROXY',
      'CONNECT models.example:443',
    ],
  ])('%s', async (_name, url, variable, wanted) => {
    const { asked } = await askThrough(
      () => url,
      (proxy) => ({ [variable]: proxy }),
    )
    expect(asked).toEqual([wanted])
  })

  it('is bypassed for the hosts of NO_PROXY', async () => {
    const { asked, text } = await askThrough(
      (url) => url,
      (proxy) => ({ HTTP_PROXY: proxy, NO_PROXY: 'localhost,127.0.0.1' }),
    )
    expect(text).toContain('straight')
    expect(asked).toEqual([])
  })
})

it.each([
  ['is reset', (socket: Socket) => void socket.resetAndDestroy()],
  ['is closed', (socket: Socket) => void socket.destroy()],
])('a kept connection that %s as it is used again is replaced, a new one is not', async (_name, breaking) => {
  let requests = 0
  const serve: Speak = (socket, body) => void socket.write(reply(body))
  speak = (socket, body) => ([serve, breaking, serve, breaking][requests++] ?? breaking)(socket, body)
  // A connection of an earlier test must not be in the way.
  await using fresh = await startScriptedChat({
    wire: (provider) => ({
      'a/one': [{ ...provider, base_url: `http://127.0.0.1:${portOf(server)}/v1` }],
    }),
  })
  const post = async () => (await fresh.api.post({ model: 'a/one', messages: MESSAGES })).status
  expect([await post(), await post()]).toEqual([200, 200])
  expect(requests).toBe(3)
  await using other = await startScriptedChat({
    wire: (provider) => ({
      'a/one': [{ ...provider, base_url: `http://127.0.0.1:${portOf(server)}/v1` }],
    }),
  })
  expect((await other.api.post({ model: 'a/one', messages: MESSAGES })).status).toBe(502)
  expect(requests).toBe(4)
})
