/** CONTRACT 3, 4.3, 4.5 and 4.6: the OpenAPI document matches routes, replies and README; the official client reads the replies. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { OpenRouter } from '@openrouter/sdk'
import {
  BadRequestResponseError,
  TooManyRequestsResponseError,
  UnauthorizedResponseError,
} from '@openrouter/sdk/models/errors'
import { Validator } from '@seriousme/openapi-schema-validator'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startSampleApi, UNKNOWN_KEY, type Api } from '../support/api.ts'
import { makeFolder } from '../support/folders.ts'
import { REPOSITORY } from '../support/processes.ts'

const object = z.record(z.string(), z.unknown())
const operationSchema = z.looseObject({
  tags: z.array(z.string()),
  parameters: z.array(z.looseObject({ name: z.string(), schema: z.looseObject({}) })).default([]),
  responses: z.record(
    z.string(),
    z.looseObject({ headers: object.default({}), content: object.default({}) }),
  ),
})
const documentSchema = z.looseObject({
  openapi: z.literal('3.1.1'),
  tags: z.array(z.object({ name: z.string() })),
  paths: z.record(z.string(), z.record(z.string(), operationSchema)),
  components: z.looseObject({ schemas: object }),
})

const rowsSchema = z.object({ data: z.array(object).min(1), meta: object })
const rowSchema = z.looseObject({ properties: z.record(z.string(), z.looseObject({ type: z.string() })) })

const COMPLETIONS_PATH = '/api/v1/chat/completions'
const SNAPSHOTS_PATH = '/api/v1/datasets/app-rankings/snapshots'

const readme = readFileSync(join(REPOSITORY, 'api/README.md'), 'utf8')
let api: Api
let text = ''
let document: z.infer<typeof documentSchema>

beforeAll(async () => {
  api = await startSampleApi(makeFolder())
  text = await (await api.get('/openapi.json')).text()
  document = documentSchema.parse(JSON.parse(text))
})

/** The operation of a path in the form of the document. */
const operation = (path: string, method = 'get') => document.paths[path]?.[method]
const responses = (path: string, method?: string) => operation(path, method)?.responses ?? {}

