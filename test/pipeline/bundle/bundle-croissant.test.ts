/** croissant.json describes the files of a snapshot in the words of Croissant 1.1. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  ADDRESS,
  AS_OF,
  ATTRIBUTION,
  DATA_FILES,
  DESCRIPTION,
  FIRST_DAY,
  LAST_DAY,
  PUBLISHER,
  SOURCES,
  explained,
  publishBundle,
  sha256,
} from '../../support/bundle.ts'
import { TemporaryFolders } from '../../support/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let folder = ''

beforeAll(async () => {
  folder = await publishBundle(folders.make())
})

function read(name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}

const reference = z.strictObject({ '@id': z.string() })
const croissantSchema = z.looseObject({
  '@context': z.looseObject({}),
  distribution: z.array(
    z.discriminatedUnion('@type', [
      z.strictObject({
        '@type': z.literal('cr:FileObject'),
        '@id': z.string(),
        name: z.string(),
        contentUrl: z.url(),
        contentSize: z.string(),
        encodingFormat: z.string(),
        sha256: z.string(),
      }),
      z.strictObject({
        '@type': z.literal('cr:FileSet'),
        '@id': z.string(),
        name: z.string(),
        encodingFormat: z.string(),
        includes: z.string(),
      }),
    ]),
  ),
  recordSet: z.array(
    z.strictObject({
      '@type': z.literal('cr:RecordSet'),
      '@id': z.string(),
      name: z.string(),
      description: z.string(),
      key: z.array(reference).optional(),
      field: z.array(
        z.strictObject({
          '@type': z.literal('cr:Field'),
          '@id': z.string(),
          name: z.string(),
          description: z.string(),
          dataType: z.string(),
          isArray: z.literal(true).optional(),
          arrayShape: z.literal('-1').optional(),
          source: z.strictObject({
            fileObject: reference.optional(),
            fileSet: reference.optional(),
            extract: z.strictObject({ column: z.string() }),
          }),
          references: z.strictObject({ field: reference }).optional(),
        }),
      ),
    }),
  ),
})

describe('croissant.json', () => {
  const document = () => croissantSchema.parse(JSON.parse(read('croissant.json')))

  it('has what Croissant 1.1 requires, and says whose the data is and which days it has', () => {
    const { '@context': _, distribution: __, recordSet: ___, ...about } = document()
    const publisher = { '@type': 'Organization', name: PUBLISHER, url: 'https://data.example/' }
    expect(about).toEqual({
      '@type': 'sc:Dataset',
      'dct:conformsTo': 'http://mlcommons.org/croissant/1.1',
      name: 'App rankings',
      description: expect.stringMatching(DESCRIPTION),
      url: 'https://data.example/',
      identifier: ADDRESS,
      license: 'https://creativecommons.org/licenses/by/4.0/',
      creator: publisher,
      publisher,
      creditText: ATTRIBUTION,
      citeAs: /```bibtex\n([^`]*)\n```/.exec(read('README.md'))?.[1],
      keywords: expect.arrayContaining(['rankings']),
      inLanguage: 'en',
      isAccessibleForFree: true,
      datePublished: AS_OF,
      temporalCoverage: `${FIRST_DAY}/${LAST_DAY}`,
      version: '1.0.0+20260107T020000Z',
      isBasedOn: SOURCES,
    })
  })

  it('has the whole context of Croissant 1.1', () => {
    const terms = Object.keys(document()['@context'])
    const later = [
      'containedIn',
      'data',
      'examples',
      'isLiveDataset',
      'jsonPath',
      'md5',
      'samplingRate',
      'transform',
    ]
    expect(terms).toEqual(
      expect.arrayContaining(['@language', '@vocab', 'sc', 'cr', 'dct', 'rai', 'prov', ...later]),
    )
    expect(document()['@context']['data']).toEqual({ '@id': 'cr:data', '@type': '@json' })
  })

  it('says of each of its terms that is not one of schema.org where it comes from', () => {
    const ours = { '@vocab': 'https://schema.org/', sc: 'https://schema.org/' }
    expect(document()['@context']).toMatchObject({ ...ours, cr: 'http://mlcommons.org/croissant/' })
    const terms = `arrayShape citeAs column dataType extract field fileObject fileSet includes isArray key recordSet references source`
    for (const term of terms.split(' ')) {
      expect(read('croissant.json')).toContain(`"${term}": `)
      expect(JSON.stringify(document()['@context'][term])).toContain(`"cr:${term}"`)
    }
  })

  it('names every data file with address, type, size and checksum', () => {
    // What mlcroissant knows how to read.
    const types = ['application/octet-stream', 'application/x-parquet', 'text/csv']
    const { distribution } = document()
    expect(distribution.filter((each) => each['@type'] === 'cr:FileObject')).toEqual(
      DATA_FILES.map((name) => ({
        '@type': 'cr:FileObject',
        '@id': name,
        name,
        contentUrl: `${ADDRESS}/${name}`,
        contentSize: `${readFileSync(join(folder, name)).length} B`,
        encodingFormat: types[['duckdb', 'parquet', 'csv'].indexOf(name.split('.')[1] ?? '')],
        sha256: sha256(join(folder, name)),
      })),
    )
  })

  it('names the files of the months together', () => {
    expect(document().distribution.filter((each) => each['@type'] === 'cr:FileSet')).toEqual(
      ['app_daily', 'model_daily'].map((table) => ({
        '@type': 'cr:FileSet',
        '@id': `${table}-months`,
        name: `${table}-months`,
        encodingFormat: 'application/x-parquet',
        includes: `${table}/*.parquet`,
      })),
    )
  })

  it('has each table as records, from Parquet where there is some, with its keys', () => {
    const records = document().recordSet.map(({ '@id': id, name, key, field }) => ({
      id,
      name,
      files: [...new Set(field.map(({ source }) => (source.fileObject ?? source.fileSet)?.['@id']))],
      key: key?.map((column) => column['@id']),
      toApps: field.filter(({ references }) => references !== undefined).map(({ name: column }) => column),
    }))
    const [none, appId] = [[], ['app_id']]
    expect(records.map((each) => [each.id, each.files, each.key, each.toApps])).toEqual([
      ['rankings', ['rankings.parquet'], undefined, appId],
      ['app_daily', ['app_daily-months'], ['app_daily/day', 'app_daily/app_id'], appId],
      ['model_daily', ['model_daily-months'], ['model_daily/day', 'model_daily/model_permaslug'], none],
      ['apps', ['apps.parquet'], ['apps/app_id'], none],
      ['coverage', ['coverage.csv'], ['coverage/day'], none],
      [
        'restatements',
        ['restatements.csv'],
        ['restatements/as_of', 'restatements/day', 'restatements/cause'],
        none,
      ],
    ])
    expect(records.map(({ name }) => name)).toEqual(records.map(({ id }) => id))
  })

  it('explains tables and columns as the DuckDB file does', async () => {
    for (const { '@id': id, description, field } of document().recordSet) {
      const { comment, comments } = await explained(folder, id)
      expect(description).toBe(comment)
      expect(field.map((each) => each.description)).toEqual(comments)
    }
  })

  it('tells where each column is, and its type', () => {
    const fields = document().recordSet.flatMap(({ '@id': id, field }) =>
      field.map((each) => ({ id, ...each })),
    )
    for (const { id, '@id': fieldId, name, source, references } of fields) {
      expect([fieldId, source.extract.column]).toEqual([`${id}/${name}`, name])
      if (references !== undefined) expect(references.field['@id']).toBe('apps/app_id')
    }
    const types = new Map(
      fields.map(({ '@id': id, dataType, isArray, arrayShape }) => [
        id,
        [dataType, ...(isArray ? [arrayShape] : [])],
      ]),
    )
    expect(types.get('restatements/as_of')).toEqual(['sc:DateTime'])
    expect(types.get('restatements/day')).toEqual(['sc:Date'])
    expect(types.get('rankings/total_tokens')).toEqual(['sc:Integer'])
    expect(types.get('apps/app_name')).toEqual(['sc:Text'])
    expect(types.get('apps/subcategories')).toEqual(['sc:Text', '-1'])
  })
})
