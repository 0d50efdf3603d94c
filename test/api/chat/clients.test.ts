/** CONTRACT 6: the official client packages; replies.test.ts checks each reply by the schema of the strictest one. */
import { OpenRouter } from '@openrouter/sdk'
import OpenAI, { InternalServerError, RateLimitError } from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MESSAGES, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'
import { answers, chunk, sse, status, stream, type Behaviour } from '../../support/chat/upstream.ts'

let chat: ScriptedChat
let openai: OpenAI
let openrouter: OpenRouter

beforeAll(async () => {
  chat = await startScriptedChat()
  const { base, key } = chat.api
  openai = new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0 })
  openrouter = new OpenRouter({ serverURL: base, apiKey: key, retryConfig: { strategy: 'none' } })
})

afterAll(() => chat.stop())

const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }

describe('openai', () => {
  it('reads a reply, whole and streamed', async () => {
    chat.script(answers())
    const whole = await openai.chat.completions.create({ model: 'a/one', messages: [...MESSAGES] })
    expect(whole.choices[0]?.message.content).toBe('Hello')
    expect(whole).toMatchObject({ model: 'a/one', usage: { total_tokens: 10 } })
    const runner = openai.chat.completions.stream({ model: 'a/one', messages: [...MESSAGES] })
    expect(await runner.finalContent()).toBe('Hello')
    expect((await runner.totalUsage()).total_tokens).toBe(10)
  })

  it('assembles the tool calls of a stream', async () => {
    const parts = [call, { ...call, id: 'call_2' }].map((one) => chunk({ tool_calls: [one] }))
    chat.script(stream(sse([...parts, chunk({}, 'tool_calls')])))
    const runner = openai.chat.completions.stream({ model: 'a/one', messages: [...MESSAGES] })
    const message = await runner.finalMessage()
    expect(message.tool_calls?.map(({ id }) => id)).toEqual(['call_1', 'call_2'])
  })

  it('does not resend a request that the providers rejected', async () => {
    let asked = 0
    chat.script((response, received) => {
      asked += 1
      return status(400)(response, received)
    })
    const patient = openai.withOptions({ maxRetries: 2 })
    const answer = patient.chat.completions.create({ model: 'a/one', messages: [...MESSAGES] })
    await expect(answer).rejects.toThrow('refused the request')
    expect(asked).toBe(1)
  })

  it('throws the error of a stream that fails on the way', async () => {
    chat.script(stream(sse([chunk({ content: 'Hel' })], false), { ending: 'cut' }))
    const events = await openai.chat.completions.create({
      model: 'a/one',
      messages: [...MESSAGES],
      stream: true,
    })
    await expect(Array.fromAsync(events)).rejects.toThrow('ended its reply before it was whole')
  })

  it.each([
    [429, status(429, {}, { 'retry-after': '1' }), RateLimitError],
    [502, status(401), InternalServerError],
  ] as const)('throws its own class for a %i', async (code, behaviour, type) => {
    chat.script(behaviour)
    const asked = openai.chat.completions.create({ model: 'a/one', messages: [...MESSAGES] })
    await expect(asked).rejects.toThrow(type)
    await expect(asked).rejects.toMatchObject({ status: code })
  })

  it('lists the models', async () => {
    const models = await openai.models.list()
    expect(models.data.map(({ id }) => id)).toEqual(['a/one'])
  })
})

describe('@openrouter/sdk', () => {
  const ask = async (behaviour: Behaviour) => {
    chat.script(behaviour)
    const got = await openrouter.chat.send({
      chatRequest: { model: 'a/one', messages: [...MESSAGES], stream: false },
    })
    if (!('choices' in got)) throw new TypeError('The reply is a stream')
    return got
  }
  const askStream = async (behaviour: Behaviour) => {
    chat.script(behaviour)
    const chunks = await openrouter.chat.send({
      chatRequest: { model: 'a/one', messages: [...MESSAGES], stream: true },
    })
    if ('choices' in chunks) throw new TypeError('The reply is no stream')
    let text = ''
    try {
      for await (const { choices, error } of chunks) {
        text += choices[0]?.delta.content ?? ''
        if (error !== undefined) text += `[${error.code} ${error.metadata?.errorType}]`
      }
    } catch (error) {
      // The connection breaks after the chunk with the error.
      text += `[${String(error)}]`
    }
    return text
  }

  it('reads a reply, whole and streamed', async () => {
    const got = await ask(answers())
    expect(got.choices[0]?.message.content).toBe('Hello')
    expect(got.usage?.totalTokens).toBe(10)
    expect(await askStream(answers())).toBe('Hello')
  })

  it('reads a stream of tool calls without index', async () => {
    const { index: _index, ...without } = call
    expect(await askStream(stream(sse([chunk({ tool_calls: [without] }), chunk({}, 'tool_calls')])))).toBe('')
  })

  it('reads the error of a stream that fails on the way', async () => {
    const cut = stream(sse([chunk({ content: 'Hel' })], false), { ending: 'cut' })
    expect(await askStream(cut)).toMatch(/^Hel\[502 provider_unavailable\]\[.*terminated/)
  })

  it.each([
    [502, status(500)],
    [429, status(429)],
  ])('reads an error %i', async (code, behaviour) => {
    await expect(ask(behaviour)).rejects.toMatchObject({ statusCode: code, error: { code } })
  })
})
