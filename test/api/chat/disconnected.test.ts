/** CONTRACT 6: clients that disconnect or do not read, and a service that stops: each request has its record. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { BASE_PATH } from '../../../api/paths.ts'
import { until } from '../../support/api.ts'
import { readText } from '../../support/chat/chat-stream.ts'
import { MESSAGES, startChat, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import {
  answers,
  chunk,
  chunksOf,
  completion,
  json,
  sse,
  stall,
  startUpstream,
  status,
  stream,
  USAGE,
  type Behaviour,
} from '../../support/chat/upstream.ts'
import { readRecords } from '../../support/chat/usage-records.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const DAY = '2026-03-10'
const clock = () => new Date(`${DAY}T12:00:00Z`)
const ONE = { model: 'a/one', messages: MESSAGES }

/** A behaviour that continues when it is released. */
function held(
  begin: Behaviour,
  end: Behaviour,
): { behaviour: Behaviour; begun: Promise<void>; goOn: () => void } {
  const begun = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  return {
    begun: begun.promise,
    goOn: () => released.resolve(),
    behaviour: async (response, received) => {
      await begin(response, received)
      begun.resolve()
      await released.promise
      await end(response, received)
    },
  }
}

const beginStream: Behaviour = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(sse([chunk({ content: 'Hel' })], false))
}
const endStream: Behaviour = (response) => void response.end(sse(chunksOf(['lo'])))
const nothing: Behaviour = () => undefined

async function start(behaviour: Behaviour, limits = {}, provided = {}) {
  const upstream = await startUpstream({ first: behaviour, second: answers() })
  const provider = { base_url: upstream.url, ...provided }
  const providers = [
    { ...provider, name: 'alpha', model: 'first' },
    { ...provider, name: 'beta', model: 'second' },
  ]
  const api = await startChat(folders, { 'a/one': providers }, { clock, chat: limits })
  return {
    ...api,
    upstream,
    record: () => until(() => readRecords(api.dataDir, DAY)[0]),
    async [Symbol.asyncDispose]() {
      await api.close()
      await upstream.close()
    },
  }
}

type Asked = Pick<Awaited<ReturnType<typeof startChat>>, 'post'>

/** Disconnects from a stream after its first part. */
async function readAndDisconnect(api: Asked): Promise<void> {
  const caller = new AbortController()
  const response = await api.post({ ...ONE, stream: true }, { signal: caller.signal })
  await response.body?.getReader().read()
  caller.abort()
}

/** Disconnects before a reply, once the provider has begun. */
async function disconnectOnce(api: Asked, begun: Promise<void>, body: unknown = ONE): Promise<void> {
  const caller = new AbortController()
  const asked = api.post(body, { signal: caller.signal }).catch(() => undefined)
  await begun
  caller.abort()
  await asked
}

