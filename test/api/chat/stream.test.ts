import { setTimeout as sleep } from 'node:timers/promises'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MESSAGES, startChat } from '../../support/chat.ts'
import { until } from '../../support/api.ts'
import { TemporaryFolders } from '../../support/nightly.ts'
import {
  answers,
  chunk,
  chunksOf,
  completion,
  json,
  sse,
  startUpstream,
  stream,
  USAGE,
  type Behaviour,
  type ScriptedUpstream,
} from '../../support/upstream.ts'
import { readRecords } from '../../support/usage-records.ts'

const folders = new TemporaryFolders()
let upstream: ScriptedUpstream
let api: Awaited<ReturnType<typeof startChat>>

beforeAll(async () => {
  upstream = await startUpstream({})
  const provider = { base_url: upstream.url, model: 'scripted' }
  api = await startChat(
    folders,
    {
      'a/one': [{ ...provider, timeouts: { first_token_ms: 2000, idle_ms: 200 } }],
      'a/plain': [{ ...provider, include_usage: false }],
    },
    { chat: { silenceMs: 50 } },
  )
})

afterAll(async () => {
  await api.close()
  await upstream.close()
  folders.removeAll()
})

const chunkSchema = z.looseObject({
  id: z.string().min(1),
  object: z.literal('chat.completion.chunk'),
  created: z.int(),
  model: z.string(),
  provider: z.string(),
  choices: z
    .array(
      z.looseObject({
        index: z.int(),
        delta: z.looseObject({ content: z.string().optional() }),
        finish_reason: z.string().nullable(),
      }),
    )
    .min(1),
  usage: z
    .strictObject({ prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int() })
    .optional(),
})

