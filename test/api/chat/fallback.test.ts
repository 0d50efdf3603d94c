/** CONTRACT 6: which provider serves a request, and the error if none does; failures.test.ts has the kinds of failure. */
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import OpenAI, { RateLimitError } from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { envelopeSchema, until } from '../../support/api.ts'
import { MESSAGES, ONE, startScriptedChat } from '../../support/chat/chat.ts'
import {
  answers,
  chunk,
  completion,
  endsWith,
  events,
  held,
  inTurn,
  json,
  stall,
  status,
  type Behaviour,
} from '../../support/chat/upstream.ts'

type Options = {
  readonly second?: Behaviour
  readonly other?: Behaviour
  /** The time of a request in milliseconds. */
  readonly total_ms?: number
}

/** A service over two providers of a/one, alpha and beta, and one of a/two, gamma. */
async function start(
  first: Behaviour,
  { second = answers(), other = answers(), total_ms = 600_000 }: Options = {},
) {
  // Only a provider that never answers has little time, since the others may be slow on a busy machine.
  const provider = (name: string, model: string, behaviour: Behaviour) => {
    return { name, model, timeouts: behaviour === stall ? { first_token_ms: 300, total_ms: 300 } : {} }
  }
  const chat = await startScriptedChat({
    behaviours: { first, second, other },
    modelLimits: { total_ms },
    models: {
      'a/one': [provider('alpha', 'first', first), provider('beta', 'second', second)],
      'a/two': [provider('gamma', 'other', other)],
    },
  })
  return {
    ...chat,
    asked: chat.upstream.asked,
    /** The lines of the metric that shows failing providers of a/one. */
    async failing() {
      const lines = (await chat.api.metrics()).split('\n')
      return lines.filter((line) => line.startsWith('chat_breaker_open{model="a/one"'))
    },
  }
}

const BOTH = { models: ['a/two'] }
const errorOf = async (response: Response) => envelopeSchema.parse(await response.json()).error
const attemptsOf = (...attempts: readonly (readonly [string, number | null, string | null])[]) =>
  attempts.map(([provider, code, error_type]) => ({ provider, status: code, error_type }))

describe.each([{ stream: false }, { stream: true }])('with stream: $stream', ({ stream }) => {
  const filtered = (message: unknown) =>
    json({ ...completion(), choices: [{ index: 0, message, finish_reason: 'content_filter' }] })

  it.each([
    ['a text', ''],
    ['a list without parts', []],
  ])('a filter that leaves %s moves on to another model, if one is left', async (_name, content) => {
    await using chat = await start(filtered({ content }))
    expect(await (await chat.api.ask({ ...BOTH, stream })).text()).toContain('"provider":"beta"')
    expect(await (await chat.api.ask({ stream })).text()).toContain('content_filter')
  })

  const called = { name: 'f', arguments: '{}' }
  it.each([
    ['tool_calls', [{ id: 'c1', type: 'function', function: called }]],
    ['function_call', called],
  ])('a call among %s is an answer, even if a filter ended it', async (key, call) => {
    await using chat = await start(filtered({ content: null, [key]: call }))
    expect(await (await chat.api.ask({ ...BOTH, stream })).text()).toContain(key)
    expect(chat.asked()).toEqual(['first'])
  })

  it('an error of all providers lists them, and the record says that none served', async () => {
    await using chat = await start(status(429), { second: status(500), other: stall })
    const response = await chat.api.ask({ ...BOTH, stream })
    expect(response.status).toBe(502)
    const { message, metadata } = await errorOf(response)
    expect(message).toBe(
      'No provider served the request: alpha (a/one) takes no more requests for now; beta (a/one) failed; ' +
        'gamma (a/two) did not answer in time',
    )
    expect(metadata).toEqual({
      error_type: 'provider_unavailable',
      provider_name: 'gamma',
      previous_errors: [
        { model: 'a/one', provider_name: 'alpha', code: 429, error_type: 'rate_limit_exceeded' },
        { model: 'a/one', provider_name: 'beta', code: 500, error_type: 'provider_unavailable' },
        { model: 'a/two', provider_name: 'gamma', code: null, error_type: 'timeout' },
      ],
    })
    const unserved = { requests: 0, prompt_tokens: null, model: null, status: 502, outcome: 'failed' }
    expect(chat.records()).toMatchObject([{ ...unserved, usage_missing: 'no provider served the request' }])
  })

  it('the attempts are in the reply if a header of the caller wants them', async () => {
    await using chat = await start(status(500))
    const init = { headers: { 'X-Router-Metadata': 'enabled' } }
    const text = await (await chat.api.ask({ stream }, init)).text()
    expect(text).toMatch(
      /"router_metadata":\{"attempts":\[\{[^}]*"provider":"alpha","status":500[^}]*\},\{[^}]*"provider":"beta","status":200/,
    )
    const refused = await chat.api.ask({ model: 'a/none', stream }, init)
    expect(await refused.json()).toMatchObject({ router_metadata: { attempts: [] } })
  })
})

