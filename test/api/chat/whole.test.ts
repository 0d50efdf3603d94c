/** CONTRACT 6: a reply in one piece. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MESSAGES, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import { completion, json, stream, type Behaviour } from '../../support/chat/upstream.ts'

/** Longer than any test: no deadline ends a request. */
const HOUR_MS = 3_600_000

let chat: ScriptedChat

beforeAll(async () => {
  const timeouts = { total_ms: HOUR_MS }
  chat = await startScriptedChat({
    wire: (provider) => ({ 'a/one': [{ ...provider, timeouts }] }),
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

  it('without usage has nulls in its record, never a zero', async () => {
    const { record } = await ask({ ...completion(), usage: null })
    const tokens = { prompt_tokens: null, completion_tokens: null, requests: 1 }
    expect(record).toMatchObject({ ...tokens, usage_missing: 'the provider reported none' })
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
