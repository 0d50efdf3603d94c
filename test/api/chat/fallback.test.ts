/** CONTRACT 6: which provider serves a request, and the error if none does. */
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { json as readJson } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { MESSAGES, startChat, writeModels } from '../../support/chat/chat.ts'
import { envelopeSchema, until } from '../../support/api.ts'
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
import { readRecords } from '../../support/chat/usage-records.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

/** Providers that never answer. They alone get little time, since the others may be slow on a busy machine. */
const SILENT_STREAM = stream(sse([chunk({ role: 'assistant' })], false), { ending: 'stall' })
const COMMENTS_ALONE = stream(': still here\n\n: still here\n\n', { ending: 'stall' })
const NEVER_DONE: readonly Behaviour[] = [stall, SILENT_STREAM, COMMENTS_ALONE]
const SHORT = { first_token_ms: 1000, idle_ms: 1000, total_ms: 2000 }

const DAY = '2026-03-10'
const clock = () => new Date(`${DAY}T12:00:00Z`)

/** A service over two providers of a/one and one of a/two; the model name decides the provider's behaviour. */
async function startThree(first: Behaviour, second: Behaviour = answers(), other: Behaviour = answers()) {
  const upstream = await startUpstream({ first, second, other })
  const provider = (name: string, model: string, behaviour: Behaviour) => ({
    name,
    base_url: upstream.url,
    model,
    timeouts: NEVER_DONE.includes(behaviour) ? SHORT : {},
  })
  const api = await startChat(
    folders,
    {
      'a/one': [provider('alpha', 'first', first), provider('beta', 'second', second)],
      'a/two': [provider('gamma', 'other', other)],
    },
    { clock },
  )
  return {
    ...api,
    upstream,
    records: () => readRecords(api.dataDir, DAY),
    async [Symbol.asyncDispose]() {
      await api.close()
      await upstream.close()
    },
  }
}

const ONE = { model: 'a/one', messages: MESSAGES }
const BOTH = { ...ONE, models: ['a/two'] }

const noHttp: Behaviour = (response) => void response.socket?.end('no HTTP at all\r\n\r\n')

const ERROR_IN_REPLY = json({ error: { message: 'secret words', code: 'server_error' } })

/** Failures of a provider, after which the next one is tried; failures.test.ts has all kinds. */
const PROVIDER_FAILURES: readonly (readonly [string, Behaviour, number | null, string])[] = [
  ['a reset connection', reset, null, 'provider_unavailable'],
  ['no reply in time', stall, null, 'timeout'],
  ['a 401', status(401), 401, 'provider_unavailable'],
  ['a 429', status(429), 429, 'rate_limit_exceeded'],
  ['a 500', status(500), 500, 'provider_unavailable'],
  ['a 503', status(503), 503, 'provider_overloaded'],
  ['a redirect', status(302, {}, { location: 'http://127.0.0.1:1/' }), 302, 'provider_unavailable'],
  ['an error in a 200', ERROR_IN_REPLY, 200, 'provider_unavailable'],
  ['a rate limit in a 200', json({ error: { code: 429 } }), 429, 'rate_limit_exceeded'],
  ['a reply without choices', json({ ...completion(), choices: [] }), 200, 'provider_unavailable'],
]

/** Refusals that another provider may not share. */
const REFUSALS: readonly (readonly [string, Behaviour, number, string])[] = [
  ['a 413', status(413), 413, 'payload_too_large'],
  ['a 400', status(400), 400, 'invalid_request'],
]

