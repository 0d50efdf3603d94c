/** CONTRACT 3 and 6: which requests are rejected, with what message, and what a provider receives of the others. */
import * as fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { envelopeSchema } from '../../support/api.ts'
import { MESSAGES, ONE, startScriptedChat, type ScriptedChat } from '../../support/chat/chat.ts'

const fine = JSON.stringify(ONE)
/** A value with this many levels, which takes long to serialize. */
const nested = (levels: number) => `${'{"0":'.repeat(levels)}1${'}'.repeat(levels)}`
/** The request with such a value beside it. */
const withMore = (more: string) => fine.replace('{', `{"more":${more},`)
const saying = (...messages: readonly unknown[]) => ({ ...ONE, messages })
const offering = (tool: unknown) => ({ ...ONE, tools: [tool] })
const preferring = (provider: unknown) => ({ ...ONE, provider })

let chat: ScriptedChat
beforeAll(async () => {
  chat = await startScriptedChat({
    models: { 'a/one': [{}], 'a/picky': [{ drop: ['top_k'], include_usage: false }] },
  })
})

/** Posts a body; returns what the provider received, if anything, and the error. */
async function post(body: unknown) {
  const before = chat.upstream.received.length
  const response = await chat.api.post(body)
  const text = await response.text()
  const [received] = chat.upstream.received.slice(before)
  const envelope = response.ok ? undefined : envelopeSchema.parse(JSON.parse(text))
  return { status: response.status, received, error: envelope?.error, message: envelope?.error.message ?? '' }
}

describe('a request is rejected, and no provider is called, with', () => {
  it.each<[string, unknown, string]>([
    ['no object', '"Hello"', 'expected object'],
    ['null', 'null', 'expected object'],
    ['no JSON', '{oops', 'The body is not valid JSON'],
    ['no messages', { model: 'a/one' }, 'messages'],
    ['empty messages', saying(), 'messages'],
    ['no model', { messages: MESSAGES }, 'model is missing'],
    ['an empty model', { ...ONE, model: '' }, 'model'],
    ['an unknown model', { ...ONE, model: 'a/two' }, 'Unknown model: "a/two"; /api/v1/models lists'],
    ['unknown models', { ...ONE, model: 'a/two', models: ['b'] }, 'Unknown model: "a/two", "b"'],
    ['models that are no list', { ...ONE, models: 'a/one' }, 'models'],
    ['a message without role', saying({ content: 'x' }), 'messages[0].role'],
    ['a role that is no text', saying({ role: 7 }), 'sent: 7'],
    ['a user without content', saying({ role: 'user' }), 'messages[0].content'],
    ['a tool result without its call', saying({ role: 'tool', content: 'x' }), 'tool_call_id'],
    [
      'a part without type',
      saying({ role: 'user', content: [{ text: 'x' }] }),
      'with a type each; sent: [{"text":"x"}]',
    ],
    ['a stream that is no truth value', { ...ONE, stream: 'yes' }, 'stream: '],
    ['a tool without name', offering({ type: 'function', function: {} }), 'tools[0].function.name'],
    [
      'a tool of the form of Responses',
      offering({ type: 'function', name: 'f' }),
      'tools[0].function: Expected an object with the name of the function; it is missing',
    ],
    ['a tool without type', offering({ function: { name: 'f' } }), 'tools[0].type'],
    ['a stop that is no text', { ...ONE, stop: 5 }, 'stop: Expected a text or a list of texts; sent: 5'],
    ['a temperature of text', { ...ONE, temperature: '0.5' }, 'sent: "0.5"'],
    ['half a token', { ...ONE, max_tokens: 0.5 }, 'max_tokens'],
    ['half a choice', { ...ONE, n: 0.5 }, 'n: '],
    ['zdr', preferring({ zdr: true }), 'provider.zdr'],
    ['data_collection', preferring({ data_collection: 'deny' }), 'provider.data_collection'],
    ['max_price', preferring({ max_price: { prompt: 1 } }), 'provider.max_price'],
    ['quantizations', preferring({ quantizations: ['fp8'] }), 'provider.quantizations'],
    ['require_parameters', preferring({ require_parameters: true }), 'provider.require_parameters'],
    ['a preference of another type', preferring({ only: 'acme' }), 'provider.only'],
    ['no provider left', preferring({ only: ['nobody'] }), 'preferences exclude every provider'],
    ['a wrong field nested too deeply', `{"model":${nested(100_000)}}`, 'nested too deeply'],
    ['a field nested one level too deeply', withMore(nested(500)), 'nested too deeply: at most 500 levels'],
    ['an unknown model beside deep fields', withMore(nested(499)).replace('one', 'two'), 'Unknown model'],
  ])('%s', async (_name, body, named) => {
    const { status, received, error, message } = await post(body)
    expect([status, received, error?.metadata?.['error_type']]).toEqual([400, undefined, 'invalid_request'])
    expect(message).toContain(named)
    // A request with a valid key has a record, which counts for app 0.
    expect(chat.records().at(-1)).toMatchObject({ requests: 0, status: 400, outcome: 'failed', attempts: [] })
  })

  it.each(['management', undefined] as const)('a 401 for a key of kind %s', async (kind) => {
    const key = kind && (await chat.api.makeKey(kind))
    const records = chat.records().length
    const response = await chat.api.get('/chat/completions', key, { method: 'POST', body: fine })
    expect(response.status).toBe(401)
    const { error, user_id } = envelopeSchema.parse(await response.json())
    expect(error.metadata).toEqual({ error_type: 'authentication' })
    expect(user_id === null).toBe(kind === undefined)
    expect(chat.records()).toHaveLength(records)
  })

  it('several faults: all are listed, up to a limit', async () => {
    const { message } = await post(saying(...Array.from({ length: 20 }, () => ({ role: 1 }))))
    expect(message).toMatch(/messages\[4\][^;]*;[^;]*; and more$/)
  })

  it.each(['content', 'tool_calls', 'models', 'tools', 'stop'])('a long list as %s', async (place) => {
    const list = Array.from({ length: 100_000 }, () => 1)
    const isInMessage = ['content', 'tool_calls'].includes(place)
    const body = isInMessage ? saying({ role: 'assistant', [place]: list }) : { ...ONE, [place]: list }
    const { message } = await post(body)
    expect(message).toContain(place)
    expect(message.length).toBeLessThan(1000)
  })

  it('any JSON that is no request', async () => {
    const property = fc.asyncProperty(fc.jsonValue(), async (body) => {
      expect((await post(JSON.stringify(body))).status).toBe(400)
    })
    await fc.assert(property, { numRuns: 50 })
  })
})