it('the next provider has the time that the previous one left', async () => {
  const second: Behaviour = () => undefined
  await using chat = await start(inTurn(200, status(500)), { second, total_ms: 1500 })
  expect((await chat.api.ask()).status).toBe(502)
  const attempts = attemptsOf(['alpha', 500, 'provider_unavailable'], ['beta', null, 'timeout'])
  expect(chat.records()).toMatchObject([{ attempts }])
})

it('a request that arrives after its time limit is reported as such', async () => {
  await using chat = await start(answers(), { total_ms: 20 })
  const headers = { Authorization: `Bearer ${chat.api.key}`, 'Content-Type': 'application/json' }
  const asked = httpRequest(`${chat.api.base}/chat/completions`, {
    method: 'POST',
    headers: { ...headers, Expect: '100-continue' },
  })
  asked.flushHeaders()
  // Its time has begun.
  await once(asked, 'continue')
  await sleep(100)
  asked.end(JSON.stringify(ONE))
  const [response] = await once(asked, 'response')
  expect(response.statusCode).toBe(408)
  expect(await textOf(response)).toContain('limits.total_ms')
  expect(chat.asked()).toEqual([])
})

it('the next provider is tried if nobody listens at the address', async () => {
  await using chat = await start(answers())
  const alpha = { name: 'alpha', base_url: 'http://127.0.0.1:9' }
  await chat.configure({ 'a/one': [alpha, { name: 'beta', model: 'second' }] })
  expect((await chat.api.ask()).status).toBe(200)
  const attempts = attemptsOf(['alpha', null, 'provider_unavailable'], ['beta', 200, null])
  expect(chat.records()).toMatchObject([{ attempts }])
})

const USED_UP = { error: { code: 'insufficient_quota' } }
const after = (seconds: string, body: unknown = {}) => status(429, body, { 'retry-after': seconds })

it.each<[string, Behaviour, Behaviour, readonly unknown[]]>([
  ['the smallest Retry-After of all', after('70'), after('20'), [429, '20', null]],
  ['no Retry-After for a refused request', status(400), status(400), [400, null, 'false']],
  ['no Retry-After for a used quota', after('20', USED_UP), status(429, USED_UP), [502, null, 'false']],
  ['a Retry-After if only one refused the request', status(400), status(503), [502, '5', null]],
])('an error has %s', async (_name, first, second, expected) => {
  await using chat = await start(first, { second })
  const { status: code, headers } = await chat.api.ask()
  expect([code, headers.get('Retry-After'), headers.get('X-Should-Retry')]).toEqual(expected)
})

it('the official client sends no request again that all providers refused, and knows a rate limit', async () => {
  await using chat = await start(status(400), { second: status(400), other: after('1') })
  const openai = new OpenAI({ baseURL: chat.api.base, apiKey: chat.api.key, maxRetries: 2 })
  const request = { model: 'a/one', messages: [...MESSAGES] }
  await expect(openai.chat.completions.create(request)).rejects.toThrow('refused the request')
  expect(chat.asked()).toEqual(['first', 'second'])
  const limited = openai.chat.completions.create({ ...request, model: 'a/two' }, { maxRetries: 0 })
  await expect(limited).rejects.toThrow(RateLimitError)
})

it('a caller sees the code and the parameter of a refusal if they are short names, never its text', async () => {
  const named = { param: 'messages[0].role', code: 'invalid_value' }
  const secret = { param: 'a sentence of the provider', code: 'sk-0123456789abcdef' }
  const refuse: Behaviour = (response, received) => {
    const short = received.body['seed'] === 1 ? named : secret
    return status(400, { error: { message: 'secret words', ...short } })(response, received)
  }
  await using chat = await start(refuse, { second: refuse })
  const { metadata } = await errorOf(await chat.api.ask({ seed: 1 }))
  expect(metadata).toMatchObject({ error_type: 'invalid_request', ...named })
  const other = await errorOf(await chat.api.ask({ seed: 2 }))
  expect(Object.keys(other.metadata ?? {})).toEqual(['error_type', 'provider_name', 'previous_errors'])
})