describe.each([{ streams: false }, { streams: true }])('with stream: $streams', ({ streams }) => {
  const textOf = async (response: Response) => {
    const text = await response.text()
    if (!streams) return text
    return text.includes('"content":"Hel"') && text.endsWith('data: [DONE]\n\n') ? 'Hello' : text
  }

  it.each([...PROVIDER_FAILURES, ...REFUSALS])(
    '%s: the next provider serves',
    async (_name, failing, code, errorType) => {
      await using api = await startThree(failing)
      const response = await api.post({ ...ONE, stream: streams })
      expect(response.status).toBe(200)
      expect(await textOf(response)).toContain('Hello')
      expect(new Set(api.upstream.asked())).toEqual(new Set(['first', 'second']))
      expect(api.records()).toMatchObject([
        {
          provider: 'beta',
          model: 'a/one',
          requests: 1,
          prompt_tokens: 7,
          completion_tokens: 3,
          status: 200,
          outcome: 'completed',
          stream: streams,
          attempts: [
            { provider: 'alpha', status: code, error_type: errorType },
            { provider: 'beta', status: 200, error_type: null },
          ],
        },
      ])
    },
  )

  it.each([
    ['a text', ''],
    ['a list without parts', []],
  ])(
    'content held back, as %s: the next provider serves, unless no other model is left',
    async (_name, content) => {
      const choice = { index: 0, message: { role: 'assistant', content }, finish_reason: 'content_filter' }
      await using api = await startThree(json({ ...completion(), choices: [choice] }))
      const response = await api.post({ ...BOTH, stream: streams })
      expect(await textOf(response)).toContain('Hello')
      expect(api.upstream.asked()).toEqual(['first', 'second'])
      const last = await api.post({ ...ONE, stream: streams })
      expect(last.status).toBe(200)
      expect(await last.text()).toContain('content_filter')
    },
  )

  it.each([
    ['tool_calls', [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }]],
    ['function_call', { name: 'f', arguments: '{}' }],
  ])('a call among %s is an answer, even if a filter ended it', async (key, call) => {
    const choice = { index: 0, message: { content: null, [key]: call }, finish_reason: 'content_filter' }
    await using api = await startThree(json({ ...completion(), choices: [choice] }))
    expect(await (await api.post({ ...BOTH, stream: streams })).text()).toContain(key)
    expect(api.upstream.asked()).toEqual(['first'])
  })

  it.each([
    ['all are rate-limited', status(429), 429, 'rate_limit_exceeded'],
    ['all take too long', stall, 408, 'timeout'],
    ['all fail', status(500), 502, 'provider_unavailable'],
    ['all deny us', status(401), 502, 'provider_unavailable'],
    ['all want money', status(402), 502, 'provider_unavailable'],
    ['all refuse the request', status(400), 400, 'invalid_request'],
    [
      'all say it is too long',
      status(400, { error: { code: 'context_length_exceeded' } }),
      400,
      'context_length_exceeded',
    ],
  ] as const)('%s: the caller gets the error', async (_name, failing, code, errorType) => {
    await using api = await startThree(failing, failing, failing)
    const response = await api.post({ ...BOTH, stream: streams })
    expect(response.status).toBe(code)
    expect(response.headers.get('Content-Type')).toMatch('application/json')
    expect(response.headers.has('Retry-After')).toBe(code !== 408 && code !== 400)
    expect(response.headers.get('X-Should-Retry')).toBe(code === 400 ? 'false' : null)
    const text = await response.text()
    expect(text).not.toContain('secret')
    const { error } = envelopeSchema.parse(JSON.parse(text))
    expect(error.code).toBe(code)
    expect(error.metadata).toMatchObject({ error_type: errorType, provider_name: 'gamma' })
    expect(api.records()).toMatchObject([
      {
        requests: 0,
        prompt_tokens: null,
        completion_tokens: null,
        usage_missing: 'no provider served the request',
        status: code,
        outcome: 'failed',
        model: null,
      },
    ])
  })

  it('failures of several kinds are a 502 that lists them', async () => {
    await using api = await startThree(status(429), status(500), stall)
    const response = await api.post({ ...BOTH, stream: streams })
    expect(response.status).toBe(502)
    const { error } = envelopeSchema.parse(await response.json())
    expect(error.metadata?.['previous_errors']).toEqual([
      { model: 'a/one', provider_name: 'alpha', code: 429, error_type: 'rate_limit_exceeded' },
      { model: 'a/one', provider_name: 'beta', code: 500, error_type: 'provider_unavailable' },
      { model: 'a/two', provider_name: 'gamma', code: null, error_type: 'timeout' },
    ])
  })

  it.each([
    ['is reset', reset],
    ['is closed', hangUp],
    ['carries no HTTP', noHttp],
  ])('a new connection that %s is a failure: the provider is not tried again', async (_name, failing) => {
    await using api = await startThree(failing)
    expect((await api.post({ ...ONE, stream: streams })).status).toBe(200)
    expect(api.upstream.asked()).toEqual(['first', 'second'])
  })

  it('the request as a whole has a time limit, whatever is left to try', async () => {
    const upstream = await startUpstream({ first: stall })
    const provider = { base_url: upstream.url, model: 'first' }
    await using api = await startChat(
      folders,
      {
        'a/one': [
          { ...provider, name: 'alpha' },
          { ...provider, name: 'beta' },
        ],
      },
      { modelLimits: { total_ms: 1000 } },
    )
    expect((await api.post({ ...ONE, stream: streams })).status).toBe(408)
    expect(upstream.asked()).toEqual(['first'])
    await upstream.close()
  })
})