describe('the request to the provider', () => {
  it("is the caller's, with the provider's model name and without the fallbacks", async () => {
    const called = { name: 'f', description: 'd', parameters: { type: 'object' } }
    const known = { tools: [{ type: 'function', function: called }], temperature: 3, top_p: 1.5 }
    const more = { ...known, x_unknown: { passes: ['through'] }, logit_bias: { a: -100 } }
    const { received } = await post({ ...ONE, ...more, models: ['a/one'] })
    expect(received?.body).toEqual({ messages: MESSAGES, ...more, model: 'scripted', stream: false })
    expect(received).toMatchObject({ method: 'POST', path: '/v1/chat/completions' })
  })

  it('has every shape of message of the OpenAI format, and those that only some providers take', async () => {
    const f = { name: 'f' }
    const messages = [
      { role: 'system', content: 'be brief' },
      { role: 'developer', content: [{ type: 'text', text: 'be brief' }] },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }], name: 'Ada' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: f }] },
      { role: 'assistant' },
      { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: '42' }] },
      { role: 'function', name: 'f', content: null },
      { role: 'assistant', content: null, tool_calls: [{ function: f }, { id: null, type: null }] },
      { role: 'latest_reminder', content: 'x' },
      { role: 'ipython', output: 42 },
    ]
    expect((await post(saying(...messages))).received?.body['messages']).toEqual(messages)
  })

  it.each([
    { temperature: null, tools: null, seed: null, stop: null },
    { max_tokens: -1, max_completion_tokens: 0 },
    { presence_penalty: 9, frequency_penalty: -9 },
    { seed: -(2 ** 63) },
  ])('has %j as sent', async (more) => {
    expect((await post({ ...ONE, ...more })).received?.body).toMatchObject(more)
  })

  it('keeps whole numbers of any length', async () => {
    const sent = `{"model":"a/one","seed":9223372036854775807,"messages":[{"role":"user","content":"12345678901234567890"}],
      "tools":[{"type":"function","function":{"name":"f","parameters":{"maximum":12345678901234567890,"x":[-9007199254740993]}}}]}`
    const { received } = await post(sent)
    expect(received?.text).toContain('"parameters":{"maximum":12345678901234567890,"x":[-9007199254740993]}')
    expect(received?.text).toContain('"seed":9223372036854775807')
    expect(received?.text).toContain('"content":"12345678901234567890"')
  })

  it('is passed on nested as deeply as allowed', async () => {
    expect((await post(withMore(nested(499)))).received?.text).toContain(nested(499))
  })

  it.each([false, true])('has no fields of a router or that it rejects, with stream: %s', async (stream) => {
    const router = {
      provider: { order: ['acme'] },
      plugins: [{ id: 'web' }],
      transforms: ['middle-out'],
      session_id: 'x',
      route: 'fallback',
      usage: { include: true },
    }
    const more = { ...router, top_k: 5, logit_bias: {}, stream }
    const body = (await post({ ...ONE, ...more })).received?.body ?? {}
    expect(Object.keys(body).filter((field) => field in router)).toEqual([])
    expect(body).toMatchObject({ top_k: 5, logit_bias: {} })
    const picky = (await post({ ...ONE, model: 'a/picky', ...more })).received?.body
    expect(picky).not.toHaveProperty('top_k')
    expect(picky).toHaveProperty('logit_bias')
  })

  it('of a stream wants its usage, unless the provider rejects that option', async () => {
    expect((await post({ ...ONE, stream: true })).received?.body).toMatchObject({
      stream_options: { include_usage: true },
    })
    const asked = { ...ONE, model: 'a/picky', stream: true, stream_options: { include_usage: true } }
    expect((await post(asked)).received?.body).not.toHaveProperty('stream_options')
  })
})