/** What a client reads of a stream: its chunks, whether it was whole, and its last record. */
async function ask(behaviour: Behaviour, more: Readonly<Record<string, unknown>> = {}) {
  upstream.behaviours['scripted'] = behaviour
  const response = await api.post({ model: 'a/one', messages: MESSAGES, stream: true, ...more })
  expect(response.headers.get('Content-Type')).toBe('text/event-stream; charset=utf-8')
  const text = await response.text()
  const data = text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice('data: '.length))
  const isWhole = data.at(-1) === '[DONE]'
  const chunks = data.filter((one) => one !== '[DONE]').map((one) => chunkSchema.parse(JSON.parse(one)))
  const [record] = readRecords(api.dataDir, new Date().toISOString().slice(0, 10)).slice(-1)
  return {
    text,
    isWhole,
    chunks,
    record,
    content: chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''),
    last: chunks.at(-1),
    deltas: chunks.map(({ choices }) => choices[0]?.delta),
  }
}

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

  it('tells usage and finish once, in the last chunk', async () => {
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

  it('counts the last usage of a provider that repeats it', async () => {
    const growing = [1, 2, 3].map((n) => ({
      ...chunk({ content: 'x' }),
      usage: { prompt_tokens: 7, completion_tokens: n },
    }))
    const { record, last } = await ask(stream(sse([...growing, chunk({}, 'stop')])))
    expect(record).toMatchObject({ prompt_tokens: 7, completion_tokens: 3 })
    expect(last?.usage).toEqual(USAGE)
  })

  it('of a provider that tells no usage leaves nulls in the record, and zeros with the client', async () => {
    const { record, last, isWhole } = await ask(stream(sse(chunksOf(WORDS, null))))
    expect(isWhole).toBe(true)
    expect(record).toMatchObject({
      prompt_tokens: null,
      completion_tokens: null,
      requests: 1,
      usage_missing: 'the provider told none',
    })
    expect(last?.usage).toEqual({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 })
  })

  it('asks for the usage where the provider can be asked', async () => {
    await ask(answers())
    expect(upstream.received.at(-1)?.body['stream_options']).toEqual({ include_usage: true })
    await ask(answers(), { model: 'a/plain', stream_options: { include_usage: true } })
    expect(upstream.received.at(-1)?.body).not.toHaveProperty('stream_options')
  })

  it.each([
    ['without [DONE]', sse(chunksOf(WORDS), false)],
    ['without the blank line at its end', sse(chunksOf(WORDS)).trimEnd()],
    ['without a finish', sse(chunksOf(WORDS).slice(0, -2))],
    ['with CRLF', sse(chunksOf(WORDS)).replaceAll('\n', '\r\n')],
    ['with comments and other fields', `: hello\n\nevent: x\nid: 7\nretry: 10\n${sse(chunksOf(WORDS))}`],
  ])('%s is whole', async (_name, text) => {
    const { content, isWhole, last } = await ask(stream(text))
    expect(content).toBe(WORDS.join(''))
    expect(isWhole).toBe(true)
    expect(last?.choices[0]?.finish_reason).toBe('stop')
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
    const { content, isWhole, last, record } = await ask(stream(sse(words, false), { ending }))
    expect(content).toBe('Hel')
    expect(isWhole).toBe(false)
    expect(last).toMatchObject({
      error: { code, metadata: { error_type: errorType } },
      choices: [{ finish_reason: 'error' }],
    })
    expect(record).toMatchObject({ outcome: 'cut', requests: 1, prompt_tokens: null })
  })

  it('that holds an error after its first token passes it on in our words', async () => {
    const { text, content, isWhole, last } = await ask(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(sse([chunk({ content: 'Hel' })], false))
      await sleep(50)
      response.end(sse([chunk({ content: 'lo' }), { error: { message: 'secret', code: 'server_error' } }]))
    })
    expect(content).toBe('Hello')
    expect(isWhole).toBe(false)
    expect(text).not.toContain('secret')
    expect(last).toMatchObject({ error: { code: 502, metadata: { error_type: 'provider_unavailable' } } })
  })

  it('is never taken for whole when it is cut, wherever that happens', async () => {
    const bytes = Buffer.from(sse(chunksOf(['Hel', 'lo'])))
    const finish = bytes.indexOf('"finish_reason":"stop"')
    for (let cut = 0; cut < bytes.length; cut += 23) {
      upstream.behaviours['scripted'] = stream(bytes.subarray(0, cut).toString(), { ending: 'cut' })
      const response = await api.post({ model: 'a/one', messages: MESSAGES, stream: true })
      const text = await response.text()
      // Past the event that ends the choice the answer is whole; before it nobody may believe so.
      const isWhole = text.endsWith('data: [DONE]\n\n')
      if (cut < finish) expect(isWhole, `cut at ${cut}`).toBe(false)
      expect(isWhole || text.includes('"error":{"code":'), `cut at ${cut}`).toBe(true)
    }
  })

  it('with an event beyond all measure is cut', async () => {
    const huge = chunk({ content: 'x'.repeat(2 * 1024 * 1024) })
    const { isWhole, last } = await ask(stream(sse([chunk({ content: 'a' }), huge])))
    expect(isWhole).toBe(false)
    expect(last).toHaveProperty('error')
  })

  it('with large events is passed on byte for byte', async () => {
    const large = 'é'.repeat(200_000)
    const { content, isWhole } = await ask(stream(sse(chunksOf([large, large])), { pieces: 60_000 }))
    expect(content).toBe(large + large)
    expect(isWhole).toBe(true)
  })

  it('is made of a whole reply where the provider does not stream', async () => {
    const { content, isWhole, last, record } = await ask(json(completion('Hello')))
    expect(content).toBe('Hello')
    expect(isWhole).toBe(true)
    expect(last).toMatchObject({ usage: USAGE, choices: [{ finish_reason: 'stop' }] })
    expect(record).toMatchObject({ prompt_tokens: 7, completion_tokens: 3 })
  })

  it('without a word is an answer when it was ended on purpose', async () => {
    const { isWhole, content } = await ask(stream(sse([chunk({ role: 'assistant' }), chunk({}, 'stop')])))
    expect(isWhole).toBe(true)
    expect(content).toBe('')
  })

  it('keeps a waiting client awake with comments, and still has an error to tell', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const late: Behaviour = async (response, received) => {
      await promise
      await stream(sse([]))(response, received)
    }
    upstream.behaviours['scripted'] = late
    const response = await api.post({ model: 'a/one', messages: MESSAGES, stream: true })
    resolve()
    const text = await response.text()
    expect(text).toMatch(/^: waiting for the provider\n\n/)
    expect(text).toContain('"error":{"code":502')
    expect(text).not.toContain('[DONE]')
  })

  it('comes to the client as it comes from the provider', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    upstream.behaviours['scripted'] = async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(sse([chunk({ content: 'first' })], false))
      await promise
      response.end(sse([chunk({ content: 'second' }), chunk({}, 'stop')]))
    }
    const response = await api.post({ model: 'a/one', messages: MESSAGES, stream: true })
    const reader = response.body?.getReader()
    const first = await reader?.read()
    expect(Buffer.from(first?.value ?? []).toString()).toContain('first')
    resolve()
    await until(async () => (await reader?.read())?.done)
  })

  it('to a client that reads slowly is not taken for a stream that stalls', async () => {
    const words = Array.from({ length: 400 }, () => 'x'.repeat(50_000))
    upstream.behaviours['scripted'] = stream(sse(chunksOf(words)))
    const response = await api.post({ model: 'a/one', messages: MESSAGES, stream: true })
    await sleep(600)
    expect((await response.text()).endsWith('data: [DONE]\n\n')).toBe(true)
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
      { index: 0, delta: {}, finish_reason: 'stop' },
      { index: 1, delta: {}, finish_reason: 'length' },
    ])
  })
})

