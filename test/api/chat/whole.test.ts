/** CONTRACT 6: a reply in one piece, and the request that the provider receives. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MESSAGES, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import { answers, completion, json, stream, type Behaviour } from '../../support/chat/upstream.ts'

/** Longer than any test: no deadline ends a request. */
const HOUR_MS = 3_600_000

let chat: ScriptedChat

beforeAll(async () => {
  const timeouts = { total_ms: HOUR_MS }
  chat = await startScriptedChat({
    wire: (provider) => ({
      'a/one': [{ ...provider, timeouts }],
      'a/picky': [{ ...provider, drop: ['top_k'] }],
    }),
    modelLimits: timeouts,
  })
})

afterAll(() => chat.stop())

async function ask(reply: unknown, more: Readonly<Record<string, unknown>> = {}) {
  chat.script(json(reply))
  const response = await chat.api.post({ model: 'a/one', messages: MESSAGES, ...more })
  const [record] = chat.records().slice(-1)
  return { status: response.status, body: await response.json(), record }
}

describe('a whole reply', () => {
  it('names the model that answered and its provider, whatever the provider calls it', async () => {
    const { body } = await ask(completion())
    expect(body).toMatchObject({
      object: 'chat.completion',
      model: 'a/one',
      provider: 'acme',
      id: 'chatcmpl-1',
    })
  })

  it('has the members that strict clients need, even if the provider omits them', async () => {
    const { body } = await ask({ choices: [{ message: { content: 'Hello' } }] })
    expect(body).toEqual({
      id: expect.stringMatching(/^gen-/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'a/one',
      provider: 'acme',
      system_fingerprint: null,
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    })
  })

  it('omits nulls that strict clients reject, and keeps unknown fields', async () => {
    const { body } = await ask({
      ...completion(),
      service_tier: null,
      x_custom: [1],
      choices: [
        {
          index: 0,
          message: { role: null, content: 'Hello', tool_calls: null, audio: null, reasoning: 'why' },
          finish_reason: 'stop',
          logprobs: null,
        },
      ],
      usage: {
        prompt_tokens: 7,
        completion_tokens: 3,
        prompt_tokens_details: { audio_tokens: null, cached_tokens: 2 },
      },
    })
    expect(body).toMatchObject({
      x_custom: [1],
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', reasoning: 'why' },
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 7,
        completion_tokens: 3,
        total_tokens: 10,
        prompt_tokens_details: { cached_tokens: 2 },
      },
    })
    expect(JSON.stringify(body)).not.toMatch(/"(?:service_tier|tool_calls|audio|logprobs|audio_tokens)"/)
  })

  it.each([
    ['none', undefined],
    ['a null', null],
    ['a negative count', { prompt_tokens: -1, completion_tokens: 3 }],
    ['a count of words', { prompt_tokens: 'seven', completion_tokens: '3' }],
    ['one of two', { prompt_tokens: 7 }],
    ['beyond exact numbers', { prompt_tokens: 2 ** 53, completion_tokens: 3 }],
  ])('with %s for usage has nulls in the record, never a zero', async (_name, usage) => {
    const { record, status } = await ask({ ...completion(), usage })
    expect(status).toBe(200)
    expect(record).toMatchObject({
      prompt_tokens: null,
      completion_tokens: null,
      requests: 1,
      usage_missing: 'the provider reported none',
    })
  })
})

/** The size limit of a reply in bytes. */
const REPLY_BYTES = 64 * 1024 * 1024

