/** CONTRACT 6: MODELS_FILE, the list of models, proxies, and where secrets go. */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { OpenRouter } from '@openrouter/sdk'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { envelopeSchema, startApi, startServer, until } from '../../support/api.ts'
import { ONE, startScriptedChat, writeModels } from '../../support/chat/chat.ts'
import { completion, status } from '../../support/chat/upstream.ts'
import { makeFolder } from '../../support/folders.ts'
import { listen } from '../../support/ports.ts'
import { startProgram, REPOSITORY } from '../../support/processes.ts'

/** A provider that is never called. */
const NOWHERE = { name: 'acme', base_url: 'http://127.0.0.1:9', model: 'their-name' }

function write(content: unknown): string {
  const path = join(makeFolder(), 'models.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

/** Why the service does not start with this configuration. */
async function faultsOf(MODELS_FILE: string): Promise<string> {
  const environment = { DATA_DIR: makeFolder(), PORT: '0', MODELS_FILE }
  const { code, stderr } = await startProgram('api/server.ts', [], environment).ended
  expect(code).toBe(2)
  expect(stderr).toContain(MODELS_FILE)
  expect(stderr).not.toContain('    at ')
  return stderr
}

describe('an invalid configuration', () => {
  it.each([
    ['that is not there', () => join(makeFolder(), 'none.json'), 'ENOENT'],
    ['that is no JSON', () => write('{"models": {'), 'not JSON'],
    ['without models', () => write({}), 'models'],
  ])('%s keeps the service from starting', async (_name, file, named) => {
    expect(await faultsOf(file())).toContain(named)
  })

  it('has all its faults reported at once, each with its place', async () => {
    const faults: readonly (readonly [fault: string, provider: object, model?: object])[] = [
      ['must be an http or https address', { base_url: 'ftp://acme.example' }],
      ['a query or fragment', { base_url: 'https://acme.example/?a=1' }],
      ['a query or fragment', { base_url: 'https://acme.example/#x' }],
      ['api_key_env', { base_url: 'https://u:p@acme.example' }],
      ['must be the name of an environment variable', { api_key_env: 'sk-123' }],
      ['is set by the service', { headers: { Host: 'x' } }],
      ['must be printable ASCII', { headers: { 'X-A': 'a\r\nb' } }],
      ['expected string', { model: 7 }],
      ['idle_ms', { timeouts: { idle_ms: 0 } }],
      ['must name at least one provider', {}, { providers: [] }],
      ['must name each provider once', {}, { providers: [NOWHERE, NOWHERE] }],
      ['pricing.prompt', {}, { pricing: { prompt: 1, completion: 1 } }],
      ['context_length', {}, { context_length: 0 }],
    ]
    const models = faults.map(([, provider, model], index) => [
      `a/${index}`,
      { providers: [{ ...NOWHERE, ...provider }], ...model },
    ])
    const unslashed = { one: { providers: [NOWHERE] } }
    const text = await faultsOf(
      write({ models: { ...Object.fromEntries(models), ...unslashed }, modles: {} }),
    )
    const blocks = text.split('✖ ')
    for (const [index, [fault]] of faults.entries()) {
      expect(blocks.find((block) => block.includes(`models["a/${index}"]`))).toContain(fault)
    }
    expect(text).toContain('must have the form author/slug')
    expect(text).toContain('modles')
  })
})

/** A request to a provider with these keys; what the provider received, and what the service logged. */
async function sentWith(
  entry: object,
  environment: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = {},
) {
  const dataDir = makeFolder()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dataDir, name), text)
  await using chat = await startScriptedChat({ dataDir, environment })
  await chat.configure({ 'a/one': [{ base_url: `${chat.upstream.url}/chat/completions/`, ...entry }] })
  const { status: code } = await chat.api.ask()
  const [received] = chat.upstream.received
  return { code, path: received?.path, headers: received?.headers, lines: chat.api.lines.join('') }
}