describe('a client that disconnects', () => {
  it('in the middle of a stream is recorded with the usage at its end', async () => {
    const { behaviour, goOn } = held(beginStream, endStream)
    await using api = await start(behaviour)
    await readAndDisconnect(api)
    await until(() => api.lines.some((line) => line.includes('"aborted":true')))
    goOn()
    expect(await api.record()).toMatchObject({
      outcome: 'left',
      status: 200,
      requests: 1,
      prompt_tokens: USAGE.prompt_tokens,
      completion_tokens: USAGE.completion_tokens,
      usage_missing: null,
    })
  })

  it.each([
    ['a whole reply', false, json(completion())],
    ['the first token', true, answers()],
  ])('before %s is recorded with its usage all the same', async (_name, streams, end) => {
    const { behaviour, begun, goOn } = held(nothing, end)
    await using api = await start(behaviour)
    await disconnectOnce(api, begun, { ...ONE, stream: streams })
    await until(() => api.lines.some((line) => line.includes('"aborted":true')))
    goOn()
    expect(await api.record()).toMatchObject({
      outcome: 'left',
      status: 499,
      requests: 1,
      provider: 'alpha',
      prompt_tokens: USAGE.prompt_tokens,
    })
  })

  it('has its reply cancelled at once where the provider is configured so, and keeps the tokens known so far', async () => {
    const usage = { prompt_tokens: 11, completion_tokens: 2 }
    const begun: Behaviour = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(sse([{ ...chunk({ content: 'Hel' }), usage }], false))
    }
    await using api = await start(begun, {}, { on_leave: 'cancel' })
    await readAndDisconnect(api)
    expect(await api.record()).toMatchObject({
      outcome: 'left',
      requests: 1,
      prompt_tokens: 11,
      completion_tokens: 2,
    })
    await until(async () => (await api.upstream.connections()) === 0)
  })

  it('before its first token has its attempt cancelled where the provider is configured so, and no other follows', async () => {
    const { behaviour, begun } = held(nothing, nothing)
    await using api = await start(behaviour, {}, { on_leave: 'cancel' })
    await disconnectOnce(api, begun)
    expect(await api.record()).toMatchObject({ outcome: 'left', status: 499, requests: 0 })
    expect(api.upstream.asked()).toEqual(['first'])
    expect(await (await fetch(`${api.origin}/metrics`)).text()).not.toMatch(/^chat_fallbacks_total\{/m)
  })

  it.each([
    ['for a limited time', { drainMs: 50 }],
    ['only if not too many others are still read', { drains: 0 }],
  ])('has its reply read %s', async (_name, limits) => {
    const { behaviour } = held(beginStream, nothing)
    await using api = await start(behaviour, limits)
    await readAndDisconnect(api)
    expect(await api.record()).toMatchObject({
      outcome: 'left',
      requests: 1,
      prompt_tokens: null,
      usage_missing: 'the client disconnected, and the reply was not read to its end',
    })
    await until(async () => (await api.upstream.connections()) === 0)
  })

  it('is not served by the next provider', async () => {
    const { behaviour, begun, goOn } = held(nothing, status(500))
    await using api = await start(behaviour)
    await disconnectOnce(api, begun)
    await until(() => api.lines.some((line) => line.includes('"aborted":true')))
    goOn()
    expect(await api.record()).toMatchObject({ outcome: 'left', status: 499, requests: 0, model: null })
    expect(api.upstream.asked()).toEqual(['first'])
  })

  it('does not count against the health of a provider', async () => {
    const { behaviour } = held(beginStream, nothing)
    await using api = await start(behaviour, { drains: 0 })
    for (let request = 0; request < 4; request++) {
      await readAndDisconnect(api)
      await until(() => readRecords(api.dataDir, DAY).length === request + 1)
    }
    expect(api.upstream.asked()).toEqual(['first', 'first', 'first', 'first'])
  })
})

/** An endless stream, larger than the buffers between a provider and a client that does not read. */
const flood: Behaviour = async (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const part = sse([chunk({ content: 'x'.repeat(60_000) })], false)
  const closed = once(response, 'close')
  while (!response.destroyed) if (!response.write(part)) await Promise.race([once(response, 'drain'), closed])
}

