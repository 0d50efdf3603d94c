/** CONTRACT 6: clients that disconnect or do not read, and a service that stops: each request has its record. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { until } from '../../support/api.ts'
import { sendOver } from '../../support/connections.ts'
import { readText, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import {
  answers,
  chunk,
  chunksOf,
  completion,
  endsWith,
  events,
  held,
  json,
  sse,
  status,
  USAGE,
  writes,
  type Behaviour,
} from '../../support/chat/upstream.ts'

type Members = Readonly<Record<string, unknown>>
type Options = NonNullable<Parameters<typeof startScriptedChat>[0]>

const nothing: Behaviour = () => undefined
const BEGUN = { prompt_tokens: 11, completion_tokens: 2 }
const beginsWord = events(chunk({ content: 'Hel' }))
const beginsStream = events(chunk({ content: 'Hel' }, null, { usage: BEGUN }))

/** A service over a provider that behaves like this, with a backup. */
const start = (behaviour: Behaviour, provided: Members = {}, options: Options = {}) =>
  startScriptedChat({
    models: { 'a/one': [provided, { name: 'backup', model: 'backup' }] },
    behaviours: { scripted: behaviour, backup: answers() },
    ...options,
  })

/** Waits until the service has noticed that a client disconnected. */
const untilNoticed = ({ api }: ScriptedChat) =>
  until(() => api.lines.some((line) => line.includes('"aborted":true')))

/** A client that disconnects: from a stream after its first part, otherwise once the provider has the request. */
async function disconnect(chat: ScriptedChat, isAmidStream: boolean, more: Members = {}): Promise<void> {
  const before = chat.upstream.received.length
  const client = new AbortController()
  const asked = chat.api.ask(more, { signal: client.signal })
  if (isAmidStream) await (await asked).body?.getReader().read()
  else await until(() => chat.upstream.received.length > before)
  client.abort()
  await asked.catch(() => undefined)
  await untilNoticed(chat)
}

const HOUR_MS = 3_600_000
const CANCELLED = 'the client disconnected, and the reply was not read to its end'
const cancel = { on_leave: 'cancel' }
const known = { prompt_tokens: 11, completion_tokens: 2, usage_missing: null }
const ended = { prompt_tokens: USAGE.prompt_tokens, completion_tokens: USAGE.completion_tokens }

type DisconnectCase = {
  readonly provided?: Members
  readonly chat?: Options['chat']
  /** What the provider does first, if anything: a stream is left after its first part. */
  readonly first?: Behaviour
  /** What it does once the client has left, if anything. */
  readonly last?: Behaviour
  readonly asked?: Members
  readonly record: Members
}

const CASES: Readonly<Record<string, DisconnectCase>> = {
  'amid a stream has the usage at its end in its record': {
    first: beginsStream,
    last: endsWith(...chunksOf(['lo'])),
    record: { status: 200, requests: 1, ...ended, usage_missing: null },
  },
  'before a whole reply has its usage in the record all the same': {
    last: json(completion()),
    record: { status: 499, requests: 1, provider: 'acme', ...ended },
  },
  'before the first token has its usage in the record all the same': {
    last: answers(),
    asked: { stream: true },
    record: { status: 499, requests: 1, provider: 'acme', ...ended },
  },
  'before a failure is not served by the next provider': {
    last: status(500),
    record: { status: 499, requests: 0, model: null },
  },
  'amid a stream that is then cancelled has the tokens known so far': {
    provided: cancel,
    first: beginsStream,
    record: { status: 200, requests: 1, ...known },
  },
  'before the first token has its attempt cancelled where the provider is configured so': {
    provided: cancel,
    record: { status: 499, requests: 0, usage_missing: 'no provider served the request' },
  },
  'has its reply read for a limited time': {
    chat: { drainMs: 50 },
    first: beginsWord,
    record: { requests: 1, prompt_tokens: null, usage_missing: CANCELLED },
  },
  'has its reply read only if not too many others are still read': {
    chat: { drains: 0 },
    first: beginsWord,
    record: { requests: 1, prompt_tokens: null, usage_missing: CANCELLED },
  },
}