describe('a provider', () => {
  it.each([
    ['its key from a variable, without blanks around it', { api_key_env: 'KEY' }, 'Bearer sk-1'],
    ['its key from a file beside the configuration', { api_key_file: 'acme.key' }, 'Bearer sk-2'],
    ['headers as text', { headers: { Authorization: 'us' } }, 'us'],
    ['headers from the environment', { headers: { Authorization: { env: 'KEY' } } }, 'sk-1'],
  ])('has %s', async (_name, entry, authorization) => {
    const got = await sentWith(entry, { KEY: ' sk-1 ' }, { 'acme.key': 'sk-2\n' })
    expect(got.headers?.authorization).toBe(authorization)
    expect(got.path).toBe('/v1/chat/completions')
  })

  it.each([
    [{ api_key_env: 'ACME_KEY' }, {}, 'ACME_KEY'],
    [{ api_key_env: 'ACME_KEY' }, { ACME_KEY: '' }, 'ACME_KEY'],
    [{ api_key_env: 'ACME_KEY' }, { ACME_KEY: 'a\nb' }, 'ACME_KEY'],
    [{ api_key_file: 'acme.key' }, {}, 'acme.key'],
  ])('without a usable key is left out, with a warning: %j %j', async (entry, environment, named) => {
    const { code, headers, lines } = await sentWith(entry, environment)
    expect({ code, headers }).toEqual({ code: 503, headers: undefined })
    expect(lines).toMatch(new RegExp(`${named} is not set or cannot be read`))
  })

  it('gets its own key alone, and nothing of the caller', async () => {
    const environment = { ALPHA_KEY: 'alpha-secret', BETA_KEY: 'beta-secret' }
    await using chat = await startScriptedChat({
      environment,
      behaviours: { first: status(401, { error: { message: 'bad key alpha-secret' } }) },
      models: {
        'a/one': [{ name: 'first', model: 'first', api_key_env: 'ALPHA_KEY' }, { api_key_env: 'BETA_KEY' }],
      },
    })
    const headers = { Cookie: 'a=b', 'HTTP-Referer': 'https://app.example', 'X-Forwarded-For': '1.2.3.4' }
    const response = await chat.api.ask({}, { headers })
    const answer = `${JSON.stringify([...response.headers])}${await response.text()}`
    const sent = chat.upstream.received.map((one) => one.headers)
    expect(sent.map(({ authorization }) => authorization)).toEqual([
      'Bearer alpha-secret',
      'Bearer beta-secret',
    ])
    for (const one of sent) {
      expect(one['accept-encoding']).toBe('identity')
      expect(Object.keys(one).toSorted().join(' ')).toBe(
        'accept accept-encoding authorization connection content-length content-type host user-agent',
      )
    }
    for (const text of [answer, chat.api.lines.join('')]) {
      expect(text).not.toMatch(/(?:alpha|beta)-secret/)
      expect(text).not.toContain(chat.api.key)
    }
  })
})

describe('a proxy that the environment names', () => {
  const host = 'models.example'

  it.each([
    ['gets plain requests whole', `http://${host}/v1`, 'http_proxy', `http://${host}/v1/chat/completions`],
    ['gets tunnel requests for https addresses', `https://${host}/v1`, 'HTTPS_PROXY', `CONNECT ${host}:443`],
    ['is bypassed for the hosts of NO_PROXY', undefined, 'HTTP_PROXY', undefined],
  ])('%s', async (_name, base_url, variable, wanted) => {
    const asked: unknown[] = []
    const proxy = createServer(({ url }, response) => {
      asked.push(url)
      response.end(JSON.stringify(completion()))
    })
    proxy.on('connect', ({ url }, socket) => {
      asked.push(`CONNECT ${url}`)
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    })
    await using listening = await listen(proxy)
    await using chat = await startScriptedChat({
      environment: { [variable]: `http://127.0.0.1:${listening.port}`, NO_PROXY: 'localhost,127.0.0.1' },
      models: { 'a/one': [base_url === undefined ? {} : { base_url }] },
    })
    await chat.api.ask()
    expect(asked).toEqual(wanted === undefined ? [] : [wanted])
    expect(chat.upstream.received).toHaveLength(wanted === undefined ? 1 : 0)
  })
})