it('a model that is not configured is skipped if another one is', async () => {
  await using chat = await start(answers())
  expect((await chat.api.ask({ model: 'a/none', models: ['a/one', 'a/one'] })).status).toBe(200)
  expect((await chat.api.ask({ models: ['a/none'] })).status).toBe(200)
  expect(chat.asked()).toEqual(['first', 'first'])
})

describe('a failing provider', () => {
  it.each([
    ['keeps failing is tried last', status(500), 3],
    ['exceeds its own time limit is tried last', stall, 3],
    ['sends Retry-After is tried last from then on', after('3600'), 1],
    ['sends a Retry-After of 0 is tried last once it keeps failing', after('0'), 3],
  ])('that %s', async (_name, failing, times) => {
    await using chat = await start(failing)
    for (let request = 0; request < times + 2; request++) expect((await chat.api.ask()).status).toBe(200)
    const failed = Array.from({ length: times }, () => ['first', 'second']).flat()
    expect(chat.asked()).toEqual([...failed, 'second', 'second'])
  })

  it('that fails half of its last ten attempts is tried last', async () => {
    const steps = Array.from({ length: 10 }, () => [status(500), answers()]).flat()
    await using chat = await start((...given) => (steps.shift() ?? stall)(...given))
    for (let request = 0; request < 10; request++) await chat.api.ask()
    expect(chat.asked().filter((one) => one === 'first')).toHaveLength(9)
  })

  it('that had only the rest of the time is not tried last for it, and no other one is tried', async () => {
    await using chat = await start(stall, { total_ms: 200 })
    for (const stream of [false, true, false, true]) expect((await chat.api.ask({ stream })).status).toBe(408)
    expect(chat.asked()).toEqual(['first', 'first', 'first', 'first'])
    expect((await chat.failing()).join()).not.toContain(' 1')
    const timeout = { attempts: [{ error_type: 'timeout' }] }
    expect(chat.records()).toMatchObject([timeout, timeout, timeout, timeout])
  })

  it('that is alone is tried before the fallbacks of its model', async () => {
    await using chat = await start(status(500), { second: status(500, {}, { 'retry-after': '3600' }) })
    for (let request = 0; request < 4; request++) expect((await chat.api.ask(BOTH)).status).toBe(200)
    expect(chat.asked().join(' ')).toMatch(/^(?:(?:first second|second first) other ?){4}$/)
  })

  it('is first again with the first token of the stream that probes it', async () => {
    await using chat = await start(after('1'))
    await chat.api.ask()
    const { behaviour, goOn } = held(events(chunk({ content: 'Hel' })), endsWith(chunk({}, 'stop')))
    chat.upstream.behaviours['first'] = behaviour
    // In its last place until the second is over.
    const probing = await until(async () => {
      const response = await chat.api.ask({ stream: true })
      return chat.asked().at(-1) === 'first' && response
    })
    chat.upstream.behaviours['first'] = answers()
    expect(await (await chat.api.ask()).text()).toContain('"provider":"alpha"')
    goOn()
    await probing.text()
  })

  it('is no longer shown as failing once it is removed', async () => {
    await using chat = await start(status(500))
    for (let request = 0; request < 3; request++) await chat.api.ask()
    const beta = 'chat_breaker_open{model="a/one",provider="beta"} 0'
    expect(await chat.failing()).toEqual(['chat_breaker_open{model="a/one",provider="alpha"} 1', beta])
    await chat.configure({ 'a/one': [{ name: 'beta' }] })
    expect(await chat.failing()).toEqual([beta])
  })
})

describe('preferences for providers', () => {
  let chat: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    // A refusal shows nothing about a provider's health.
    const refuse = status(400)
    chat = await start(refuse, { second: refuse, other: refuse })
  })
  const open = { zdr: false, data_collection: 'allow', quantizations: [], max_price: null, only: [] }

  it.each([
    ['order', { order: ['beta'] }, 'second first other'],
    ['order, in other letters', { order: ['Nobody', 'BETA', 'beta'] }, 'second first other'],
    ['only', { only: ['beta', 'gamma'] }, 'second other'],
    ['ignore', { ignore: ['alpha'] }, 'second other'],
    ['order and no fallbacks', { order: ['beta'], allow_fallbacks: false }, 'second'],
    ['no fallbacks', { allow_fallbacks: false }, 'first other'],
    ['nothing', {}, 'first second other'],
    ['what restricts nothing', { sort: 'price', ...open }, 'first second other'],
  ])('are kept: %s', async (_name, provider, asked) => {
    const before = chat.asked().length
    expect((await chat.api.ask({ ...BOTH, provider })).status).toBe(400)
    expect(chat.asked().slice(before).join(' ')).toBe(asked)
  })
})
