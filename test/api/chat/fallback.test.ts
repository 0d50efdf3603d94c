/** CONTRACT 6: which provider serves a request, and the error if none does; failures.test.ts has the kinds of failure. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { envelopeSchema } from '../../support/api.ts'
import { MESSAGES, readRecords, startChat, writeModels } from '../../support/chat/chat.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { freePort } from '../../support/ports.ts'
import {
  answers,
  chunk,
  completion,
  hangUp,
  json,
  reset,
  sse,
  stall,
  startUpstream,
  status,
  stream,
  type Behaviour,
} from '../../support/chat/upstream.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** Providers that never answer. They alone get little time, since the others may be slow on a busy machine. */
const SILENT_STREAM = stream(sse([chunk({ role: 'assistant' })], false), { ending: 'stall' })
const COMMENTS_ALONE = stream(': still here\n\n: still here\n\n', { ending: 'stall' })
const NEVER_DONE: readonly Behaviour[] = [stall, SILENT_STREAM, COMMENTS_ALONE]
const SHORT = { first_token_ms: 1000, idle_ms: 1000, total_ms: 1000 }

const DAY = '2026-03-10'

interface Options {
  readonly second?: Behaviour
  readonly other?: Behaviour
  readonly modelLimits?: Readonly<Record<string, unknown>>
  /** The address of the first provider, if it is another one. */
  readonly address?: string
}

/** A service over two providers of a/one, alpha and beta, and one of a/two, gamma. */
async function start(
  first: Behaviour,
  { second = answers(), other = answers(), modelLimits = {}, address }: Options = {},
) {
  const upstream = await startUpstream({ first, second, other })
  const provider = (name: string, model: string, behaviour: Behaviour) => ({
    name,
    base_url: upstream.url,
    model,
    timeouts: NEVER_DONE.includes(behaviour) && modelLimits['total_ms'] === undefined ? SHORT : {},
  })
  const alpha = provider('alpha', 'first', first)
  const models = {
    'a/one': [{ ...alpha, ...(address && { base_url: address }) }, provider('beta', 'second', second)],
    'a/two': [provider('gamma', 'other', other)],
  }
  const clock = () => new Date(`${DAY}T12:00:00Z`)
  const api = await startChat(folders, models, { clock, modelLimits })
  return {
    ...api,
    upstream,
    records: () => readRecords(api.dataDir, DAY),
    /** The lines of the metric that shows failing providers of a/one. */
    async failing() {
      const text = await (await fetch(`${api.origin}/metrics`)).text()
      return text.split('\n').filter((line) => line.startsWith('chat_breaker_open{model="a/one"'))
    },
    async [Symbol.asyncDispose]() {
      await api.close()
      await upstream.close()
    },
  }
}

const ONE = { model: 'a/one', messages: MESSAGES }
const BOTH = { ...ONE, models: ['a/two'] }

const errorOf = async (response: Response) => envelopeSchema.parse(await response.json()).error
const noHttp: Behaviour = (response) => void response.socket?.end('no HTTP at all\r\n\r\n')
const filtered = (message: unknown) =>
  json({ ...completion(), choices: [{ index: 0, message, finish_reason: 'content_filter' }] })
const CALL = { name: 'f', arguments: '{}' }