it('the next provider has the time that the previous one left', async () => {
  const slow =
    (then: Behaviour): Behaviour =>
    async (response, received) => {
      await sleep(600)
      await then(response, received)
    }
  await using upstream = await startUpstream({ bad: slow(status(500)), late: slow(answers()) })
  const provider = (name: string, model: string) => ({ name, base_url: upstream.url, model })
  await using api = await startChat(
    folders,
    { 'a/one': [provider('alpha', 'bad'), provider('beta', 'late')] },
    { modelLimits: { total_ms: 1000 } },
  )
  expect((await api.post(ONE)).ok).toBe(false)
})

it('a provider that had only the rest of the time is not tried last for it', async () => {
  const upstream = await startUpstream({ first: stall })
  const provider = { base_url: upstream.url, model: 'first', name: 'alpha' }
  const modelLimits = { total_ms: 100 }
  await using api = await startChat(folders, { 'a/one': [provider] }, { modelLimits, clock })
  for (let request = 0; request < 4; request++) expect((await api.post(ONE)).status).toBe(408)
  expect(await (await fetch(`${api.origin}/metrics`)).text()).not.toMatch(/^chat_breaker_open\{.* 1$/m)
  expect(readRecords(api.dataDir, DAY)).toMatchObject(
    Array.from({ length: 4 }, () => ({ attempts: [{ error_type: 'timeout' }] })),
  )
  await upstream.close()
})

it('a provider that exceeds its own time limit is tried last', async () => {
  await using api = await startThree(stall)
  for (let request = 0; request < 4; request++) expect((await api.post(ONE)).status).toBe(200)
  expect(api.upstream.asked().join(' ')).toBe('first second first second first second second')
})

it.each([201, 204, 302])('a %i is reported as a reply that cannot be used', async (code) => {
  await using api = await startThree((response) => void response.writeHead(code).end())
  api.upstream.behaviours['second'] = status(401)
  const response = await api.post(ONE)
  expect(response.status).toBe(502)
  expect(envelopeSchema.parse(await response.json()).error.message).toBe(
    'No provider served the request: alpha (a/one) sent a reply that cannot be used; ' +
      'beta (a/one) did not accept the request of this service',
  )
})

it('a request that arrives after its time limit is reported as such', async () => {
  await using upstream = await startUpstream({ 'a/one': answers() })
  const wiring = { 'a/one': [{ base_url: upstream.url }] }
  await using api = await startChat(folders, wiring, { modelLimits: { total_ms: 20 } })
  const text = JSON.stringify(ONE)
  const request = httpRequest(`${api.base}/chat/completions`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${api.key}`, 'Content-Type': 'application/json' },
  })
  request.write(text.slice(0, 10))
  await sleep(100)
  request.end(text.slice(10))
  const [response] = await once(request, 'response')
  expect(response.statusCode).toBe(408)
  const { error } = envelopeSchema.parse(await readJson(response))
  expect(error.message).toContain('limits.total_ms')
  expect(upstream.received).toEqual([])
})

it('the next provider is tried if nobody listens at the address', async () => {
  await using upstream = await startUpstream({ good: answers() })
  const nobody = `http://127.0.0.1:${await freePort()}/v1`
  const wiring = {
    'a/one': [
      { name: 'alpha', base_url: nobody, model: 'good' },
      { name: 'beta', base_url: upstream.url, model: 'good' },
    ],
  }
  await using api = await startChat(folders, wiring, { clock })
  expect((await api.post(ONE)).status).toBe(200)
  expect(readRecords(api.dataDir, DAY)).toMatchObject([
    { attempts: [{ provider: 'alpha', status: null, error_type: 'provider_unavailable' }, {}] },
  ])
})

it('the smallest Retry-After of all providers is passed on', async () => {
  await using api = await startThree(
    status(429, {}, { 'retry-after': '70' }),
    status(429, {}, { 'retry-after': '20' }),
    status(429),
  )
  const response = await api.post(BOTH)
  expect(response.status).toBe(429)
  expect(response.headers.get('Retry-After')).toBe('20')
})

it.each<[string, unknown, Record<string, string>, string]>([
  ['a fraction of a second', {}, { 'retry-after': '6.2' }, '7'],
  ['milliseconds', {}, { 'retry-after-ms': '8300', 'retry-after': '60' }, '9'],
  [
    'a duration in the details',
    [{ error: { status: 'RESOURCE_EXHAUSTED', details: [{ retryDelay: '41s' }] } }],
    {},
    '41',
  ],
  ['words', { error: { message: 'Rate limit reached. Please try again in 1m12.4s.' } }, {}, '73'],
  ['a day: an hour at most', {}, { 'retry-after': '86400' }, '3600'],
  ['a time in the past: one at the least', {}, { 'retry-after': 'Thu, 01 Jan 2026 00:00:00 GMT' }, '1'],
  ['no number: five', {}, { 'retry-after': '60s' }, '5'],
])('a Retry-After sent as %s is passed on in whole seconds', async (_name, body, headers, seconds) => {
  const busy = status(429, body, headers)
  await using api = await startThree(busy, busy)
  const response = await api.post(ONE)
  expect(response.status).toBe(429)
  expect(response.headers.get('Retry-After')).toBe(seconds)
})

it('a used-up quota is not a rate limit: there is no Retry-After', async () => {
  const usedUp = status(429, { error: { code: 'insufficient_quota' } }, { 'retry-after': '20' })
  await using api = await startThree(usedUp, usedUp)
  const response = await api.post(ONE)
  expect(response.status).toBe(502)
  expect(response.headers.get('Retry-After')).toBeNull()
  expect(response.headers.get('X-Should-Retry')).toBe('false')
})

it('a request that one provider rejects and another cannot take now may be retried', async () => {
  await using api = await startThree(status(400, { error: { code: 'unsupported_value' } }), status(503))
  const response = await api.post(ONE)
  expect(response.status).toBe(502)
  expect(response.headers.get('Retry-After')).toBe('5')
  expect(response.headers.get('X-Should-Retry')).toBeNull()
})

it('a stream that ends, fails or is silent before its first token is replaced by the next provider', async () => {
  const starts: readonly Behaviour[] = [
    stream(''),
    stream(sse([])),
    stream(sse([chunk({ role: 'assistant', content: '' })], false), { ending: 'cut' }),
    stream(sse([chunk({ role: 'assistant' }), { error: { message: 'secret', code: 500 } }])),
    SILENT_STREAM,
    COMMENTS_ALONE,
    stream(sse([chunk({ role: 'assistant', content: '' })]), { ending: 'stall' }),
    stream(`data: {"torn\n\n`),
    stream(sse([chunk({}, 'error')])),
  ]
  for (const failing of starts) {
    await using api = await startThree(failing)
    const text = await (await api.post({ ...ONE, stream: true })).text()
    expect(text).toContain('"content":"Hel"')
    expect(text).not.toContain('secret')
    expect(api.records()).toMatchObject([{ provider: 'beta', attempts: [{ provider: 'alpha' }, {}] }])
  }
})

it.each([
  ['keeps failing is tried last', status(500), 3],
  ['sends Retry-After is tried last from then on', status(429, {}, { 'retry-after': '3600' }), 1],
])('a provider that %s', async (_name, failing, times) => {
  await using api = await startThree(failing)
  for (let request = 0; request < times + 2; request++) expect((await api.post(ONE)).status).toBe(200)
  const failed = Array.from({ length: times }, () => ['first', 'second']).flat()
  expect(api.upstream.asked()).toEqual([...failed, 'second', 'second'])
})

it.each([
  ['keeps failing', status(500)],
  ['wants to be left alone', status(429, {}, { 'retry-after': '3600' })],
])('a model with an only provider that %s is tried before its fallbacks', async (_name, failing) => {
  await using upstream = await startUpstream({ bad: failing, good: answers() })
  const provider = (model: string) => ({ base_url: upstream.url, model })
  await using api = await startChat(folders, { 'a/one': [provider('bad')], 'a/two': [provider('good')] })
  for (let request = 0; request < 4; request++) expect((await api.post(BOTH)).status).toBe(200)
  expect(upstream.asked()).toEqual(['bad', 'good', 'bad', 'good', 'bad', 'good', 'bad', 'good'])
})

it('a header of the caller adds the attempts to the reply', async () => {
  await using api = await startThree(status(500))
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

it('a removed provider is not shown as failing', async () => {
  await using api = await startThree(status(500))
  const open = async () => {
    const text = await (await fetch(`${api.origin}/metrics`)).text()
    return text.split('\n').filter((line) => line.startsWith('chat_breaker_open{model="a/one"'))
  }
  for (let request = 0; request < 3; request++) await api.post(ONE)
  expect(await open()).toEqual([
    'chat_breaker_open{model="a/one",provider="alpha"} 1',
    'chat_breaker_open{model="a/one",provider="beta"} 0',
  ])
  writeModels(api.dataDir, { 'a/one': [{ name: 'beta', base_url: api.upstream.url }] })
  await api.reload()
  expect(await open()).toEqual(['chat_breaker_open{model="a/one",provider="beta"} 0'])
})

it('one request probes a provider that was tried last, which is first again with the first token', async () => {
  const [begin, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await using api = await startThree(status(503, {}, { 'retry-after': '1' }))
  await api.post(ONE)
  await api.post(ONE)
  expect(api.upstream.asked()).toEqual(['first', 'second', 'second'])
  api.upstream.behaviours['first'] = async (response, received) => {
    if (received.body.stream !== true) return await answers()(response, received)
    await begin.promise
    response.writeHead(200).write(sse([chunk({ content: 'Hel' })], false))
    await goOn.promise
    response.end(sse([chunk({}, 'stop')]))
  }
  const probing = await until(async () => {
    const [reply, asked] = [api.post({ ...ONE, stream: true }), api.upstream.asked().length]
    await until(() => api.upstream.asked().length > asked)
    return api.upstream.asked().at(-1) === 'first' && { reply }
  })
  expect(await (await api.post(ONE)).text()).toContain('"provider":"beta"')
  begin.resolve()
  const reply = await probing.reply
  expect(await (await api.post(ONE)).text()).toContain('"provider":"alpha"')
  goOn.resolve()
  await reply.text()
})

it('a provider that fails half of its last ten attempts is tried last', async () => {
  let count = 0
  await using api = await startThree((response, received) =>
    (count++ % 2 === 0 ? status(500) : answers())(response, received),
  )
  for (let request = 0; request < 10; request++) await api.post(ONE)
  expect(count).toBe(9)
})

it('a caller sees the code and the parameter of a refusal, never its text', async () => {
  const refused = {
    message: 'secret words',
    type: 'invalid_request_error',
    param: 'messages[0].role',
    code: 'invalid_value',
  }
  await using api = await startThree(status(400, { error: refused }), status(400, { error: refused }))
  const { error } = envelopeSchema.parse(await (await api.post(ONE)).json())
  expect(error.metadata).toMatchObject({
    error_type: 'invalid_request',
    param: 'messages[0].role',
    code: 'invalid_value',
  })
  const secret = { message: 'x', param: 'a sentence of the provider', code: 'sk-0123456789abcdef' }
  api.upstream.behaviours['first'] = api.upstream.behaviours['second'] = status(400, { error: secret })
  const other = envelopeSchema.parse(await (await api.post(ONE)).json()).error
  expect(other.metadata).not.toHaveProperty('param')
  expect(other.metadata).not.toHaveProperty('code')
})

it('a context that is too long is named in the words that agents look for', async () => {
  const tooLong = status(400, { error: { code: 'context_length_exceeded', message: 'x' } })
  await using api = await startThree(tooLong, tooLong)
  const { error } = envelopeSchema.parse(await (await api.post(ONE)).json())
  for (const words of ['prompt is too long', 'maximum context length', 'context_length_exceeded']) {
    expect(error.message).toContain(words)
  }
})

it('a model that is not configured is skipped if another one is', async () => {
  await using api = await startThree(answers())
  expect((await api.post({ ...ONE, model: 'a/none', models: ['a/one'] })).status).toBe(200)
  expect((await api.post({ ...ONE, models: ['a/none'] })).status).toBe(200)
  expect(api.upstream.asked()).toEqual(['first', 'first'])
})

describe('preferences for providers', () => {
  const FAILING = status(500)

  it.each([
    ['order', { order: ['beta'] }, ['second', 'first', 'other']],
    [
      'order, in other letters, with an unknown name',
      { order: ['Nobody', 'BETA'] },
      ['second', 'first', 'other'],
    ],
    ['only', { only: ['beta', 'gamma'] }, ['second', 'other']],
    ['ignore', { ignore: ['alpha'] }, ['second', 'other']],
    ['order and no fallbacks', { order: ['beta'], allow_fallbacks: false }, ['second']],
    ['no fallbacks', { allow_fallbacks: false }, ['first', 'other']],
    ['nothing', {}, ['first', 'second', 'other']],
    [
      'what restricts nothing',
      { sort: 'price', zdr: false, data_collection: 'allow', quantizations: [], max_price: null, only: [] },
      ['first', 'second', 'other'],
    ],
  ])('%s: they are kept', async (_name, provider, asked) => {
    await using api = await startThree(FAILING, FAILING, FAILING)
    expect((await api.post({ ...BOTH, provider })).status).toBe(502)
    expect(api.upstream.asked()).toEqual(asked)
    expect(api.upstream.received[0]?.body).not.toHaveProperty('provider')
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
    await using api = await startThree(answers())
    const response = await api.post({ ...ONE, provider })
    expect(response.status).toBe(400)
    expect(envelopeSchema.parse(await response.json()).error.message).toContain(name)
    expect(api.upstream.received).toEqual([])
  })
})
