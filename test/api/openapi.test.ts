/** CONTRACT 4.6: the OpenAPI document is valid and complete, and matches the routes and the replies. */
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { snapshotEntrySchema } from '../../api/datasets/snapshots/catalogue.ts'
import { COMPLETIONS_PATH } from '../../api/paths.ts'
import { SNAPSHOTS_PATH } from '../../pipeline/contract/files.ts'
import type { Api } from '../support/api.ts'
import { TemporaryFolders } from '../support/pipeline/nightly.ts'
import { startSampleApi } from '../support/sample-api.ts'

const folders = new TemporaryFolders()
let api: Api

beforeAll(async () => {
  api = await startSampleApi(folders.make())
})

afterAll(async () => {
  await api.close()
  folders.removeAll()
})

const responseSchema = z.looseObject({
  headers: z.record(z.string(), z.unknown()).optional(),
  content: z.record(z.string(), z.unknown()).optional(),
})

const documentSchema = z.looseObject({
  openapi: z.literal('3.1.1'),
  paths: z.record(
    z.string(),
    z.record(z.string(), z.object({ responses: z.record(z.string(), responseSchema) })),
  ),
})

async function served(): Promise<unknown> {
  return await (await api.get('/openapi.json')).json()
}

describe('the document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const document = z.record(z.string(), z.unknown()).parse(await served())
    expect(await new Validator().validate(document)).toEqual({ valid: true })
  })

  it('describes every route of the API, with the errors it can end with', async () => {
    const { paths } = documentSchema.parse(await served())
    for (const { path, method, access, limited } of api.routes) {
      if (!path.startsWith('/api/v1/') || path.endsWith('/openapi.json')) continue
      const responses = paths[path.replaceAll(/:([a-z_]+)/g, '{$1}')]?.[method.toLowerCase()]?.responses
      expect(Object.keys(responses ?? {}), path).toEqual(
        expect.arrayContaining([
          '500',
          ...(access === 'open' ? [] : ['401']),
          ...(limited === true ? ['429'] : []),
        ]),
      )
    }
  })

  it.each([
    ['content coding', { 'Content-Encoding': 'compress' }],
    ['charset', { 'Content-Type': 'application/json; charset=shift_jis' }],
  ])('lists the error of a chat request for an unknown %s', async (_name, headers) => {
    const Authorization = `Bearer ${await api.makeKey('inference')}`
    const { status } = await fetch(`${api.origin}${COMPLETIONS_PATH}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization, ...headers },
      body: '{}',
    })
    expect(status).toBe(415)
    const { paths } = documentSchema.parse(await served())
    expect(Object.keys(paths[COMPLETIONS_PATH]?.['post']?.responses ?? {})).toContain('415')
  })

  it('names every type of file that a snapshot has, and every header of the limits', async () => {
    const { paths } = documentSchema.parse(await served())
    const types = ['{file}', '{table}/{file}'].flatMap((file) =>
      Object.keys(paths[`${SNAPSHOTS_PATH}/{id}/${file}`]?.['get']?.responses['200']?.content ?? {}),
    )
    const list = await (await api.get('/datasets/app-rankings/snapshots')).json()
    const [newest] = z.object({ data: z.array(snapshotEntrySchema) }).parse(list).data
    const sent = newest?.files.map((file) => file.media_type.split(';', 1).join('')) ?? []
    // Of croissant.json, which the list does not name.
    expect(new Set(types)).toEqual(new Set([...sent, 'application/ld+json']))
    const rankings = paths['/api/v1/datasets/app-rankings']?.['get']?.responses ?? {}
    for (const reply of Object.values(rankings))
      expect(Object.keys(reply.headers ?? {})).toContain('RateLimit')
  })

  it.each([
    { part: 'whole', status: 200, asked: {} },
    { part: 'in part', status: 206, asked: { range: 'bytes=0-9' } },
    { part: 'elsewhere', status: 302, asked: {}, id: 'latest' },
    { part: 'unchanged', status: 304, asked: { 'if-none-match': '*' } },
  ])('names the headers of a file, $part', async ({ status, asked, id = '20260901T020000Z' }) => {
    const { paths } = documentSchema.parse(await served())
    const described = paths[`${SNAPSHOTS_PATH}/{id}/{file}`]?.['get']?.responses[status]?.headers ?? {}
    const file = `/datasets/app-rankings/snapshots/${id}/apps.csv`
    const reply = await api.get(file, undefined, { headers: asked, redirect: 'manual' })
    await reply.arrayBuffer()
    expect(reply.status).toBe(status)
    const ofFiles = [
      'Accept-Ranges',
      'Cache-Control',
      'Content-Range',
      'ETag',
      'Last-Modified',
      'Link',
      'Location',
      'Repr-Digest',
    ]
    const sent = ofFiles.filter((name) => reply.headers.has(name))
    expect(ofFiles.filter((name) => name in described)).toEqual(sent)
  })

  it('has what client generators need: defaults, tags, files as binary strings, null as a type', async () => {
    const text = JSON.stringify(await served())
    expect(text.includes('/vnd.apache.parquet":{"schema":{"type":"string","format":"binary"}}')).toBe(true)
    expect(/"anyOf":\[\{"type":"\w+"[^{}]*\},\{"type":"null"\}\]/.test(text)).toBe(false)
    const { tags, paths, components } = z
      .looseObject({
        tags: z.array(z.object({ name: z.string() })),
        paths: z.record(
          z.string(),
          z.record(
            z.string(),
            z.looseObject({
              tags: z.array(z.string()),
              parameters: z.array(z.looseObject({ name: z.string(), schema: z.looseObject({}) })).default([]),
            }),
          ),
        ),
        components: z.looseObject({ schemas: z.record(z.string(), z.unknown()) }),
      })
      .parse(JSON.parse(text))
    const declared = tags.map(({ name }) => name)
    for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) {
      expect(declared).toEqual(expect.arrayContaining(operation.tags))
    }
    const rankings = paths['/api/v1/datasets/app-rankings']?.['get']?.parameters ?? []
    const defaults = rankings.flatMap(({ name, schema }) =>
      'default' in schema ? [[name, schema['default']]] : [],
    )
    expect(Object.fromEntries(defaults)).toEqual({ sort: 'popular', limit: 50, offset: 0 })
    // Client generators would name this type Error, like JavaScript's.
    expect(Object.keys(components.schemas)).not.toContain('Error')
  })

  it('names its schemas and the width of integers, so that typed clients lose no digits', async () => {
    const text = JSON.stringify(await served())
    for (const name of ['app_id', 'rank', 'total_requests'])
      expect(text).toContain(`"${name}":{"type":"integer","format":"int64"`)
    expect(text).not.toContain('#/$defs/')
    for (const name of ['AppRanking', 'RankingMeta', 'ScimSyncJob', 'ChatCompletion', 'Snapshot'])
      expect(text).toContain(`"$ref":"#/components/schemas/${name}"`)
  })

  it.each(['/datasets/app-rankings', '/datasets/app-rankings/daily', '/datasets/rankings-daily'])(
    'has an example of %s with the keys of a real reply',
    async (path) => {
      const rows = z.object({
        data: z.array(z.record(z.string(), z.unknown())).min(1),
        meta: z.record(z.string(), z.unknown()),
      })
      const keysOf = (body: unknown) => {
        const { data, meta } = rows.parse(body)
        return [data[0] ?? {}, meta].map((each) =>
          Object.entries(each).map(([key, value]) => [key, typeof value]),
        )
      }
      const { paths } = documentSchema.parse(await served())
      const { content } = paths[`/api/v1${path}`]?.['get']?.responses['200'] ?? {}
      const { example } = z.object({ example: z.unknown() }).parse(content?.['application/json'])
      const { data } = rows.parse(await (await api.getAsNewAccount('/datasets/app-rankings')).json())
      const query = path.endsWith('/app-rankings/daily') ? `?app_id=${String(data[0]?.['app_id'])}` : ''
      const reply = await api.getAsNewAccount(`${path}${query}`)
      expect(keysOf(example)).toEqual(keysOf(await reply.json()))
    },
  )

  it('states every bound, so that requests valid by the schema are no 400', async () => {
    const { paths } = z
      .object({
        paths: z.record(
          z.string(),
          z.record(
            z.string(),
            z.object({ parameters: z.array(z.looseObject({ name: z.string() })).default([]) }),
          ),
        ),
      })
      .parse(await served())
    const schemaOf = (path: string, name: string) =>
      paths[`/api/v1${path}`]?.['get']?.parameters.find((each) => each.name === name)?.['schema']
    expect(schemaOf('/datasets/app-rankings', 'end_date')).toMatchObject({
      format: 'date',
      pattern: expect.stringMatching(/^\^\(202\[5-9\]/),
    })
    expect(schemaOf('/scim/groups', 'offset')).toMatchObject({
      type: 'integer',
      format: 'int64',
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
    })
    expect(schemaOf('/datasets/app-rankings/daily', 'app_id')).toMatchObject({
      items: { type: 'integer', format: 'int64', minimum: 0 },
      minItems: 1,
      maxItems: 10,
    })
  })
})
