/** CONTRACT 6: MODELS_FILE, the list of models, and what goes to a provider. */
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { OpenRouter } from '@openrouter/sdk'
import OpenAI from 'openai'
import { afterAll, describe, expect, it } from 'vitest'
import { readConfiguration } from '../../../api/chat/configuration.ts'
import { OperatorError } from '../../../api/http/errors.ts'
import { envelopeSchema, startApi, startProgram, startServer, until } from '../../support/api.ts'
import { MESSAGES, startChat, writeModels } from '../../support/chat/chat.ts'
import { TemporaryFolders } from '../../support/pipeline/nightly.ts'
import { REPOSITORY } from '../../support/processes.ts'
import { answers, startUpstream } from '../../support/chat/upstream.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

const ACME = { name: 'acme', base_url: 'https://api.acme.example/v1/', model: 'their-name' }

function write(content: unknown): string {
  const path = join(folders.make(), 'models.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const withProvider = (changes: Readonly<Record<string, unknown>>) =>
  write({ models: { 'a/one': { providers: [{ ...ACME, ...changes }] } } })

const withModel = (changes: Readonly<Record<string, unknown>>) =>
  write({ models: { 'a/one': { providers: [ACME], ...changes } } })

describe('readConfiguration', () => {
  it.each([
    ['a file that is not there', () => join(folders.make(), 'none.json'), 'ENOENT'],
    ['a file that is no JSON', () => write('{"models": {'), 'not JSON'],
    ['a file without models', () => write({}), 'models'],
    ['a misspelt key', () => write({ models: {}, modles: {} }), 'modles'],
    ['a model without author', () => write({ models: { one: { providers: [ACME] } } }), 'author/slug'],
    [
      'a model without providers',
      () => write({ models: { 'a/one': { providers: [] } } }),
      'at least one provider',
    ],
    [
      'a provider twice',
      () => write({ models: { 'a/one': { providers: [ACME, ACME] } } }),
      'each provider once',
    ],
    ['an address of another kind', () => withProvider({ base_url: 'ftp://acme.example' }), 'http or https'],
    ['an address with a query', () => withProvider({ base_url: 'https://acme.example/?a=1' }), 'query'],
    ['an address with a fragment', () => withProvider({ base_url: 'https://acme.example/#x' }), 'fragment'],
    [
      'an address with a password',
      () => withProvider({ base_url: 'https://u:p@acme.example' }),
      'api_key_env',
    ],
    ['a key instead of its variable', () => withProvider({ api_key_env: 'sk-123' }), 'environment variable'],
    ['a header of the connection', () => withProvider({ headers: { Host: 'x' } }), 'set by the service'],
    ['a header with a line break', () => withProvider({ headers: { 'X-A': 'a\r\nb' } }), 'printable'],
    [
      'a price that is a number',
      () => withModel({ pricing: { prompt: 1, completion: 1 } }),
      'pricing.prompt',
    ],
    ['a context of no length', () => withModel({ context_length: 0 }), 'context_length'],
    ['a time of no length', () => withProvider({ timeouts: { idle_ms: 0 } }), 'idle_ms'],
  ])('refuses %s', async (_name, file, named) => {
    const path = file()
    const read = readConfiguration(path, {})
    await expect(read).rejects.toThrow(OperatorError)
    await expect(read).rejects.toThrow(named)
    await expect(read).rejects.toThrow(path)
  })

  it('reports all faults at once', async () => {
    const path = write({
      models: { one: { providers: [ACME] }, 'a/two': { providers: [{ ...ACME, model: 7 }] } },
    })
    await expect(readConfiguration(path, {})).rejects.toThrow(/author\/slug[^]*model/)
  })

  it('takes the smallest configuration', async () => {
    const { models } = await readConfiguration(withProvider({ api_key_env: 'ACME_KEY' }), {
      ACME_KEY: ' sk-1 ',
    })
    const [provider] = models.get('a/one') ?? []
    expect(provider?.url.href).toBe('https://api.acme.example/v1/chat/completions')
    expect(provider).toMatchObject({
      name: 'acme',
      model: 'their-name',
      headers: { authorization: 'Bearer sk-1' },
    })
  })

  it('reads a key from a file beside the configuration, and leaves out a provider without it', async () => {
    const path = withProvider({ api_key_file: 'acme.key' })
    const { warnings } = await readConfiguration(path, {})
    expect(warnings).toEqual([expect.stringContaining(join(dirname(path), 'acme.key'))])
    writeFileSync(join(dirname(path), 'acme.key'), 'sk-2\n')
    const { models } = await readConfiguration(path, {})
    expect(models.get('a/one')?.[0]?.headers).toEqual({ authorization: 'Bearer sk-2' })
  })

  it('takes headers, as text or from the environment', async () => {
    const headers = { 'X-Title': 'us', 'api-key': { env: 'AZURE_KEY' } }
    const { models } = await readConfiguration(withProvider({ headers }), { AZURE_KEY: 'k' })
    expect(models.get('a/one')?.[0]?.headers).toEqual({ 'x-title': 'us', 'api-key': 'k' })
  })

  it.each([{}, { ACME_KEY: '' }, { ACME_KEY: 'a\nb' }])(
    'leaves out a provider without a usable key, with a warning: %j',
    async (environment) => {
      const { models, warnings } = await readConfiguration(
        withProvider({ api_key_env: 'ACME_KEY' }),
        environment,
      )
      expect(models.get('a/one')).toEqual([])
      expect(warnings).toEqual([expect.stringContaining('ACME_KEY')])
    },
  )

  it('reads the example of the repository', async () => {
    const { models } = await readConfiguration(join(REPOSITORY, 'data', 'models.example.json'), {})
    expect(models.size).toBeGreaterThan(1)
  })
})

const ONE = { model: 'a/one', messages: MESSAGES }

describe('a service', () => {
  it('without a configuration starts, lists no model, and names the setting', async () => {
    const dataDir = folders.make()
    await using api = await startApi(dataDir)
    const key = await api.makeKey('inference')
    expect(await (await api.get('/models')).json()).toEqual({
      object: 'list',
      data: [],
      total_count: 0,
      links: { next: null },
    })
    const response = await api.get('/chat/completions', key, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(ONE),
    })
    expect(response.status).toBe(503)
    expect(response.headers.has('Retry-After')).toBe(true)
    const { error } = envelopeSchema.parse(await response.json())
    expect(error.message).toContain('MODELS_FILE')
    expect(error.metadata).toEqual({ error_type: 'provider_unavailable' })
  })

  it('does not start with an invalid one, and reports why', async () => {
    const dataDir = folders.make()
    const program = startProgram('server.ts', [], { DATA_DIR: dataDir, PORT: '0', MODELS_FILE: write('{') })
    const { code, stderr } = await program.ended
    expect(code).toBe(2)
    expect(stderr).toContain('not JSON')
    expect(stderr).not.toContain('    at ')
  })

  it('lists the models in the form of OpenAI', async () => {
    await using api = await startChat(folders, { 'a/one': [{ base_url: 'http://127.0.0.1:9' }] })
    expect(await (await api.get('/models')).json()).toMatchObject({
      object: 'list',
      data: [{ id: 'a/one', object: 'model', created: expect.any(Number), owned_by: 'a' }],
    })
  })

  it('shows the configured details of a model, in the forms of both clients', async () => {
    const providers = [{ ...ACME, base_url: 'http://127.0.0.1:9' }]
    const pricing = { prompt: '0.0000025', completion: '0.00001' }
    const details = {
      name: 'One',
      context_length: 128_000,
      max_completion_tokens: 16_384,
      pricing,
      providers,
    }
    const MODELS_FILE = write({ models: { 'a/one': details, 'a/two:free': { providers } } })
    await using api = await startApi(folders.make(), { environment: { MODELS_FILE } })
    const openai = new OpenAI({ baseURL: api.base, apiKey: 'x', maxRetries: 0 })
    const openrouter = new OpenRouter({ serverURL: api.base, apiKey: 'x', retryConfig: { strategy: 'none' } })
    const { result } = await openrouter.models.list()
    expect(result).toMatchObject({
      totalCount: 2,
      data: [
        {
          id: 'a/one',
          name: 'One',
          contextLength: 128_000,
          pricing,
          topProvider: { maxCompletionTokens: 16_384 },
        },
        {
          id: 'a/two:free',
          contextLength: null,
          pricing: { prompt: '-1' },
          topProvider: { maxCompletionTokens: null },
        },
      ],
    })
    expect(await openai.models.retrieve('a/one')).toMatchObject({ id: 'a/one', context_length: 128_000 })
    expect(await openai.models.retrieve('a/two:free')).toMatchObject({
      id: 'a/two:free',
      context_length: null,
    })
    expect(await (await api.get('/models/a/one')).json()).toMatchObject({ max_completion_tokens: 16_384 })
    for (const path of ['/models/a/none', '/models/a', '/models/a%2Fnone']) {
      expect((await api.get(path)).status).toBe(404)
    }
    await expect(openai.models.retrieve('a/none')).rejects.toThrow('Unknown model: "a/none"')
  })

  it('answers 503 if no provider of the model has its key', async () => {
    await using api = await startChat(folders, {
      'a/one': [{ base_url: 'http://127.0.0.1:9', api_key_env: 'NO_SUCH_KEY' }],
    })
    expect((await api.post(ONE)).status).toBe(503)
  })

  it('answers 400 if no model of the request is configured', async () => {
    await using upstream = await startUpstream({ 'a/one': answers() })
    await using api = await startChat(folders, { 'a/one': [{ base_url: upstream.url }] })
    for (const body of [
      { ...ONE, model: 'a/none' },
      { ...ONE, model: 'a/none', models: ['b/none'] },
    ]) {
      const response = await api.post(body)
      expect(response.status).toBe(400)
      expect(envelopeSchema.parse(await response.json()).error.message).toContain('"a/none"')
    }
    expect(upstream.received).toEqual([])
  })

  it('takes as many fallbacks as the configuration allows', async () => {
    await using upstream = await startUpstream({ 'a/one': answers() })
    const wiring = { 'a/one': [{ base_url: upstream.url }] }
    await using api = await startChat(folders, wiring, { modelLimits: { models_per_request: 2 } })
    expect((await api.post({ ...ONE, models: ['a/one', 'a/one'] })).status).toBe(200)
    const refused = await api.post({ ...ONE, models: ['a/one', 'a/one', 'a/one'] })
    expect(refused.status).toBe(400)
    expect(envelopeSchema.parse(await refused.json()).error.message).toContain('at most 2')
  })

  it('takes ten of them by default', async () => {
    await using upstream = await startUpstream({ 'a/one': answers() })
    await using api = await startChat(folders, { 'a/one': [{ base_url: upstream.url }] })
    const models = Array.from({ length: 10 }, () => 'a/one')
    expect((await api.post({ ...ONE, models })).status).toBe(200)
    const refused = await api.post({ ...ONE, models: [...models, 'a/one'] })
    expect(refused.status).toBe(400)
    expect(envelopeSchema.parse(await refused.json()).error.message).toBe(
      'models: 11 were sent, at most 10 are allowed',
    )
  })

  it('reads the file again on SIGHUP, and keeps the old one if the file is invalid', async () => {
    await using upstream = await startUpstream({ 'a/one': answers() })
    const dataDir = folders.make()
    const wiring = { 'a/one': [{ base_url: upstream.url }] }
    const MODELS_FILE = writeModels(dataDir, wiring)
    const { origin, ...program } = await startServer({ DATA_DIR: dataDir, MODELS_FILE })
    const models = async () => {
      const listed: unknown = await (await fetch(`${origin}/api/v1/models`)).json()
      return JSON.stringify(listed)
    }
    expect(await models()).not.toContain('a/two')
    writeFileSync(MODELS_FILE, '{')
    program.child.kill('SIGHUP')
    await until(() => program.output.stderr.includes('models not reloaded'))
    expect(await models()).toContain('a/one')
    writeModels(dataDir, { ...wiring, 'a/two': [{ base_url: upstream.url }] })
    program.child.kill('SIGHUP')
    await until(async () => (await models()).includes('a/two'))
    program.child.kill('SIGTERM')
    expect((await program.ended).code).toBe(0)
  })
})

describe('secrets', () => {
  it('go to their provider alone, and nothing of the caller goes to any', async () => {
    const environment = { ALPHA_KEY: 'alpha-secret', BETA_KEY: 'beta-secret' }
    await using upstream = await startUpstream({
      first: (response) => void response.writeHead(401).end('{"error":{"message":"bad key alpha-secret"}}'),
      second: answers(),
    })
    await using api = await startChat(
      folders,
      {
        'a/one': [
          { name: 'alpha', base_url: upstream.url, model: 'first', api_key_env: 'ALPHA_KEY' },
          { name: 'beta', base_url: upstream.url, model: 'second', api_key_env: 'BETA_KEY' },
        ],
      },
      { environment },
    )
    const response = await api.post(ONE, {
      headers: {
        Cookie: 'a=b',
        'HTTP-Referer': 'https://app.example',
        'X-Forwarded-For': '1.2.3.4',
        'X-Api-Key': 'x',
      },
    })
    const answer = `${JSON.stringify([...response.headers])}${await response.text()}`
    const [first, second] = upstream.received.map(({ headers }) => headers)
    expect(first?.authorization).toBe('Bearer alpha-secret')
    expect(second?.authorization).toBe('Bearer beta-secret')
    for (const headers of [first, second]) {
      expect(headers?.['accept-encoding']).toBe('identity')
      expect(Object.keys(headers ?? {}).toSorted()).toEqual([
        'accept',
        'accept-encoding',
        'authorization',
        'connection',
        'content-length',
        'content-type',
        'host',
        'user-agent',
      ])
    }
    for (const text of [answer, api.lines.join('')]) {
      expect(text).not.toMatch(/(?:alpha|beta)-secret/)
      expect(text).not.toContain(api.key)
    }
  })
})