describe.each([{ streams: false }, { streams: true }])('with stream: $streams', ({ streams }) => {
  it.each<[string, Behaviour, number | null, string]>([
    ['resets its connection', reset, null, 'provider_unavailable'],
    ['closes its connection', hangUp, null, 'provider_unavailable'],
    ['speaks no HTTP', noHttp, null, 'provider_unavailable'],
    ['is silent', stall, null, 'timeout'],
    ['answers 503', status(503), 503, 'provider_overloaded'],
    ['answers 400', status(400), 400, 'invalid_request'],
    ['has a rate limit in a 200', json({ error: { code: 429 } }), 429, 'rate_limit_exceeded'],
    ['sends a reply without choices', json({ ...completion(), choices: [] }), 200, 'provider_unavailable'],
  ])('a provider that %s gets the request once, and the next one serves', async (...row) => {
    const [, failing, code, errorType] = row
    await using api = await start(failing)
    const response = await api.post({ ...ONE, stream: streams })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain(streams ? '"content":"lo"' : '"content":"Hello"')
    expect(api.upstream.asked()).toEqual(['first', 'second'])
    const [alpha, beta] = [
      { provider: 'alpha', status: code, error_type: errorType },
      { provider: 'beta', status: 200, error_type: null },
    ]
    const served = { provider: 'beta', model: 'a/one', requests: 1, prompt_tokens: 7, completion_tokens: 3 }
    const ended = { status: 200, outcome: 'completed', stream: streams, attempts: [alpha, beta] }
    expect(api.records()).toMatchObject([{ ...served, ...ended }])
  })

  it.each([
    ['a text', ''],
    ['a list without parts', []],
  ])('a filter that leaves %s moves on to another model, if one is left', async (_name, content) => {
    await using api = await start(filtered({ content }))
    expect(await (await api.post({ ...BOTH, stream: streams })).text()).toContain('"provider":"beta"')
    expect(await (await api.post({ ...ONE, stream: streams })).text()).toContain('content_filter')
  })

  it.each([
    ['tool_calls', [{ id: 'c1', type: 'function', function: CALL }]],
    ['function_call', CALL],
  ])('a call among %s is an answer, even if a filter ended it', async (key, call) => {
    await using api = await start(filtered({ content: null, [key]: call }))
    expect(await (await api.post({ ...BOTH, stream: streams })).text()).toContain(key)
    expect(api.upstream.asked()).toEqual(['first'])
  })

  it('an error of all providers lists them, and the record says that none served', async () => {
    await using api = await start(status(429), { second: status(500), other: stall })
    const response = await api.post({ ...BOTH, stream: streams })
    expect(response.status).toBe(502)
    expect((await errorOf(response)).metadata).toEqual({
      error_type: 'provider_unavailable',
      provider_name: 'gamma',
      previous_errors: [
        { model: 'a/one', provider_name: 'alpha', code: 429, error_type: 'rate_limit_exceeded' },
        { model: 'a/one', provider_name: 'beta', code: 500, error_type: 'provider_unavailable' },
        { model: 'a/two', provider_name: 'gamma', code: null, error_type: 'timeout' },
      ],
    })
    const unserved = { requests: 0, prompt_tokens: null, completion_tokens: null, model: null }
    const reason = { usage_missing: 'no provider served the request', status: 502, outcome: 'failed' }
    expect(api.records()).toMatchObject([{ ...unserved, ...reason }])
  })

  it('the request as a whole has a time limit, whatever is left to try', async () => {
    await using api = await start(stall, { second: stall, modelLimits: { total_ms: 500 } })
    expect((await api.post({ ...ONE, stream: streams })).status).toBe(408)
    expect(api.upstream.asked()).toEqual(['first'])
  })
})

it('the next provider has the time that the previous one left', async () => {
  const late =
    (then: Behaviour): Behaviour =>
    async (response, received) => {
      await sleep(600)
      await then(response, received)
    }
  await using api = await start(late(status(500)), {
    second: late(answers()),
    modelLimits: { total_ms: 1000 },
  })
  expect((await api.post(ONE)).ok).toBe(false)
  expect(api.upstream.asked()).toEqual(['first', 'second'])
})

it('a request that arrives after its time limit is reported as such', async () => {
  await using api = await start(answers(), { modelLimits: { total_ms: 20 } })
  const text = JSON.stringify(ONE)
  const slow = async function* () {
    yield Buffer.from(text.slice(0, 10))
    await sleep(100)
    yield Buffer.from(text.slice(10))
  }
  const headers = { Authorization: `Bearer ${api.key}`, 'Content-Type': 'application/json' }
  const init = { method: 'POST', headers, body: ReadableStream.from(slow()), duplex: 'half' } as const
  const response = await fetch(`${api.base}/chat/completions`, init)
  expect(response.status).toBe(408)
  expect((await errorOf(response)).message).toContain('limits.total_ms')
  expect(api.upstream.received).toEqual([])
})

it('the next provider is tried if nobody listens at the address', async () => {
  await using api = await start(answers(), { address: `http://127.0.0.1:${await freePort()}/v1` })
  expect((await api.post(ONE)).status).toBe(200)
  const attempts = [{ provider: 'alpha', status: null, error_type: 'provider_unavailable' }, {}]
  expect(api.records()).toMatchObject([{ attempts }])
})

it.each([201, 204, 302])('a %i without a reply is reported as a reply that cannot be used', async (code) => {
  await using api = await start((response) => void response.writeHead(code).end(), { second: status(401) })
  const response = await api.post(ONE)
  expect(response.status).toBe(502)
  expect((await errorOf(response)).message).toBe(
    'No provider served the request: alpha (a/one) sent a reply that cannot be used; ' +
      'beta (a/one) did not accept the request of this service',
  )
})

const USED_UP = { error: { code: 'insufficient_quota' } }