/** Requests a stream on a connection that is never read. */
function askWithoutReading(chat: ScriptedChat): Socket {
  const { hostname, port, host } = new URL(chat.api.origin)
  const body = JSON.stringify({ ...ONE, stream: true })
  const socket = connect({ host: hostname, port: Number(port) }).pause()
  socket.on('error', () => undefined)
  socket.write(
    `POST ${BASE_PATH}/chat/completions HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${chat.api.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  return socket
}

describe('a client that does not read', () => {
  it('is cut off when the time is over, without blame for the provider', async () => {
    const timeouts = { total_ms: 1500 }
    const chat = await startScriptedChat({ wire: (provider) => ({ 'a/one': [{ ...provider, timeouts }] }) })
    chat.script(flood)
    const sockets = Array.from({ length: 3 }, () => askWithoutReading(chat))
    await until(() => chat.records().length === sockets.length)
    for (const record of chat.records()) {
      expect(record).toMatchObject({
        outcome: 'cut',
        requests: 1,
        usage_missing: 'the provider was cut off, since the caller did not read its reply',
        attempts: [{ status: 200, error_type: 'timeout' }],
      })
    }
    await until(async () => (await chat.upstream.connections()) === 0)
    expect(await (await fetch(`${chat.api.origin}/metrics`)).text()).not.toMatch(/^chat_breaker_open\{.*1$/m)
    // The rest of the reply is read, and then its end.
    await Promise.all(sockets.map((socket) => once(socket.resume(), 'close')))
    await chat.stop()
  })

  it('and disconnects is recorded with the usage at the end of its stream', async () => {
    const chat = await startScriptedChat()
    const words = Array.from({ length: 400 }, () => 'x'.repeat(50_000))
    chat.script(stream(sse(chunksOf(words))))
    const socket = askWithoutReading(chat)
    await until(() => chat.upstream.received.length === 1)
    // By then the service is waiting for the client.
    await sleep(500)
    socket.destroy()
    const [record] = await until(() => (chat.records().length === 1 ? chat.records() : undefined))
    expect(record).toMatchObject({ outcome: 'left', requests: 1, prompt_tokens: USAGE.prompt_tokens })
    await chat.stop()
  })

  it('does not hold up a service that stops', async () => {
    const chat = await startScriptedChat({ limits: { stopMs: 50 } })
    chat.script(flood)
    const socket = askWithoutReading(chat)
    await until(() => chat.upstream.received.length === 1)
    await chat.api.close()
    expect(chat.records()).toMatchObject([
      { outcome: 'cut', usage_missing: 'the service stopped, and the reply was not read to its end' },
    ])
    socket.destroy()
    await chat.stop()
  })
})

it('a client that disconnects while its request is counted is recorded so', async () => {
  const chat = await startScriptedChat()
  const looked = Promise.withResolvers<void>()
  // A key with a limit waits for this, since its request is counted.
  await chat.api.store.query('UPDATE api_keys SET requests_per_minute = 1000')
  const holding = chat.api.store.transaction(() => looked.promise)
  askWithoutReading(chat).end()
  await until(() => chat.api.lines.some((line) => line.includes('"aborted":true')))
  looked.resolve()
  await holding
  const [record] = await until(() => (chat.records().length === 1 ? chat.records() : undefined))
  expect(record).toMatchObject({ outcome: 'left', status: 499, requests: 0 })
  expect(chat.upstream.received).toEqual([])
  await chat.stop()
})

describe('a service that stops', () => {
  const begin = async (behaviour: Behaviour, limits = {}) => {
    const chat = await startScriptedChat({
      wire: (provider) => ({ 'a/one': [provider], 'a/two': [provider] }),
      ...limits,
    })
    chat.script(behaviour)
    return chat
  }

  it('lets a stream come to its end', async () => {
    const { behaviour, begun, goOn } = held(beginStream, endStream)
    await using chat = await begin(behaviour)
    const response = await chat.api.post({ ...ONE, stream: true })
    await begun
    const closed = chat.api.close()
    goOn()
    expect((await response.text()).endsWith('data: [DONE]\n\n')).toBe(true)
    await closed
    expect(chat.records()).toMatchObject([{ outcome: 'completed', prompt_tokens: 7 }])
  })

  it('sends an error to clients with streams that take too long', async () => {
    const { behaviour, begun } = held(beginStream, nothing)
    await using chat = await begin(behaviour, { limits: { stopMs: 50 } })
    const response = await chat.api.post({ ...ONE, stream: true })
    await begun
    const closed = chat.api.close()
    const { text } = await readText(response)
    expect(text).toMatch(/"error":\{[^\n]*\n\n$/)
    expect(text).not.toContain('[DONE]')
    await closed
    const usage_missing = 'the service stopped, and the reply was not read to its end'
    expect(chat.records()).toMatchObject([{ outcome: 'cut', usage_missing }])
  })

  it('tries no other provider for requests that it ends', async () => {
    await using chat = await begin(stall, { limits: { stopMs: 50 } })
    const asked = chat.api.post({ ...ONE, models: ['a/two'] })
    await until(() => chat.upstream.received.length === 1)
    await chat.api.close()
    const response = await asked
    expect(response.status).toBe(502)
    // Another process may serve it at once.
    expect(response.headers.get('Retry-After')).toBe('5')
    expect(chat.upstream.received).toHaveLength(1)
  })

  it('records requests of clients that disconnected, though the provider never ends', async () => {
    const { behaviour } = held(beginStream, nothing)
    await using chat = await begin(behaviour, { chat: { stopMs: 50 } })
    await readAndDisconnect(chat.api)
    await until(() => chat.api.lines.some((line) => line.includes('"aborted":true')))
    await chat.api.close()
    expect(chat.records()).toMatchObject([{ outcome: 'left', requests: 1, prompt_tokens: null }])
  })
})
