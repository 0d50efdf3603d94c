/** CONTRACT 6: the forms of providers' replies and errors: whole and streamed, alone and with a backup. */
import { once } from 'node:events'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askForStream } from '../../support/chat/chat-stream.ts'
import { MESSAGES, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import {
  answers,
  chunk,
  chunksOf,
  completion,
  sse,
  stall,
  stream,
  type Behaviour,
} from '../../support/chat/upstream.ts'

const HOUR_MS = 3_600_000
const UNHURRIED = { first_token_ms: HOUR_MS, idle_ms: HOUR_MS, total_ms: HOUR_MS }

let chat: ScriptedChat
beforeAll(async () => {
  chat = await startScriptedChat({
    wire: (provider) => {
      const first = { ...provider, timeouts: UNHURRIED }
      return {
        'a/one': [first],
        'a/backed': [first, { ...provider, name: 'backup', model: 'backup' }],
        'a/alive': [{ ...provider, timeouts: { ...UNHURRIED, first_token_ms: 300, keep_alive_ms: HOUR_MS } }],
        'a/bounded': [{ ...provider, timeouts: { ...UNHURRIED, first_token_ms: 300, keep_alive_ms: 600 } }],
      }
    },
    modelLimits: { total_ms: HOUR_MS },
  })
  chat.upstream.behaviours['backup'] = answers(['from the ', 'backup'])
})
afterAll(() => chat.stop())

async function ask(behaviour: Behaviour, model: string, streams: boolean) {
  chat.script(behaviour)
  const response = await chat.api.post({ model, messages: MESSAGES, stream: streams })
  return { status: response.status, text: await response.text() }
}

const isWhole = (text: string) => text.endsWith('data: [DONE]\n\n')

const WHOLE = JSON.stringify(completion('Hello'))
const EVENTS = sse(chunksOf(['Hello']))
const textFor = (wantsStream: boolean | undefined) => (wantsStream === true ? EVENTS : WHOLE)

/** The requested reply with this status, these headers and these bytes. */
const wrapped =
  (
    headers: Readonly<Record<string, string>>,
    pack: (text: string) => string | Buffer = (text) => text,
    code = 200,
  ): Behaviour =>
  (response, { body }) =>
    void response.writeHead(code, headers).end(pack(textFor(body.stream)))

const always =
  (type: string, text: string): Behaviour =>
  (response) =>
    void response.writeHead(200, { 'content-type': type }).end(text)

const coded = (coding: string, pack: (text: string) => Buffer) =>
  wrapped({ 'content-encoding': coding, 'content-type': 'text/event-stream' }, pack)

const severalLines = (chunks: readonly unknown[]) =>
  chunks
    .map((one) => `${JSON.stringify(one, null, 1).replaceAll(/^/gm, 'data: ')}\n\n`)
    .concat('data: [DONE]\n\n')
    .join('')

const AMONG_OTHERS = `: waiting\n\nretry: 3000\n\nevent: message\nid: 1\n${EVENTS.replaceAll('data: ', ':\n\n: still here\n\ndata: ')}`

const inBytes: Behaviour = (response, received) =>
  stream(textFor(received.body.stream), { pieces: 1 })(response, received)

const READ: readonly (readonly [string, Behaviour])[] = [
  ['packed by gzip', coded('gzip', gzipSync)],
  ['packed by deflate', coded('deflate', deflateSync)],
  ['packed by br', coded('br', brotliCompressSync)],
  ['called JSON, whatever it is', wrapped({ 'content-type': 'application/json' })],
  ['called events, whatever it is', wrapped({ 'content-type': 'text/event-stream' })],
  ['called plain text', wrapped({ 'content-type': 'text/plain' })],
  ['without a type', wrapped({})],
  ['with a 201', wrapped({}, (text) => text, 201)],
  ['in events, whatever was asked for', always('text/event-stream', EVENTS)],
  ['in JSON, whatever was asked for', always('application/json', WHOLE)],
  [
    'in a line of JSON each',
    always(
      'application/x-ndjson',
      chunksOf(['Hel', 'lo'])
        .map((one) => `${JSON.stringify(one)}\n`)
        .join(''),
    ),
  ],
  ['in events without blank lines', always('text/event-stream', EVENTS.replaceAll('\n\n', '\n'))],
  ['in JSON after blank lines', wrapped({}, (text) => `\n\n  ${text}`)],
  ['in a list of JSON', always('application/json', JSON.stringify(chunksOf(['Hel', 'lo'])))],
  ['after a byte order mark', wrapped({}, (text) => `\uFEFF${text}`)],
  ['in lines that end with CRLF', wrapped({}, (text) => text.replaceAll('\n', '\r\n'))],
  ['in lines that end with CR', wrapped({}, (text) => text.replaceAll('\n', '\r'))],
  ['in events without a space', always('text/event-stream', EVENTS.replaceAll('data: ', 'data:'))],
  ['in events of several lines', always('text/event-stream', severalLines(chunksOf(['Hel', 'lo'])))],
  ['in events among comments and other fields', always('text/event-stream', AMONG_OTHERS)],
  ['with data after [DONE]', always('text/event-stream', `${EVENTS}data: {"choices":[]}\n\n`)],
  ['in single bytes', inBytes],
]

describe.each([{ streams: false }, { streams: true }])('with stream: $streams', ({ streams }) => {
  it.each(READ)('a reply %s is read', async (_name, behaviour) => {
    const { status, text } = await ask(behaviour, 'a/one', streams)
    expect(status).toBe(200)
    expect(text).toContain(streams ? '"content":"Hel' : '"content":"Hello"')
    expect(text).toContain('"prompt_tokens":7,"completion_tokens":3')
    if (streams) expect(isWhole(text)).toBe(true)
  })
})

describe('an error after the first token of a stream', () => {
  const begun = sse([chunk({ content: 'Hel' })], false)
  it.each([
    [
      'in an event of that name',
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
    ],
    ['in an event of that name that is no JSON', 'event: error\ndata: secret\n\n'],
    ['in an event of that name without data', 'event: error\ndata:\n\n'],
    ['with nothing but a message', 'data: {"message":"secret"}\n\n'],
    ['with nothing but a code', 'data: {"code":500}\n\n'],
    ['as a detail', 'data: {"detail":"secret"}\n\n'],
    ['of vLLM', 'data: {"object":"error","message":"secret","type":"InternalServerError","code":500}\n\n'],
    ['in a field of that name', 'error: {"code":500,"message":"secret","type":"server_error"}\n\n'],
    ['as a text', 'data: {"error":"secret"}\n\n'],
    ['as the end of a choice', sse([chunk({}, 'error')], false)],
    ['as the end of a choice, in another word', sse([chunk({}, 'insufficient_system_resource')], false)],
    ['in data that is no JSON', 'data: secret\n\n'],
  ])('%s is reported, and a later [DONE] does not undo it', async (_name, error) => {
    const passedOn = Promise.withResolvers<void>()
    const failing: Behaviour = async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(begun)
      await passedOn.promise
      response.end(`${error}data: [DONE]\n\n`)
    }
    const {
      text,
      isWhole: isHealed,
      record,
    } = await askForStream(chat, failing, {
      onText: (read) => void (read.includes('Hel') && passedOn.resolve()),
    })
    expect(text).toContain('"finish_reason":"error"')
    expect(text).not.toContain('secret')
    expect(isHealed).toBe(false)
    expect(record).toMatchObject({ outcome: 'cut', requests: 1 })
  })

  it('in the same read moves on to the next provider, since nothing was sent', async () => {
    const failing = stream(`${begun}data: {"message":"secret"}\n\ndata: [DONE]\n\n`)
    expect((await ask(failing, 'a/backed', true)).text).toContain('backup')
  })
})