it.each<[string, Behaviour, Behaviour, readonly unknown[]]>([
  [
    'the smallest Retry-After of all',
    status(429, {}, { 'retry-after': '70' }),
    status(429, {}, { 'retry-after': '20' }),
    [429, '20', null],
  ],
  ['no Retry-After for a refused request', status(400), status(400), [400, null, 'false']],
  [
    'no Retry-After for a quota that is used up',
    status(429, USED_UP, { 'retry-after': '20' }),
    status(429, USED_UP),
    [502, null, 'false'],
  ],
  ['a Retry-After if only one refused the request', status(400), status(503), [502, '5', null]],
])('an error has %s', async (_name, first, second, expected) => {
  await using api = await start(first, { second })
  const { status: code, headers } = await api.post(ONE)
  expect([code, headers.get('Retry-After'), headers.get('X-Should-Retry')]).toEqual(expected)
})

it('a stream that ends, fails or is silent before its first token is replaced by the next provider', async () => {
  const role = chunk({ role: 'assistant', content: '' })
  const starts: readonly Behaviour[] = [
    stream(''),
    stream(sse([])),
    stream(sse([role], false), { ending: 'cut' }),
    stream(sse([role, { error: { message: 'secret', code: 500 } }])),
    SILENT_STREAM,
    COMMENTS_ALONE,
    stream(sse([role]), { ending: 'stall' }),
    stream(`data: {"torn\n\n`),
    stream(sse([chunk({}, 'error')])),
  ]
  for (const failing of starts) {
    await using api = await start(failing)
    const text = await (await api.post({ ...ONE, stream: true })).text()
    expect(text).toContain('"content":"Hel"')
    expect(text).not.toContain('secret')
    expect(api.records()).toMatchObject([{ provider: 'beta', attempts: [{ provider: 'alpha' }, {}] }])
  }
})

it('a header of the caller adds the attempts to the reply', async () => {
  await using api = await start(status(500))
  const init = { headers: { 'X-Router-Metadata': 'enabled' } }
  const attempts = [
    { provider: 'alpha', status: 500 },
    { provider: 'beta', status: 200 },
  ]
  expect(await (await api.post(ONE, init)).json()).toMatchObject({ router_metadata: { attempts } })
  const text = await (await api.post({ ...ONE, stream: true }, init)).text()
  expect(text).toContain('"router_metadata":{"attempts":[')
  const refused = await api.post({ ...ONE, model: 'a/none' }, init)
  expect(await refused.json()).toMatchObject({ router_metadata: { attempts: [] } })
})

describe('a failing provider', () => {
  it.each([
    ['keeps failing is tried last', status(500), 3],
    ['exceeds its own time limit is tried last', stall, 3],
    ['sends Retry-After is tried last from then on', status(429, {}, { 'retry-after': '3600' }), 1],
  ])('that %s', async (_name, failing, times) => {
    await using api = await start(failing)
    for (let request = 0; request < times + 2; request++) expect((await api.post(ONE)).status).toBe(200)
    const failed = Array.from({ length: times }, () => ['first', 'second']).flat()
    expect(api.upstream.asked()).toEqual([...failed, 'second', 'second'])
  })

  it('that fails half of its last ten attempts is tried last', async () => {
    let count = 0
    await using api = await start((response, received) =>
      (count++ % 2 === 0 ? status(500) : answers())(response, received),
    )
    for (let request = 0; request < 10; request++) await api.post(ONE)
    expect(count).toBe(9)
  })

  it('that had only the rest of the time is not tried last for it', async () => {
    await using api = await start(stall, { modelLimits: { total_ms: 100 } })
    for (let request = 0; request < 4; request++) expect((await api.post(ONE)).status).toBe(408)
    expect((await api.failing()).join()).not.toContain(' 1')
    const timeout = { attempts: [{ error_type: 'timeout' }] }
    expect(api.records()).toMatchObject([timeout, timeout, timeout, timeout])
  })

  it('that is alone is tried before the fallbacks of its model', async () => {
    await using api = await start(status(500), { second: status(500, {}, { 'retry-after': '3600' }) })
    for (let request = 0; request < 4; request++) expect((await api.post(BOTH)).status).toBe(200)
    const asked = api.upstream.asked().join(' ')
    expect(asked).toMatch(/^(?:(?:first second|second first) other ?){4}$/)
  })

  it('is first again with the first token of the stream that probes it', async () => {
    const goOn = Promise.withResolvers<void>()
    await using api = await start(status(503, {}, { 'retry-after': '1' }))
    await api.post(ONE)
    await api.post(ONE)
    expect(api.upstream.asked()).toEqual(['first', 'second', 'second'])
    api.upstream.behaviours['first'] = async (response, received) => {
      if (received.body.stream !== true) return await answers()(response, received)
      response.writeHead(200).write(sse([chunk({ content: 'Hel' })], false))
      await goOn.promise
      response.end(sse([chunk({}, 'stop')]))
    }
    await sleep(1100)
    const probing = await api.post({ ...ONE, stream: true })
    expect(api.upstream.asked().at(-1)).toBe('first')
    expect(await (await api.post(ONE)).text()).toContain('"provider":"alpha"')
    goOn.resolve()
    await probing.text()
  })

  it('is no longer shown as failing once it is removed', async () => {
    await using api = await start(status(500))
    for (let request = 0; request < 3; request++) await api.post(ONE)
    const beta = 'chat_breaker_open{model="a/one",provider="beta"} 0'
    expect(await api.failing()).toEqual(['chat_breaker_open{model="a/one",provider="alpha"} 1', beta])
    writeModels(api.dataDir, { 'a/one': [{ name: 'beta', base_url: api.upstream.url }] })
    await api.reload()
    expect(await api.failing()).toEqual([beta])
  })
})

