/** CONTRACT 6: the stream of a reply, from its first token to its last chunk. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../support/api.ts'
import { askForStream, readText } from '../../support/chat/chat-stream.ts'
import { MESSAGES, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import {
  answers,
  chunk,
  chunksOf,
  json,
  sse,
  stream,
  USAGE,
  type Behaviour,
} from '../../support/chat/upstream.ts'

/** The provider's silence limit in tests that wait for its end, and a longer pause of the client. */
const IDLE_MS = 1000
const LONG_PAUSE_MS = 2500
/** As IDLE_MS, for a stream that must not be cut: far above its pauses, even on a busy machine. */
const STEADY_MS = 3000
/** Longer than any test: each model has one deadline, so that no other deadline can end it. */
const HOUR_MS = 3_600_000
const UNHURRIED = { first_token_ms: HOUR_MS, idle_ms: HOUR_MS, total_ms: HOUR_MS }

let chat: ScriptedChat

beforeAll(async () => {
  chat = await startScriptedChat({
    wire: (provider) => ({
      'a/one': [provider],
      'a/unhurried': [{ ...provider, timeouts: UNHURRIED }],
      'a/impatient': [{ ...provider, timeouts: { ...UNHURRIED, idle_ms: IDLE_MS } }],
      'a/patient': [{ ...provider, timeouts: { ...UNHURRIED, idle_ms: STEADY_MS } }],
      'a/plain': [{ ...provider, include_usage: false }],
    }),
    modelLimits: { total_ms: HOUR_MS },
  })
})

afterAll(() => chat.stop())

const ask = (behaviour: Behaviour, asked?: Parameters<typeof askForStream>[2]) =>
  askForStream(chat, behaviour, asked)

/** The reply to a streamed request, while the provider behaves like this. */
function post(behaviour: Behaviour, model = 'a/one'): Promise<Response> {
  chat.script(behaviour)
  return chat.api.post({ model, messages: MESSAGES, stream: true })
}

/** Characters of an accepted event, such as an image, and of a rejected one. */
const LARGE = 12 * 1024 * 1024
const BEYOND_MEASURE = 17 * 1024 * 1024

const WORDS = ['Grüße ', '🚀', ' world']