describe('a provider', () => {
  const post = (behaviour: Behaviour) => {
    chat.script(behaviour)
    return chat.api.post({ model: 'a/one', messages: MESSAGES })
  }

  it.each([
    ['as large as it may be is taken', REPLY_BYTES, 200],
    ['one byte larger is not', REPLY_BYTES + 1, 502],
  ])('that sends a reply %s', async (_name, bytes, code) => {
    const text = JSON.stringify(completion())
    const response = await post((reply) => void reply.end(text.padEnd(bytes)))
    expect(response.status).toBe(code)
    if (code !== 200) expect(await response.text()).toContain('sent a reply that cannot be used')
  })

  it('that breaks off its reply is reported as such', async () => {
    const broken = stream(JSON.stringify(completion()).slice(0, -1), { ending: 'cut' })
    const response = await post(broken)
    expect(response.status).toBe(502)
    expect(await response.text()).toContain('ended its reply before it was whole')
  })

  it('that rejects a request has rejected it, even if the error body breaks off', async () => {
    const breaking: Behaviour = async (reply) => {
      reply.writeHead(400, { 'content-length': 100 }).write('{')
      await sleep(20)
      reply.destroy()
    }
    expect(await (await post(breaking)).text()).toContain('refused the request')
  })

  it('that rejects a request has its error body read only up to a limit', async () => {
    const closed = Promise.withResolvers<unknown>()
    const endless: Behaviour = (reply) => {
      closed.resolve(once(reply, 'close'))
      reply.writeHead(400).write('x'.repeat(1_000_000))
    }
    expect(await (await post(endless)).text()).toContain('refused the request')
    await closed.promise
  })
})

describe('the request to the provider', () => {
  it("is the caller's, with the provider's model name and without the fallbacks", async () => {
    const tools = [
      { type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } },
    ]
    const sent = {
      messages: [
        ...MESSAGES,
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'f' } }],
        },
        { role: 'tool', tool_call_id: 'a', content: 'result' },
      ],
      tools,
      temperature: 0.5,
      x_unknown: { passes: ['through'] },
      logit_bias: { '50256': -100 },
    }
    await ask(completion(), { ...sent, models: ['a/one'] })
    expect(chat.upstream.received.at(-1)?.body).toEqual({ ...sent, model: 'scripted', stream: false })
    expect(chat.upstream.received.at(-1)).toMatchObject({ method: 'POST', path: '/v1/chat/completions' })
  })

  it('keeps whole numbers of any length', async () => {
    const sent = `{"model":"a/one","seed":9223372036854775807,"messages":[{"role":"user","content":"12345678901234567890"}],
      "tools":[{"type":"function","function":{"name":"f","parameters":{"maximum":12345678901234567890,"x":[-9007199254740993]}}}]}`
    let raw = ''
    chat.script((response, received) => {
      raw = received.text
      return json(completion())(response, received)
    })
    expect((await chat.api.post(sent)).status).toBe(200)
    expect(raw).toContain('"parameters":{"maximum":12345678901234567890,"x":[-9007199254740993]}')
    expect(raw).toContain('"seed":9223372036854775807')
    expect(raw).toContain('"content":"12345678901234567890"')
  })

  it.each([false, true])('has no fields of a router, with stream: %s', async (streams) => {
    chat.script(answers())
    const router = {
      provider: { order: ['acme'] },
      plugins: [{ id: 'web' }],
      transforms: ['middle-out'],
      session_id: 'x',
      route: 'fallback',
      usage: { include: true },
    }
    const more = { ...router, top_k: 5, logit_bias: {} }
    await (await chat.api.post({ model: 'a/one', messages: MESSAGES, stream: streams, ...more })).text()
    const body = chat.upstream.received.at(-1)?.body ?? {}
    expect(Object.keys(body).filter((field) => field in router)).toEqual([])
    expect(body).toMatchObject({ top_k: 5, logit_bias: {} })
    await (await chat.api.post({ model: 'a/picky', messages: MESSAGES, stream: streams, ...more })).text()
    const picky = chat.upstream.received.at(-1)?.body
    expect(picky).not.toHaveProperty('top_k')
    expect(picky).toHaveProperty('logit_bias')
  })
})

it('members beside a tool call, such as the signature of a thought, reach the client', async () => {
  await using scripted = await startScriptedChat()
  const call = {
    id: 'c1',
    type: 'function',
    function: { name: 'a', arguments: '{}' },
    extra_content: { google: 1 },
  }
  scripted.script(
    json(completion(null, { choices: [{ message: { tool_calls: [call] }, finish_reason: 'stop' }] })),
  )
  const reply: unknown = await (await scripted.api.post({ model: 'a/one', messages: MESSAGES })).json()
  expect(reply).toMatchObject({ choices: [{ message: { tool_calls: [call] } }] })
})