it('a caller sees the code and the parameter of a refusal if they are short names, never its text', async () => {
  const named = { param: 'messages[0].role', code: 'invalid_value' }
  const refused = status(400, { error: { message: 'secret words', ...named } })
  await using api = await start(refused, { second: refused })
  expect((await errorOf(await api.post(ONE))).metadata).toMatchObject({
    error_type: 'invalid_request',
    ...named,
  })
  const secret = { message: 'x', param: 'a sentence of the provider', code: 'sk-0123456789abcdef' }
  api.upstream.behaviours['first'] = api.upstream.behaviours['second'] = status(400, { error: secret })
  const { metadata } = await errorOf(await api.post(ONE))
  expect(Object.keys(metadata ?? {})).toEqual(['error_type', 'provider_name', 'previous_errors'])
})

it('a context that is too long is named in the words that agents look for', async () => {
  const tooLong = status(400, { error: { code: 'context_length_exceeded', message: 'x' } })
  await using api = await start(tooLong, { second: tooLong })
  const { message } = await errorOf(await api.post(ONE))
  for (const words of ['prompt is too long', 'maximum context length', 'context_length_exceeded'])
    expect(message).toContain(words)
})

it('a model that is not configured is skipped if another one is', async () => {
  await using api = await start(answers())
  expect((await api.post({ ...ONE, model: 'a/none', models: ['a/one'] })).status).toBe(200)
  expect((await api.post({ ...ONE, models: ['a/none'] })).status).toBe(200)
  expect(api.upstream.asked()).toEqual(['first', 'first'])
})

describe('preferences for providers', () => {
  const restrictsNothing = { zdr: false, data_collection: 'allow', quantizations: [], max_price: null }

  it.each([
    ['order', { order: ['beta'] }, ['second', 'first', 'other']],
    ['order, in other letters', { order: ['Nobody', 'BETA'] }, ['second', 'first', 'other']],
    ['only', { only: ['beta', 'gamma'] }, ['second', 'other']],
    ['ignore', { ignore: ['alpha'] }, ['second', 'other']],
    ['order and no fallbacks', { order: ['beta'], allow_fallbacks: false }, ['second']],
    ['no fallbacks', { allow_fallbacks: false }, ['first', 'other']],
    ['nothing', {}, ['first', 'second', 'other']],
    [
      'what restricts nothing',
      { sort: 'price', ...restrictsNothing, only: [] },
      ['first', 'second', 'other'],
    ],
  ])('%s: they are kept', async (_name, provider, asked) => {
    const failing = status(500)
    await using api = await start(failing, { second: failing, other: failing })
    expect((await api.post({ ...BOTH, provider })).status).toBe(502)
    expect(api.upstream.asked()).toEqual(asked)
  })

  it.each([
    ['zdr', { zdr: true }],
    ['data_collection', { data_collection: 'deny' }],
    ['max_price', { max_price: { prompt: 1 } }],
    ['quantizations', { quantizations: ['fp8'] }],
    ['require_parameters', { require_parameters: true }],
    ['only', { only: 'alpha' }],
    ['preferences exclude every provider', { only: ['nobody'] }],
  ])('that cannot be kept are a 400 that names %s', async (name, provider) => {
    await using api = await start(answers())
    const response = await api.post({ ...ONE, provider })
    expect(response.status).toBe(400)
    expect((await errorOf(response)).message).toContain(name)
    expect(api.upstream.received).toEqual([])
  })
})