describe('a service', () => {
  it('without a configuration starts, lists no model, and names the setting', async () => {
    await using api = await startApi(makeFolder())
    const key = await api.makeKey('inference')
    const none = { object: 'list', data: [], total_count: 0, links: { next: null } }
    expect(await (await api.get('/models')).json()).toEqual(none)
    const headers = { 'Content-Type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(ONE) }
    const response = await api.get('/chat/completions', key, init)
    expect(response.status).toBe(503)
    expect(response.headers.has('Retry-After')).toBe(true)
    const { error } = envelopeSchema.parse(await response.json())
    expect(error.message).toContain('MODELS_FILE')
    expect(error.metadata).toEqual({ error_type: 'provider_unavailable' })
  })

  it('takes the example of the repository', async () => {
    const MODELS_FILE = join(REPOSITORY, 'data', 'models.example.json')
    await using api = await startApi(makeFolder(), { environment: { MODELS_FILE } })
    const models = await (await api.get('/models')).text()
    expect(models.match(/"object":"model"/g)?.length).toBeGreaterThan(1)
  })

  it('shows the configured details of a model, in the forms of OpenAI and OpenRouter', async () => {
    const providers = [NOWHERE]
    const pricing = { prompt: '0.0000025', completion: '0.00001' }
    const limits = { context_length: 128_000, max_completion_tokens: 16_384 }
    const MODELS_FILE = write({
      models: { 'a/one': { name: 'One', ...limits, pricing, providers }, 'a/two:free': { providers } },
    })
    await using api = await startApi(makeFolder(), { environment: { MODELS_FILE } })
    const openai = new OpenAI({ baseURL: api.base, apiKey: 'x', maxRetries: 0 })
    const openrouter = new OpenRouter({ serverURL: api.base, apiKey: 'x', retryConfig: { strategy: 'none' } })
    const { result } = await openrouter.models.list()
    const top = { topProvider: { maxCompletionTokens: 16_384 } }
    const unknown = {
      contextLength: null,
      pricing: { prompt: '-1' },
      topProvider: { maxCompletionTokens: null },
    }
    expect(result).toMatchObject({
      totalCount: 2,
      data: [
        { id: 'a/one', name: 'One', contextLength: 128_000, pricing, ...top },
        { id: 'a/two:free', ...unknown },
      ],
    })
    const one = { id: 'a/one', object: 'model', created: expect.any(Number), owned_by: 'a' }
    expect(await openai.models.retrieve('a/one')).toMatchObject({ ...one, ...limits })
    expect(await (await api.get('/models/a/one')).json()).toMatchObject({ ...one, ...limits })
    for (const path of ['/models/a/none', '/models/a', '/models/a%2Fnone']) {
      expect((await api.get(path)).status).toBe(404)
    }
    await expect(openai.models.retrieve('a/none')).rejects.toThrow('Unknown model: "a/none"')
  })

  it.each([
    [2, { models_per_request: 2 }],
    [10, {}],
  ])('takes at most %i fallbacks with the limits %j', async (most, modelLimits) => {
    await using chat = await startScriptedChat({ modelLimits })
    const models = Array.from({ length: most }, () => 'a/one')
    expect((await chat.api.ask({ models })).status).toBe(200)
    const refused = await chat.api.ask({ models: [...models, 'a/one'] })
    expect(refused.status).toBe(400)
    const message = `models: ${most + 1} were sent, at most ${most} are allowed`
    expect(envelopeSchema.parse(await refused.json()).error.message).toBe(message)
  })

  it('reads the file again on SIGHUP, and keeps the old one if the file is invalid', async () => {
    const dataDir = makeFolder()
    const wiring = { 'a/one': [NOWHERE] }
    const MODELS_FILE = writeModels(dataDir, wiring)
    const program = await startServer({ DATA_DIR: dataDir, MODELS_FILE })
    const models = async () => await (await program.get('/models')).text()
    expect(await models()).not.toContain('a/two')
    writeFileSync(MODELS_FILE, '{')
    program.child.kill('SIGHUP')
    await until(() => program.output.stderr.includes('models not reloaded'))
    expect(await models()).toContain('a/one')
    writeModels(dataDir, { ...wiring, 'a/two': [NOWHERE] })
    program.child.kill('SIGHUP')
    await until(async () => (await models()).includes('a/two'))
    expect((await program.stop()).code).toBe(0)
  })
})