describe('a client that disconnects', () => {
  it.each(Object.entries(CASES))(
    '%s',
    async (_name, { provided, chat: limits = {}, first = nothing, last = nothing, asked, record }) => {
      const { behaviour, goOn } = held(first, last)
      // Beyond any test: a reply that should be cancelled and is read on has no record.
      await using chat = await start(behaviour, provided, { chat: { drainMs: HOUR_MS, ...limits } })
      await (first === nothing ? disconnect(chat, false, asked) : disconnect(chat, true, { stream: true }))
      goOn()
      expect(await chat.untilRecords()).toMatchObject([{ outcome: 'left', ...record }])
      expect(chat.upstream.asked()).toEqual(['scripted'])
      expect(await chat.api.metrics()).not.toMatch(/^chat_fallbacks_total\{/m)
      // Nothing is left open.
      await until(async () => (await chat.upstream.connections()) === 0)
    },
  )

  it('does not count against the health of a provider', async () => {
    await using chat = await start(held(beginsStream, nothing).behaviour, {}, { chat: { drains: 0 } })
    for (let request = 1; request <= 4; request++) {
      await disconnect(chat, true, { stream: true })
      await chat.untilRecords(request)
    }
    expect(chat.upstream.asked()).toEqual(Array.from({ length: 4 }, () => 'scripted'))
  })

  /** How a request is held up in the store until `end`. */
  const HELD: Readonly<Record<string, (chat: ScriptedChat, end: Promise<void>) => unknown>> = {
    'its key is looked up'({ api: { store } }, end) {
      const query = store.query.bind(store)
      const late: typeof query = async (...statement) => {
        await end
        return await query(...statement)
      }
      Object.assign(store, { query: late })
    },
    async 'its request is counted'({ api: { store } }, end) {
      // Only a key with a limit waits for this.
      await store.query('UPDATE api_keys SET requests_per_minute = 1000')
      void store.transaction(() => end)
    },
  }

  it.each(Object.entries(HELD))(
    'while %s has its record, and no provider gets the request',
    async (_when, hold) => {
      await using chat = await start(answers())
      const { promise: end, resolve: goOn } = Promise.withResolvers<void>()
      await hold(chat, end)
      askWithoutReading(chat).end()
      await untilNoticed(chat)
      goOn()
      expect(await chat.untilRecords()).toMatchObject([{ outcome: 'left', status: 499, requests: 0 }])
      expect(chat.upstream.received).toEqual([])
    },
  )
})

/** An endless stream, larger than the buffers between a provider and a client that does not read. */
const flood: Behaviour = async (response, received) => {
  const part = sse([chunk({ content: 'x'.repeat(60_000) })], false)
  await writes(part)(response, received)
  const closed = once(response, 'close')
  while (!response.destroyed) if (!response.write(part)) await Promise.race([once(response, 'drain'), closed])
}

/** Requests a stream on a connection that is never read. */
const askWithoutReading = (chat: ScriptedChat) =>
  sendOver(chat.api.origin, chat.rawRequest([], { stream: true })).pause()

describe('a client that does not read', () => {
  it('is cut off when the time is over, without blame for the provider', async () => {
    await using chat = await start(flood, { timeouts: { total_ms: 1500 } })
    const sockets = Array.from({ length: 3 }, () => askWithoutReading(chat))
    const cut = {
      outcome: 'cut',
      requests: 1,
      usage_missing: 'the provider was cut off, since the caller did not read its reply',
      attempts: [{ status: 200, error_type: 'timeout' }],
    }
    expect(await chat.untilRecords(3)).toMatchObject([cut, cut, cut])
    await until(async () => (await chat.upstream.connections()) === 0)
    expect(await chat.api.metrics()).not.toMatch(/^chat_breaker_open\{.*1$/m)
    // The rest of the reply is read, and then its end.
    await Promise.all(sockets.map((socket) => once(socket.resume(), 'close')))
  })

  it('and disconnects has the usage at the end of its stream in its record', async () => {
    const words = Array.from({ length: 400 }, () => 'x'.repeat(50_000))
    await using chat = await start(endsWith(...chunksOf(words)))
    const socket = askWithoutReading(chat)
    await until(() => chat.upstream.received.length === 1)
    // By then the service mostly waits for the client; before, the result is the same.
    await sleep(500)
    socket.destroy()
    expect(await chat.untilRecords()).toMatchObject([{ outcome: 'left', requests: 1, ...ended }])
  })
})

const STOPPED = 'the service stopped, and the reply was not read to its end'
const atOnce = { limits: { stopMs: 50 } }

describe('a service that stops', () => {
  it('lets a stream come to its end', async () => {
    const { behaviour, goOn } = held(beginsStream, endsWith(...chunksOf(['lo'])))
    await using chat = await start(behaviour)
    const response = await chat.api.ask({ stream: true })
    const closed = chat.api.close()
    goOn()
    expect((await response.text()).endsWith('data: [DONE]\n\n')).toBe(true)
    await closed
    expect(chat.records()).toMatchObject([{ outcome: 'completed', ...ended }])
  })

  it('sends an error to clients with streams that take too long', async () => {
    await using chat = await start(beginsWord, {}, atOnce)
    const response = await chat.api.ask({ stream: true })
    const closed = chat.api.close()
    const { text, isBroken } = await readText(response)
    expect(text).toMatch(/"error":\{[^\n]*\n\n$/)
    expect(isBroken).toBe(true)
    await closed
    expect(chat.records()).toMatchObject([{ outcome: 'cut', usage_missing: STOPPED }])
  })

  it('tries no other provider for requests that it ends', async () => {
    await using chat = await start(nothing, {}, atOnce)
    const asked = chat.api.ask()
    await until(() => chat.upstream.received.length === 1)
    await chat.api.close()
    const response = await asked
    expect(response.status).toBe(502)
    // Another process may serve it at once.
    expect(response.headers.get('Retry-After')).toBe('5')
    expect(chat.upstream.asked()).toEqual(['scripted'])
  })

  it('is not held up by a client that does not read', async () => {
    await using chat = await start(flood, {}, atOnce)
    const socket = askWithoutReading(chat).resume()
    await once(socket, 'data')
    socket.pause()
    await chat.api.close()
    expect(chat.records()).toMatchObject([{ outcome: 'cut', usage_missing: STOPPED }])
    socket.destroy()
  })

  it('records requests of clients that disconnected, though the provider never ends', async () => {
    await using chat = await start(beginsStream, {}, { chat: { stopMs: 50 } })
    await disconnect(chat, true, { stream: true })
    await chat.api.close()
    expect(chat.records()).toMatchObject([{ outcome: 'left', requests: 1, ...known }])
  })
})
