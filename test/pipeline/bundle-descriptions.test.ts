/** The files of a snapshot that describe it: for programs, for catalogues, and for people. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { AS_OF, DATA_FILES, publishBundle, sha256, SOURCES, TEXT_FILES } from '../support/bundle.ts'
import { query, TemporaryFolders } from '../support/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let folder = ''

beforeAll(async () => {
  folder = await publishBundle(folders.make())
})

function read(name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}

const dataPackageSchema = z.object({
  $schema: z.literal('https://datapackage.org/profiles/2.0/datapackage.json'),
  name: z.literal('app-rankings'),
  id: z.url(),
  version: z.string(),
  created: z.literal(AS_OF),
  licenses: z.tuple([z.object({ name: z.literal('CC-BY-4.0'), path: z.url() })]),
  sources: z.tuple([z.object({ title: z.literal(SOURCES) })]),
  resources: z.array(
    z.object({
      name: z.string().regex(/^[a-z0-9-]+$/),
      path: z.string(),
      type: z.string().optional(),
      profile: z.string().optional(),
      mediatype: z.string(),
      bytes: z.int().positive(),
      hash: z.string(),
      schema: z
        .object({
          fields: z.array(
            z.object({
              name: z.string(),
              type: z.enum(['string', 'integer', 'date', 'datetime', 'array']),
              description: z.string().min(1),
            }),
          ),
          primaryKey: z.array(z.string()).optional(),
        })
        .optional(),
    }),
  ),
})

describe('datapackage.json', () => {
  const descriptor = () => dataPackageSchema.parse(JSON.parse(read('datapackage.json')))

  it('describes every data file, with size and checksum', () => {
    const { resources } = descriptor()
    expect(resources.map(({ path }) => path)).toEqual(DATA_FILES)
    expect(new Set(resources.map(({ name }) => name)).size).toBe(DATA_FILES.length)
    for (const { path, bytes, hash } of resources) {
      expect(hash).toBe(`sha256:${sha256(join(folder, path))}`)
      expect(bytes).toBe(readFileSync(join(folder, path)).length)
    }
  })

  it('calls CSV files tables in the words of both versions, and nothing else by those of the first', () => {
    const words = descriptor().resources.map(({ path, type, profile }) => [path, type, profile])
    expect(words).toEqual(
      DATA_FILES.map((path) => [
        path,
        path.endsWith('.duckdb') ? undefined : 'table',
        path.endsWith('.csv') ? 'tabular-data-resource' : undefined,
      ]),
    )
  })

  it('names the columns as the files do, in their order', () => {
    for (const { path, schema } of descriptor().resources.filter((each) => each.path.endsWith('.csv'))) {
      const [header] = read(path).split('\n', 1)
      expect(schema?.fields.map(({ name }) => name).join(',')).toBe(header)
    }
  })

  it('gives the address of the snapshot under PUBLIC_URL', () => {
    expect(descriptor().id).toBe(
      'https://data.example/api/v1/datasets/app-rankings/snapshots/20260107T020000Z',
    )
  })
})

const reference = z.object({ '@id': z.string() })
const croissantSchema = z.object({
  '@context': z.looseObject({
    '@vocab': z.literal('https://schema.org/'),
    sc: z.literal('https://schema.org/'),
  }),
  '@type': z.literal('sc:Dataset'),
  'dct:conformsTo': z.literal('http://mlcommons.org/croissant/1.1'),
  name: z.string().min(1),
  description: z.string().min(1),
  license: z.url(),
  url: z.url(),
  creator: z.object({ '@type': z.literal('Organization'), name: z.literal('R&D {Lab}') }),
  datePublished: z.literal(AS_OF),
  distribution: z.array(
    z.object({
      '@type': z.literal('cr:FileObject'),
      '@id': z.string(),
      contentUrl: z.url(),
      // What mlcroissant knows how to read.
      encodingFormat: z.enum(['application/x-parquet', 'text/csv', 'application/octet-stream']),
      sha256: z.string(),
    }),
  ),
  recordSet: z.array(
    z.object({
      '@type': z.literal('cr:RecordSet'),
      '@id': z.string(),
      key: z.array(reference).optional(),
      field: z.array(
        z.object({
          '@type': z.literal('cr:Field'),
          '@id': z.string(),
          dataType: z.enum(['sc:Integer', 'sc:Text', 'sc:Date', 'sc:DateTime']),
          source: z.object({ fileObject: reference, extract: z.object({ column: z.string() }) }),
          references: z.object({ field: reference }).optional(),
        }),
      ),
    }),
  ),
})

describe('croissant.json', () => {
  const document = () => croissantSchema.parse(JSON.parse(read('croissant.json')))

  it('has what Croissant 1.1 requires, and names every data file with its checksum', () => {
    const { distribution } = document()
    expect(distribution.map((file) => file['@id'])).toEqual(DATA_FILES)
    for (const file of distribution) expect(file.sha256).toBe(sha256(join(folder, file['@id'])))
  })

  it('refers only to what it holds', () => {
    const { distribution, recordSet } = document()
    const fields = recordSet.flatMap(({ field }) => field)
    const files = new Set(distribution.map((file) => file['@id']))
    const fieldIds = new Set(fields.map((field) => field['@id']))
    expect(fieldIds.size).toBe(fields.length)
    for (const { source } of fields) expect(files).toContain(source.fileObject['@id'])
    const references = [
      ...recordSet.flatMap(({ key }) => key ?? []),
      ...fields.flatMap(({ references: to }) => to?.field ?? []),
    ]
    for (const each of references) expect(fieldIds).toContain(each['@id'])
  })
})

describe('the texts', () => {
  it('CITATION.cff has every text as a JSON string, which is YAML too', () => {
    const lines = read('CITATION.cff').trimEnd().split('\n')
    expect(lines[0]).toBe('cff-version: 1.2.0')
    for (const line of lines) {
      const quoted = /"(.*)"$/.exec(line)?.[0]
      if (quoted !== undefined) expect(() => z.string().parse(JSON.parse(quoted))).not.toThrow()
    }
    expect(lines).toContain('version: "1.0.0+20260107T020000Z"')
  })

  it('README.md explains every file and column; its BibTeX is balanced', () => {
    const text = read('README.md')
    for (const name of [...DATA_FILES, ...TEXT_FILES.filter((file) => file !== 'README.md')]) {
      expect(text).toContain(`\`${name}\``)
    }
    expect(text).toContain('| `total_tokens` | DECIMAL(38,0) |')
    const bibtex = /```bibtex\n([^`]*)```/.exec(text)?.[1] ?? ''
    expect(bibtex).toContain(String.raw`author       = {{R\&D \textbraceleft{}Lab\textbraceright{}}}`)
    expect(bibtex.split('{').length).toBe(bibtex.split('}').length)
  })

  it('README.md shows queries that the file answers', async () => {
    const [, queries = ''] = /```sql\n([^`]*)```/.exec(read('README.md')) ?? []
    expect(queries.trimEnd().split('\n')).toHaveLength(2)
    for (const sql of queries.trimEnd().split('\n')) {
      await expect(
        query(join(folder, 'app-rankings.duckdb'), sql.replace(/;$/, '')),
        sql,
      ).resolves.toBeDefined()
    }
  })

  it('LICENSE names the licence', () => {
    const text = read('LICENSE')
    expect(text).toContain('https://creativecommons.org/licenses/by/4.0/')
  })

  it.each(['README.md', 'LICENSE'])('%s has the lines to print word for word, in a block of code', (name) => {
    const lines = [`Source: R&D {Lab}, as of ${AS_OF} (CC-BY-4.0)`, ...SOURCES.split(/\r?\n/)]
    const indented = read(name)
      .split('\n')
      .filter((line) => line.startsWith('    '))
    expect(indented).toEqual(lines.map((line) => `    ${line}`))
  })
})