describe('a stream with every choice over', () => {
  const over = [chunk({ content: 'Hello' }), chunk({}, 'stop')]
  const usage = { ...chunk({}), choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } }

  it.each([
    ['that stays open', sse(over, false), null],
    ['that stays open after its usage', sse([...over, usage], false), 7],
  ])('%s ends after a short grace', async (_name, text, tokens) => {
    const got = await ask(stream(text, { ending: 'stall' }), 'a/one', true)
    expect(isWhole(got.text)).toBe(true)
    expect(chat.records().at(-1)).toMatchObject({ outcome: 'completed', prompt_tokens: tokens })
  })

  it('ends though comments go on without end', async () => {
    const beating: Behaviour = async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(sse([...over, usage], false))
      const timer = setInterval(() => response.write(': still here\n\n'), 100)
      await once(response, 'close')
      clearInterval(timer)
    }
    expect(isWhole((await ask(beating, 'a/one', true)).text)).toBe(true)
  })

  it('goes on as long as one of the requested choices has not begun', async () => {
    const second = (delta: unknown, finish: string | null) => ({
      ...chunk({}),
      choices: [{ index: 1, delta, finish_reason: finish }],
    })
    const enqueue: Behaviour = async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(sse(over, false))
      await new Promise((resolve) => setTimeout(resolve, 1500))
      response.end(sse([second({ content: 'second' }, null), second({}, 'length')]))
    }
    chat.script(enqueue)
    const response = await chat.api.post({ model: 'a/one', messages: MESSAGES, stream: true, n: 2 })
    const text = await response.text()
    expect(text).toContain('second')
    expect(isWhole(text)).toBe(true)
  })
})

describe('signs of life before the first token', () => {
  const beating =
    (beats: number, then: string): Behaviour =>
    async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let beat = 0; beat < beats && !response.destroyed; beat++) {
        response.write(': still here\n\n')
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      response.end(then)
    }

  it('extend the time, so that a slow provider may still answer', async () => {
    expect(isWhole((await ask(beating(6, EVENTS), 'a/alive', true)).text)).toBe(true)
  })

  it('extend the time up to a limit of their own', async () => {
    const { status, text } = await ask(beating(100, EVENTS), 'a/bounded', true)
    expect(status).toBe(408)
    expect(text).toContain('did not answer in time')
  })

  it('are needed: without any the time ends', async () => {
    expect((await ask(stall, 'a/alive', true)).status).toBe(408)
  })
})