/** The calls that a client puts together from the parts of a stream. */
function assemble(deltas: readonly unknown[]) {
  const partSchema = z.object({
    index: z.int(),
    id: z.string().optional(),
    type: z.literal('function').optional(),
    function: z.object({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
  })
  const deltaSchema = z.object({ tool_calls: z.array(partSchema).optional() })
  const calls: { id: string; name: string; arguments: string }[] = []
  for (const part of deltas.flatMap((delta) => deltaSchema.parse(delta).tool_calls ?? [])) {
    const call = (calls[part.index] ??= { id: '', name: '', arguments: '' })
    call.id += part.id ?? ''
    call.name += part.function?.name ?? ''
    call.arguments += part.function?.arguments ?? ''
  }
  return calls
}

const part = (index: number | undefined, id: string | undefined, text: string, name?: string) => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id, type: 'function' }),
  function: { ...(name === undefined ? {} : { name }), arguments: text },
})

describe('tool calls of a stream', () => {
  it.each([
    [
      'as they should be',
      [part(0, 'a', '', 'f'), part(0, undefined, '{"x"'), part(0, undefined, ':1}'), part(1, 'b', '{}', 'g')],
    ],
    ['all with index 0', [part(0, 'a', '{"x":1}', 'f'), part(0, 'b', '{}', 'g')]],
    [
      'without index',
      [part(undefined, 'a', '{"x"', 'f'), part(undefined, undefined, ':1}'), part(undefined, 'b', '{}', 'g')],
    ],
    ['with the id in every part', [part(0, 'a', '{"x"', 'f'), part(0, 'a', ':1}'), part(1, 'b', '{}', 'g')]],
    ['counted from 1', [part(1, 'a', '{"x":1}', 'f'), part(2, 'b', '{}', 'g')]],
    ['with empty ids later on', [part(0, 'a', '{"x"', 'f'), part(0, '', ':1}'), part(1, 'b', '{}', 'g')]],
    [
      'in turns',
      [part(0, 'a', '{"x"', 'f'), part(1, 'b', '{', 'g'), part(0, undefined, ':1}'), part(1, undefined, '}')],
    ],
  ])('%s are two', async (_name, parts) => {
    const chunks = [...parts.map((one) => chunk({ tool_calls: [one] })), chunk({}, 'tool_calls')]
    const { deltas, last } = await ask(stream(sse(chunks)))
    expect(assemble(deltas)).toEqual([
      { id: 'a', name: 'f', arguments: '{"x":1}' },
      { id: 'b', name: 'g', arguments: '{}' },
    ])
    expect(last?.choices[0]?.finish_reason).toBe('tool_calls')
  })

  it('get an id where the provider gives none, and arguments as text', async () => {
    const call = { index: 0, function: { name: 'f', arguments: { x: 1 } } }
    const { deltas } = await ask(stream(sse([chunk({ tool_calls: [call] }), chunk({}, 'tool_calls')])))
    expect(assemble(deltas)).toEqual([
      { id: expect.stringMatching(/^call_\w{32}$/), name: 'f', arguments: '{"x":1}' },
    ])
  })

  it('keep their arguments byte for byte, however they are split', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json(), fc.array(fc.nat({ max: 20 }), { maxLength: 6 }), async (text, cuts) => {
        const pieces: string[] = []
        let rest = text
        for (const cut of cuts) {
          pieces.push(rest.slice(0, cut))
          rest = rest.slice(cut)
        }
        const parts = [part(0, 'a', '', 'f'), ...[...pieces, rest].map((one) => part(0, undefined, one))]
        const chunks = [...parts.map((one) => chunk({ tool_calls: [one] })), chunk({}, 'tool_calls')]
        const { deltas } = await ask(stream(sse(chunks)))
        expect(assemble(deltas)).toEqual([{ id: 'a', name: 'f', arguments: text }])
      }),
      { numRuns: 30 },
    )
  })
})