describe('a stream', () => {
  it('is read whole wherever its bytes are split', async () => {
    const text = sse(chunksOf(WORDS))
    for (const pieces of [1, 2, 3, 5, 7, 1000]) {
      const { content, isWhole, last } = await ask(stream(text, { pieces }))
      expect(content).toBe(WORDS.join(''))
      expect(isWhole).toBe(true)
      expect(last).toMatchObject({ usage: USAGE, choices: [{ finish_reason: 'stop' }] })
    }
  })

  it('has usage and finish once, in the last chunk', async () => {
    const { chunks, record } = await ask(stream(sse(chunksOf(WORDS))))
    expect(chunks.filter(({ usage }) => usage !== undefined)).toHaveLength(1)
    expect(chunks.filter(({ choices }) => choices[0]?.finish_reason)).toHaveLength(1)
    expect(record).toMatchObject({
      prompt_tokens: 7,
      completion_tokens: 3,
      outcome: 'completed',
      usage_missing: null,
    })
  })

  it('has its usage in a chunk of its own, after the finish, if the request asks for it as for OpenAI', async () => {
    const { data, isWhole } = await ask(answers(), { more: { stream_options: { include_usage: true } } })
    expect(isWhole).toBe(true)
    const [finish, usage] = data.slice(-2)
    expect(finish).toMatchObject({ choices: [{ finish_reason: 'stop' }] })
    expect(finish).not.toHaveProperty('usage')
    expect(usage).toMatchObject({ choices: [], usage: USAGE })
  })

  it('with a finish in every chunk is read to its end, however slowly it goes on', async () => {
    const slow: Behaviour = async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const word of ['one ', 'two ', 'three']) {
        response.write(sse([chunk({ content: word }, 'stop')], false))
        await sleep(1200)
      }
      response.end(sse([{ ...chunk({}), choices: [], usage: USAGE }]))
    }
    const { content, record } = await ask(slow, { more: { model: 'a/unhurried' } })
    expect(content).toBe('one two three')
    expect(record).toMatchObject({ outcome: 'completed', prompt_tokens: 7 })
  })

  it('has its usage though that comes seconds after its finish', async () => {
    const late: Behaviour = async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(sse([chunk({ content: 'x' }), chunk({}, 'stop')], false))
      await sleep(1500)
      response.end(sse([{ ...chunk({}), choices: [], usage: USAGE }]))
    }
    expect((await ask(late)).record).toMatchObject({ prompt_tokens: 7, completion_tokens: 3 })
  })

  it('takes id and time of the first chunk that has them', async () => {
    const azure = { id: '', created: 0, model: '', choices: [], prompt_filter_results: [] }
    const { chunks } = await ask(stream(sse([azure, ...chunksOf(['Hello'])])))
    for (const { id, created } of chunks)
      expect({ id, created }).toEqual({ id: 'chatcmpl-1', created: 1_760_000_000 })
  })

  it('requests the usage unless the provider rejects that option', async () => {
    await ask(answers())
    expect(chat.upstream.received.at(-1)?.body['stream_options']).toEqual({ include_usage: true })
    await ask(answers(), { more: { model: 'a/plain', stream_options: { include_usage: true } } })
    expect(chat.upstream.received.at(-1)?.body).not.toHaveProperty('stream_options')
  })

  it.each([
    ['without [DONE]', sse(chunksOf(WORDS), false)],
    ['without the blank line at its end', sse(chunksOf(WORDS)).trimEnd()],
    ['without a finish', sse(chunksOf(WORDS).slice(0, -2))],
    [
      'with events without data',
      sse(chunksOf(WORDS)).replaceAll('data: {', 'data:\n\nevent: ping\ndata: \n\ndata: {'),
    ],
  ])('%s is whole', async (_name, text) => {
    const { content, isWhole, last } = await ask(stream(text))
    expect(content).toBe(WORDS.join(''))
    expect(isWhole).toBe(true)
    expect(last?.choices[0]?.finish_reason).toBe('stop')
  })

  it.each([
    ['after its first token', sse(chunksOf(WORDS))],
    ['before any token', sse([chunk({ role: 'assistant' })])],
    ['and an event beyond all measure', sse([...chunksOf(WORDS), '[DONE]', 'x'.repeat(BEYOND_MEASURE)])],
  ])('is over with [DONE] %s, though its connection stays open', async (_name, text) => {
    const closed = Promise.withResolvers<unknown>()
    const lingering: Behaviour = async (response, received) => {
      closed.resolve(once(response, 'close'))
      await stream(text, { ending: 'stall' })(response, received)
    }
    await readText(await post(lingering, 'a/unhurried'))
    await closed.promise
  })

  it.each([1, 1000])('of %i words leaves its connection to the next request', async (words) => {
    const text = sse(chunksOf(Array.from({ length: words }, () => 'x'.repeat(100))))
    const connections = new Set<number | undefined>()
    const requests = 10
    for (let request = 0; request < requests; request++) {
      const hasArrived = Promise.withResolvers<void>()
      const endingLate: Behaviour = async (response, received) => {
        connections.add(response.socket?.remotePort)
        // Without a keep-alive time, undici does not reuse a connection that closes within a second.
        response.setHeader('Connection', 'keep-alive')
        await stream(text, { ending: 'stall' })(response, received)
        await hasArrived.promise
        response.end()
      }
      await ask(endingLate, { onText: (read) => void (read.includes('[DONE]') && hasArrived.resolve()) })
    }
    expect(connections.size).toBeLessThan(requests)
  })

  it('that breaks after its finish is whole', async () => {
    const { isWhole } = await ask(
      stream(sse([chunk({ content: 'x' }), chunk({}, 'stop')], false), { ending: 'cut' }),
    )
    expect(isWhole).toBe(true)
  })

  it.each([
    ['is cut', 'cut', 'provider_unavailable', 502],
    ['ends too early', 'end', 'provider_unavailable', 502],
    ['stalls', 'stall', 'timeout', 408],
  ] as const)('that %s after its first token ends with an error', async (_name, ending, errorType, code) => {
    const words = [chunk({ role: 'assistant', content: 'Hel' })]
    const { content, isWhole, chunks, last, record } = await ask(stream(sse(words, false), { ending }), {
      more: { model: ending === 'stall' ? 'a/impatient' : 'a/one' },
    })
    expect(content).toBe('Hel')
    expect(isWhole).toBe(false)
    // A part of the same reply: clients assemble chunks by id.
    const [{ id, created, model, provider } = {}] = chunks
    expect(id).toBeTypeOf('string')
    expect(last).toMatchObject({ id, created, model, provider, object: 'chat.completion.chunk' })
    expect(last).toMatchObject({
      error: { code, metadata: { error_type: errorType } },
      choices: [{ finish_reason: 'error' }],
    })
    expect(record).toMatchObject({ outcome: 'cut', requests: 1, prompt_tokens: null })
  })

  it('that holds an error after its first token passes on a message of ours, and is cut', async () => {
    const passedOn = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<unknown>()
    const failing: Behaviour = async (response) => {
      closed.resolve(once(response, 'close'))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(sse([chunk({ content: 'Hel' })], false))
      await passedOn.promise
      response.write(sse([chunk({ content: 'lo' }), { error: { message: 'secret', code: 'server_error' } }]))
    }
    const { text, content, isWhole, last } = await ask(failing, {
      more: { model: 'a/unhurried' },
      onText: (read) => void (read.includes('Hel') && passedOn.resolve()),
    })
    expect(content).toBe('Hello')
    expect(isWhole).toBe(false)
    expect(text).not.toContain('secret')
    expect(last).toMatchObject({ error: { code: 502, metadata: { error_type: 'provider_unavailable' } } })
    expect(text).toContain('sent a reply that cannot be used')
    await closed.promise
  })

  it('that holds an error before its first token is cut', async () => {
    const closed = Promise.withResolvers<unknown>()
    const endless: Behaviour = async (response, received) => {
      closed.resolve(once(response, 'close'))
      const failing = sse([{ error: { code: 'server_error' } }], false)
      await stream(failing, { ending: 'stall' })(response, received)
    }
    expect((await readText(await post(endless, 'a/unhurried'))).text).toContain('cannot be used')
    await closed.promise
  })

  it.each([
    ['that is cut', stream(sse([chunk({ role: 'assistant' })], false), { ending: 'cut' }), 'ended its reply'],
    ['of JSON that is no reply', json([]), 'sent a reply that cannot be used'],
  ])('%s before its first token is reported with its own message', async (_name, behaviour, sentence) => {
    expect((await readText(await post(behaviour))).text).toContain(sentence)
  })

  it('that begins with many chunks of nothing still has its first token', async () => {
    const nothings = Array.from({ length: 1000 }, () => chunk({ role: 'assistant', content: '' }))
    const { content, chunks } = await ask(stream(sse([...nothings, ...chunksOf(['Hello'])])))
    expect(content).toBe('Hello')
    // 64 of them, the word, and the end.
    expect(chunks).toHaveLength(66)
  })

  it('is never taken for whole when it is cut, wherever that happens', async () => {
    const bytes = Buffer.from(sse(chunksOf(['Hel', 'lo'])))
    const finish = bytes.indexOf('"finish_reason":"stop"')
    for (let cut = 0; cut < bytes.length; cut += 23) {
      const response = await post(stream(bytes.subarray(0, cut).toString(), { ending: 'cut' }))
      const { text } = await readText(response)
      // After the end of the choice the answer is whole; before it no client may believe so.
      const isWhole = text.endsWith('data: [DONE]\n\n')
      if (cut < finish) expect(isWhole, `cut at ${cut}`).toBe(false)
      expect(isWhole || text.includes('"error":{"code":'), `cut at ${cut}`).toBe(true)
    }
  })

  it.each([
    ['after its first token', [chunk({ content: 'Hel' }, '')], true],
    ['before its first token', [chunk({ role: 'assistant', content: '' }, '')], false],
  ])(
    'that is cut %s is not whole, though the provider gives each chunk an empty finish',
    async (_name, begun, hasBegun) => {
      const response = await post(stream(sse(begun, false), { ending: 'cut' }))
      expect(response.status).toBe(hasBegun ? 200 : 502)
      expect((await readText(response)).text).toContain('ended its reply before it was whole')
    },
  )

  it('with an event above the size limit is cut', async () => {
    const huge = chunk({ content: 'x'.repeat(BEYOND_MEASURE) })
    const { isWhole, last } = await ask(stream(sse([chunk({ content: 'a' }), huge])))
    expect(isWhole).toBe(false)
    expect(last).toHaveProperty('error')
  })

  it('passes on an image as one event', async () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(LARGE)}` } }
    const { isWhole, deltas } = await ask(stream(sse([chunk({ images: [image] }), chunk({}, 'stop')])))
    expect(isWhole).toBe(true)
    expect(deltas.find((delta) => delta?.['images'] !== undefined)).toMatchObject({ images: [image] })
  })

  it('requests from proxies on the way not to buffer it', async () => {
    const { headers } = await post(answers())
    expect(headers.get('X-Accel-Buffering')).toBe('no')
  })

  it('keeps a waiting client connected with empty chunks of the same reply, before and between its words', async () => {
    await using waiting = await startScriptedChat({ chat: { silenceMs: 50 } })
    const silence = 120
    const slow: Behaviour = async (response) => {
      await sleep(silence)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(sse([chunk({ content: 'Hel' })], false))
      await sleep(silence)
      response.end(sse([chunk({ content: 'lo' }), chunk({}, 'stop')]))
    }
    const { text, chunks, content } = await askForStream(waiting, slow)
    expect(content).toBe('Hello')
    expect(text).not.toMatch(/^:/m)
    const words = chunks.map(({ choices }) => choices[0]?.delta.content ?? '')
    expect(words.join('|')).toMatch(/^\|+Hel\|+lo\|+$/)
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    expect(chunks[0]).toMatchObject({
      model: 'a/one',
      choices: [{ index: 0, delta: {}, finish_reason: null }],
    })
  })

  it('can report an error after such a chunk', async () => {
    await using waiting = await startScriptedChat({ chat: { silenceMs: 50 } })
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.script(async (reply, received) => {
      await promise
      await stream(sse([]))(reply, received)
    })
    const response = await waiting.api.post({ model: 'a/one', messages: MESSAGES, stream: true })
    resolve()
    const { text, isBroken } = await readText(response)
    expect(text).toMatch(/\ndata: \{"error":\{"code":502/)
    expect(isBroken).toBe(true)
  })

  it('reaches the client as soon as the provider sends it', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const response = await post(async (reply) => {
      reply.writeHead(200, { 'content-type': 'text/event-stream' })
      reply.write(sse([chunk({ content: 'first' })], false))
      await promise
      reply.end(sse([chunk({ content: 'second' }), chunk({}, 'stop')]))
    })
    const reader = response.body?.getReader()
    const next = async () => Buffer.from((await reader?.read())?.value ?? []).toString()
    let text = ''
    await until(async () => (text += await next()).includes('first'))
    resolve()
    await until(async () => (await reader?.read())?.done)
  })

  it('to a client that reads slowly is not taken for a stream that stalls', async () => {
    const warnings: string[] = []
    const note = ({ name }: Error) => void warnings.push(name)
    process.on('warning', note)
    const words = Array.from({ length: 400 }, () => 'x'.repeat(50_000))
    const response = await post(stream(sse(chunksOf(words))), 'a/impatient')
    await sleep(LONG_PAUSE_MS)
    expect((await response.text()).endsWith('data: [DONE]\n\n')).toBe(true)
    process.off('warning', note)
    // Each wait removes its listeners: Node warns of listeners that pile up.
    expect(warnings).not.toContain('MaxListenersExceededWarning')
  })

  it('that stalls after its client has read slowly is cut for its own silence', async () => {
    const words = Array.from({ length: 400 }, () => chunk({ content: 'x'.repeat(50_000) }))
    const response = await post(stream(sse(words, false), { ending: 'stall' }), 'a/impatient')
    await sleep(LONG_PAUSE_MS)
    expect((await readText(response)).text.slice(-1000)).toContain('did not answer in time')
  })

  it('keeps unknown fields and several choices', async () => {
    const both = (a: unknown, b: unknown, finish: string | null = null) => ({
      ...chunk({}),
      x_custom: { kept: true },
      choices: [
        { index: 0, delta: a, finish_reason: finish, x_choice: 1 },
        { index: 1, delta: b, finish_reason: finish === null ? null : 'length' },
      ],
    })
    const { chunks, last } = await ask(
      stream(sse([both({ content: 'a' }, { content: 'b', reasoning: 'why' }), both({}, {}, 'stop')])),
    )
    expect(chunks[0]).toMatchObject({
      x_custom: { kept: true },
      choices: [
        { index: 0, delta: { content: 'a' }, x_choice: 1 },
        { index: 1, delta: { content: 'b', reasoning: 'why' } },
      ],
    })
    expect(last?.choices).toEqual([
      { index: 0, delta: {}, finish_reason: 'stop', x_choice: 1 },
      { index: 1, delta: {}, finish_reason: 'length' },
    ])
  })
})
