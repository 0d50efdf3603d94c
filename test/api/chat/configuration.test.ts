/** CONTRACT 6: MODELS_FILE, the list of models, and where secrets go. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OpenRouter } from '@openrouter/sdk'
import OpenAI from 'openai'
import { afterAll, describe, expect, it } from 'vitest'
import { envelopeSchema, startApi, startProgram, startServer, until } from '../../support/api.ts'
import { MESSAGES, startChat, writeModels } from '../../support/chat/chat.ts'
import { answers, startUpstream } from '../../support/chat/upstream.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { REPOSITORY } from '../../support/processes.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const ACME = { name: 'acme', base_url: 'https://api.acme.example/v1/', model: 'their-name' }
const ONE = { model: 'a/one', messages: MESSAGES }

function write(content: unknown): string {
  const path = join(folders.make(), 'models.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

/** Why the service does not start with this configuration. */
async function faultsOf(MODELS_FILE: string): Promise<string> {
  const { code, stderr } = await startProgram('server.ts', [], {
    DATA_DIR: folders.make(),
    PORT: '0',
    MODELS_FILE,
  }).ended
  expect(code).toBe(2)
  expect(stderr).toContain(MODELS_FILE)
  expect(stderr).not.toContain('    at ')
  return stderr
}

describe('an invalid configuration', () => {
  it.each([
    ['that is not there', () => join(folders.make(), 'none.json'), 'ENOENT'],
    ['that is no JSON', () => write('{"models": {'), 'not JSON'],
    ['without models', () => write({}), 'models'],
  ])('%s keeps the service from starting', async (_name, file, named) => {
    expect(await faultsOf(file())).toContain(named)
  })

  it('has all its faults reported at once, each with its place', async () => {
    const provider: readonly (readonly [string, object])[] = [
      ['must be an http or https address', { base_url: 'ftp://acme.example' }],
      ['a query or fragment', { base_url: 'https://acme.example/?a=1' }],
      ['a query or fragment', { base_url: 'https://acme.example/#x' }],
      ['api_key_env', { base_url: 'https://u:p@acme.example' }],
      ['must be the name of an environment variable', { api_key_env: 'sk-123' }],
      ['is set by the service', { headers: { Host: 'x' } }],
      ['must be printable ASCII', { headers: { 'X-A': 'a\r\nb' } }],
      ['expected string', { model: 7 }],
      ['idle_ms', { timeouts: { idle_ms: 0 } }],
    ]
    const model: readonly (readonly [string, object])[] = [
      ['must name at least one provider', { providers: [] }],
      ['must name each provider once', { providers: [ACME, ACME] }],
      ['pricing.prompt', { pricing: { prompt: 1, completion: 1 } }],
      ['context_length', { context_length: 0 }],
    ]
    const models = [
      ...provider.map(([, changes]) => ({ providers: [{ ...ACME, ...changes }] })),
      ...model.map(([, changes]) => ({ providers: [ACME], ...changes })),
    ]
    const named = Object.fromEntries(models.map((one, index) => [`a/${index}`, one]))
    const faults = await faultsOf(write({ models: { ...named, one: { providers: [ACME] } }, modles: {} }))
    const blocks = faults.split('✖ ')
    for (const [index, [fault]] of [...provider, ...model].entries()) {
      const own = blocks.find((block) => block.includes(`models["a/${index}"]`))
      expect(own, `a/${index}`).toContain(fault)
    }
    expect(faults).toContain('must have the form author/slug')
    expect(faults).toContain('modles')
  })
})

/** The headers that the provider receives from a service with this entry; undefined if it gets no request. */
async function sentWith(entry: object, environment = {}, files: Readonly<Record<string, string>> = {}) {
  await using upstream = await startUpstream({ 'their-name': answers() })
  const dataDir = folders.make()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dataDir, name), text)
  const wiring = { 'a/one': [{ ...ACME, base_url: `${upstream.url}/`, ...entry }] }
  await using api = await startChat(folders, wiring, { dataDir, environment })
  const { status } = await api.post(ONE)
  const [received] = upstream.received
  return { status, path: received?.path, headers: received?.headers, lines: api.lines.join('') }
}

describe('a provider', () => {
  it('has its key from a variable, without blanks around it', async () => {
    const got = await sentWith({ api_key_env: 'ACME_KEY' }, { ACME_KEY: ' sk-1 ' })
    expect(got.path).toBe('/v1/chat/completions')
    expect(got.headers?.authorization).toBe('Bearer sk-1')
  })

  it('has its key from a file beside the configuration', async () => {
    const got = await sentWith({ api_key_file: 'acme.key' }, {}, { 'acme.key': 'sk-2\n' })
    expect(got.headers?.authorization).toBe('Bearer sk-2')
  })

  it('has headers, as text or from the environment', async () => {
    const headers = { 'X-Title': 'us', 'api-key': { env: 'AZURE_KEY' } }
    const got = await sentWith({ headers }, { AZURE_KEY: 'k' })
    expect(got.headers).toMatchObject({ 'x-title': 'us', 'api-key': 'k' })
  })

  it.each([
    [{ api_key_env: 'ACME_KEY' }, {}, 'ACME_KEY'],
    [{ api_key_env: 'ACME_KEY' }, { ACME_KEY: '' }, 'ACME_KEY'],
    [{ api_key_env: 'ACME_KEY' }, { ACME_KEY: 'a\nb' }, 'ACME_KEY'],
    [{ api_key_file: 'acme.key' }, {}, 'acme.key'],
  ])('without a usable key is left out, with a warning: %j %j', async (entry, environment, named) => {
    const { status, headers, lines } = await sentWith(entry, environment)
    expect({ status, headers }).toEqual({ status: 503, headers: undefined })
    expect(lines).toMatch(new RegExp(`${named} is not set or cannot be read`))
  })
})