describe('the document', () => {
  it('is valid OpenAPI 3.1', async () => {
    expect(await new Validator().validate(object.parse(JSON.parse(text)))).toEqual({ valid: true })
  })

  it('describes every route of the API, with the errors it can end with', () => {
    for (const { path, method, access } of api.routes) {
      if (!path.startsWith('/api/v1/') || path.endsWith('/openapi.json')) continue
      const described = responses(path.replaceAll(/:([a-z_]+)/g, '{$1}'), method.toLowerCase())
      const needed = ['500', ...(access === 'open' ? [] : ['401']), ...(access === 'any' ? ['429'] : [])]
      if (path === COMPLETIONS_PATH) needed.push('413', '415')
      expect(Object.keys(described), path).toEqual(expect.arrayContaining(needed))
    }
  })

  it('names every type of file that a snapshot has, and every header of the limits', async () => {
    const types = ['{file}', '{table}/{file}'].flatMap((file) =>
      Object.keys(responses(`${SNAPSHOTS_PATH}/{id}/${file}`)['200']?.content ?? {}),
    )
    const list = await (await api.get('/datasets/app-rankings/snapshots')).json()
    const files = z.object({ files: z.array(z.object({ media_type: z.string() })) })
    const [newest] = z.object({ data: z.array(files) }).parse(list).data
    const sent = newest?.files.map((file) => file.media_type.split(';', 1).join('')) ?? []
    // Of croissant.json, which the list does not name.
    expect(new Set(types)).toEqual(new Set([...sent, 'application/ld+json']))
    for (const reply of Object.values(responses('/api/v1/datasets/app-rankings'))) {
      expect(Object.keys(reply.headers)).toContain('RateLimit')
    }
  })

  it.each([
    [200, '20260901T020000Z', {}],
    [206, '20260901T020000Z', { range: 'bytes=0-9' }],
    [302, 'latest', {}],
    [304, '20260901T020000Z', { 'if-none-match': '*' }],
  ])('names the headers of a %d for a file', async (status, id, headers) => {
    const described = Object.keys(responses(`${SNAPSHOTS_PATH}/{id}/{file}`)[status]?.headers ?? {})
    const file = `/datasets/app-rankings/snapshots/${id}/apps.csv`
    const reply = await api.get(file, undefined, { headers: { ...headers }, redirect: 'manual' })
    await reply.arrayBuffer()
    expect(reply.status).toBe(status)
    expect(described.length).toBeGreaterThan(1)
    expect(described.filter((name) => !reply.headers.has(name))).toEqual([])
  })

  it('has what client generators need: defaults, tags, files as binary strings, null as a type', () => {
    expect(text.includes('/vnd.apache.parquet":{"schema":{"type":"string","format":"binary"}}')).toBe(true)
    expect(/"anyOf":\[\{"type":"\w+"[^{}]*\},\{"type":"null"\}\]/.test(text)).toBe(false)
    const declared = document.tags.map(({ name }) => name)
    for (const { tags } of Object.values(document.paths).flatMap((path) => Object.values(path))) {
      expect(declared).toEqual(expect.arrayContaining(tags))
    }
    const parameters = operation('/api/v1/datasets/app-rankings')?.parameters ?? []
    const defaults = parameters.flatMap(({ name, schema }) =>
      'default' in schema ? [[name, schema['default']]] : [],
    )
    expect(Object.fromEntries(defaults)).toEqual({ sort: 'popular', limit: 50, offset: 0 })
    // Client generators would name this type Error, like JavaScript's.
    expect(Object.keys(document.components.schemas)).not.toContain('Error')
  })

  it('has the values and limits that api/README.md states', async () => {
    const { parameters = [] } = operation('/api/v1/datasets/app-rankings') ?? {}
    for (const name of ['limit', 'offset', 'format']) {
      const { schema = {} } = parameters.find((each) => each.name === name) ?? {}
      const { minimum, maximum, enum: names, default: value = '' } = schema
      const range = `${Number(minimum)} to ${Number(maximum)}`
      const allowed = Array.isArray(names) ? `\`${names.join('`, `')}\`` : range
      expect(readme).toMatch(new RegExp(`^\\| \`${name}\` *\\| ${allowed} *\\| .*${String(value)}`, 'm'))
    }
    const { headers } = await api.get('/datasets/app-rankings')
    const limits = (headers.get('RateLimit-Policy') ?? '').match(/(?<=q=)\d+/g)
    expect(/allow (\d+) requests a minute .* and (\d+) per UTC day/.exec(readme)?.slice(1)).toEqual(limits)
  })

  it('names its schemas and the width of integers, so that typed clients lose no digits', () => {
    for (const name of ['app_id', 'rank', 'total_requests'])
      expect(text).toMatch(new RegExp(`"${name}":{[^{}]*"type":"integer","format":"int64"`))
    // Generated clients would read a number as a decimal.
    const ofScim = Object.entries(document.paths).filter(([path]) => path.includes('/scim/'))
    expect(ofScim).toHaveLength(6)
    expect(JSON.stringify(ofScim)).toMatch(/^(?=.*"integer")(?!.*"number")/)
    expect(text).not.toContain('#/$defs/')
    for (const name of ['AppRanking', 'RankingMeta', 'ScimSyncJob', 'ChatCompletion', 'Snapshot'])
      expect(text).toContain(`"$ref":"#/components/schemas/${name}"`)
  })

  it.each([
    ['AppRanking', '/datasets/app-rankings'],
    ['AppDay', '/datasets/app-rankings/daily'],
    ['ModelDay', '/datasets/rankings-daily'],
  ])(
    'has the columns of %s in the order and with the types of a real reply, with examples',
    async (name, path) => {
      const { data } = rowsSchema.parse(await (await api.getAsNewAccount('/datasets/app-rankings')).json())
      const query = path.endsWith('/app-rankings/daily') ? `?app_id=${String(data[0]?.['app_id'])}` : ''
      const reply = rowsSchema.parse(await (await api.getAsNewAccount(`${path}${query}`)).json())
      for (const [schema, row] of [
        [name, reply.data[0] ?? {}],
        ['RankingMeta', reply.meta],
      ] as const) {
        const columns = Object.entries(rowSchema.parse(document.components.schemas[schema]).properties)
        const typeOf = (value: unknown) => (typeof value === 'number' ? 'integer' : typeof value)
        expect(columns.map(([column, { type }]) => [column, type])).toEqual(
          Object.entries(row).map(([column, value]) => [column, typeOf(value)]),
        )
        for (const [, { examples, format, enum: words, const: word }] of columns)
          expect(examples ?? format ?? words ?? word).toBeDefined()
      }
    },
  )

  const offset = { type: 'integer', format: 'int64', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
  const ids = { items: { type: 'integer', format: 'int64', minimum: 0 }, minItems: 1, maxItems: 10 }
  it.each([
    ['/datasets/app-rankings', 'end_date', { format: 'date', pattern: expect.stringMatching(/^\^\(202\[5/) }],
    ['/scim/groups', 'offset', offset],
    ['/datasets/app-rankings/daily', 'app_id', ids],
  ])('states every bound: of %s its %s, so that requests valid by it are no 400', (path, name, bounds) => {
    const parameter = operation(`/api/v1${path}`)?.parameters.find((each) => each.name === name)
    expect(parameter?.schema).toMatchObject(bounds)
  })
})

describe('the official client', () => {
  const datasetsFor = async (apiKey?: string) =>
    new OpenRouter({
      serverURL: api.base,
      apiKey: apiKey ?? (await api.makeKey('inference', crypto.randomUUID())),
      retryConfig: { strategy: 'none' },
    }).datasets

  /** A reply with the names that the client gives its fields. */
  async function replyTo(path: string) {
    const { data, meta } = rowsSchema.parse(await (await api.getAsNewAccount(`/datasets/${path}`)).json())
    const camelCase = (name: string) => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
    const inCamelCase = (row: object) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [camelCase(name), value]))
    return { data: data.map(inCamelCase), meta: inCamelCase(meta) }
  }

  it('reads rankings by every parameter, and the models by day', async () => {
    const datasets = await datasetsFor()
    for (const [query, search] of [
      [{}, ''],
      [{ sort: 'trending', limit: 3 }, '?sort=trending&limit=3'],
      [{ category: 'coding', offset: 2 }, '?category=coding&offset=2'],
      [{ subcategory: 'cli-agent', endDate: '2026-08-20' }, '?subcategory=cli-agent&end_date=2026-08-20'],
    ] as const)
      expect((await datasets.getAppRankings(query)).result).toEqual(await replyTo(`app-rankings${search}`))
    const models = await datasets.getRankingsDaily({ startDate: '2026-08-25' })
    expect(models).toEqual(await replyTo('rankings-daily?start_date=2026-08-25'))
  })

  it('pages through all rows of a category', async () => {
    const ranks: number[] = []
    for await (const page of await (await datasetsFor()).getAppRankings({ category: 'coding', limit: 20 })) {
      ranks.push(...page.result.data.map((row) => row.rank))
    }
    const { headers } = await api.getAsNewAccount('/datasets/app-rankings?category=coding')
    const total = Number(headers.get('X-Total-Count'))
    expect(total).toBeGreaterThan(20)
    expect(ranks).toEqual(Array.from({ length: total }, (_, index) => index + 1))
  })

  it('turns a 400, 401 and 429 into its typed errors', async () => {
    const datasets = await datasetsFor()
    const invalid = datasets.getAppRankings({ limit: 1000 })
    await expect(invalid).rejects.toBeInstanceOf(BadRequestResponseError)
    await expect(invalid).rejects.toMatchObject({
      error: {
        code: 400,
        message: expect.stringContaining('limit'),
        metadata: { parameters: [{ parameter: 'limit', sent: '1000' }] },
      },
      userId: expect.stringMatching(/^[\da-f-]{36}$/),
    })
    const unknown = (await datasetsFor(UNKNOWN_KEY)).getAppRankings()
    await expect(unknown).rejects.toBeInstanceOf(UnauthorizedResponseError)
    await expect(unknown).rejects.toMatchObject({
      error: { code: 401, message: 'Unknown key: send a key of this service' },
    })

    for (let taken = 1; taken < 30; taken += 1) await datasets.getAppRankings({ limit: 1 })
    const eager = datasets.getAppRankings({ limit: 1 })
    await expect(eager).rejects.toBeInstanceOf(TooManyRequestsResponseError)
    await expect(eager).rejects.toMatchObject({ error: { code: 429, metadata: { policy: 'per-minute' } } })
  })
})