describe('a service', () => {
  it('without a configuration starts, lists no model, and names the setting', async () => {
    await using api = await startApi(folders.make())
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
    await using api = await startApi(folders.make(), { environment: { MODELS_FILE } })
    const models = await (await api.get('/models')).text()
    expect(models.match(/"object":"model"/g)?.length).toBeGreaterThan(1)
  })

  it('shows the configured details of a model, in the forms of OpenAI and OpenRouter', async () => {
    const providers = [{ ...ACME, base_url: 'http://127.0.0.1:9' }]
    const pricing = { prompt: '0.0000025', completion: '0.00001' }
    const limits = { context_length: 128_000, max_completion_tokens: 16_384 }
    const details = { name: 'One', ...limits, pricing, providers }
    const MODELS_FILE = write({ models: { 'a/one': details, 'a/two:free': { providers } } })
    await using api = await startApi(folders.make(), { environment: { MODELS_FILE } })
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
    await using upstream = await startUpstream({ 'a/one': answers() })
    const wiring = { 'a/one': [{ base_url: upstream.url }] }
    await using api = await startChat(folders, wiring, { modelLimits })
    const models = Array.from({ length: most }, () => 'a/one')
    expect((await api.post({ ...ONE, models })).status).toBe(200)
    const refused = await api.post({ ...ONE, models: [...models, 'a/one'] })
    expect(refused.status).toBe(400)
    expect(envelopeSchema.parse(await refused.json()).error.message).toBe(
      `models: ${most + 1} were sent, at most ${most} are allowed`,
    )
  })

  it('reads the file again on SIGHUP, and keeps the old one if the file is invalid', async () => {
    const dataDir = folders.make()
    const wiring = { 'a/one': [{ base_url: 'http://127.0.0.1:9' }] }
    const MODELS_FILE = writeModels(dataDir, wiring)
    const { origin, ...program } = await startServer({ DATA_DIR: dataDir, MODELS_FILE })
    const models = async () => await (await fetch(`${origin}/api/v1/models`)).text()
    expect(await models()).not.toContain('a/two')
    writeFileSync(MODELS_FILE, '{')
    program.child.kill('SIGHUP')
    await until(() => program.output.stderr.includes('models not reloaded'))
    expect(await models()).toContain('a/one')
    writeModels(dataDir, { ...wiring, 'a/two': [{ base_url: 'http://127.0.0.1:9' }] })
    program.child.kill('SIGHUP')
    await until(async () => (await models()).includes('a/two'))
    program.child.kill('SIGTERM')
    expect((await program.ended).code).toBe(0)
  })
})

it('keys go to their provider alone, and nothing of the caller goes to any', async () => {
  const environment = { ALPHA_KEY: 'alpha-secret', BETA_KEY: 'beta-secret' }
  await using upstream = await startUpstream({
    first: (response) => void response.writeHead(401).end('{"error":{"message":"bad key alpha-secret"}}'),
    second: answers(),
  })
  const provider = (name: string, model: string, api_key_env: string) =>
    ({ name, base_url: upstream.url, model, api_key_env }) as const
  const wiring = {
    'a/one': [provider('alpha', 'first', 'ALPHA_KEY'), provider('beta', 'second', 'BETA_KEY')],
  }
  await using api = await startChat(folders, wiring, { environment })
  const ofCaller = { Cookie: 'a=b', 'HTTP-Referer': 'https://app.example', 'X-Forwarded-For': '1.2.3.4' }
  const response = await api.post(ONE, { headers: ofCaller })
  const answer = `${JSON.stringify([...response.headers])}${await response.text()}`
  const own = ['alpha', 'beta'].map((name) => ({ authorization: `Bearer ${name}-secret` }))
  expect(upstream.received.map(({ headers }) => headers)).toMatchObject(own)
  for (const { headers } of upstream.received) {
    expect(headers['accept-encoding']).toBe('identity')
    expect(Object.keys(headers).toSorted().join(' ')).toBe(
      'accept accept-encoding authorization connection content-length content-type host user-agent',
    )
  }
  for (const text of [answer, api.lines.join('')]) {
    expect(text).not.toMatch(/(?:alpha|beta)-secret/)
    expect(text).not.toContain(api.key)
  }
})
