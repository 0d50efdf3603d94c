/** The files that describe a snapshot: README.md, LICENSE, CITATION.cff, datapackage.json and croissant.json. */
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
  NAMES,
  PUBLISHER,
  SOURCES,
  TEXT_FILES,
  explained,
  publishBundle,
  sha256,
} from '../../support/pipeline/bundle.ts'
import { query, TemporaryFolders } from '../../support/pipeline/nightly.ts'

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let folder = ''

beforeAll(async () => {
  folder = await publishBundle(folders.make())
})

function read(name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}

describe('the texts', () => {
  it('CITATION.cff has only the address of the snapshot, for converters, and every text as a JSON string, which is valid YAML', () => {
    const [, abstract = ''] = /^abstract: (".*")$/m.exec(read('CITATION.cff')) ?? []
    expect(JSON.parse(abstract)).toMatch(DESCRIPTION)
    expect(read('CITATION.cff').replace(abstract, '…')).toBe(`cff-version: 1.2.0
type: dataset
message: "Please cite the snapshot you used, with its time."
title: "App rankings, as of ${AS_OF}"
abstract: …
authors:
  - name: ${JSON.stringify(PUBLISHER)}
    website: "https://data.example/"
license: CC-BY-4.0
version: "1.0.0+20260107T020000Z"
date-released: "2026-01-07"
url: "${ADDRESS}"
keywords:
  - "large language models"
  - "AI apps"
  - "token usage"
  - "rankings"
`)
  })

  it('README.md begins with the subject, the days and the licence of the data', () => {
    const { description } = z.object({ description: z.string() }).parse(JSON.parse(read('datapackage.json')))
    const [summary, comparability] = description.split(/(?<=rankings\.) /)
    expect(read('README.md').split('\n## ', 1)[0]).toBe(`# App rankings, as of ${AS_OF}

${summary}

- Days: ${FIRST_DAY} to ${LAST_DAY} (UTC). A later snapshot may restate them; this one never changes.
- Snapshot: ${ADDRESS}
- Licence: [CC-BY-4.0](https://creativecommons.org/licenses/by/4.0/)
- To be kept in mind: ${comparability}
`)
  })

  it('README.md explains every file, and every column in the words of the DuckDB file', async () => {
    const text = read('README.md')
    for (const name of [
      ...DATA_FILES.filter((file) => !file.includes('/')),
      ...TEXT_FILES.filter((file) => file !== 'README.md'),
    ]) {
      expect(text).toContain(`\`${name}\``)
    }
    expect(text).toContain(
      '| `app_daily/month=*.parquet`, `app_daily/month=*.csv.gz` | Usage per day and app |\n',
    )
    for (const table of ['rankings', 'app_daily', 'model_daily', 'apps', 'coverage', 'restatements']) {
      const { comment, columns } = await explained(folder, table)
      const rows = columns.map(
        (column) => `| \`${column['name']}\` | ${column['type']} | ${column['comment']} |`,
      )
      const head = ['| column | type | meaning |', '| --- | --- | --- |']
      expect(text).toContain([`### ${table}`, '', comment, '', ...head, ...rows, ''].join('\n'))
    }
  })

  it('README.md cites the snapshot in BibTeX, with special characters of TeX escaped', () => {
    expect(/```bibtex\n([^`]*)```/.exec(read('README.md'))?.[1])
      .toBe(String.raw`@misc{app_rankings_20260107T020000Z,
  title        = {{App rankings}},
  author       = {{R\&D \textbraceleft{}Lab\textbraceright{} \textbackslash{}\textasciicircum{}\textasciitilde{} \#1\_\%\$ "x"}},
  year         = {2026},
  howpublished = {\url{${ADDRESS}}},
  note         = {As of ${AS_OF}, CC-BY-4.0}
}
`)
  })

  it('README.md shows queries of the last seven days that work on the file', async () => {
    const [, text = ''] = /```sql\n([^`]*)```/.exec(read('README.md')) ?? []
    const queries = text.trimEnd().split('\n')
    expect(queries).toEqual([
      "FROM popular('2025-12-31', '2026-01-06');",
      "FROM trending('2025-12-31', '2026-01-06', category := 'coding') LIMIT 20;",
      "FROM popular_by_requests('2025-12-31', '2026-01-06');",
    ])
    for (const sql of queries) {
      const rows = await query(join(folder, 'app-rankings.duckdb'), sql.replace(/;$/, ''))
      expect(rows.length, sql).toBeGreaterThan(0)
    }
  })

  it('LICENSE states the licence, the address of its text, and the comparability of token counts', () => {
    const text = read('LICENSE')
    expect(text).toContain(
      'Creative Commons Attribution 4.0 International\nPublic License (SPDX: CC-BY-4.0).',
    )
    expect(text).toContain(' https://creativecommons.org/licenses/by/4.0/\n')
    expect(text).toContain('without any warranty. Token counts come from')
  })

  it.each(['README.md', 'LICENSE'])('%s has the attribution lines verbatim, in a code block', (name) => {
    const lines = [ATTRIBUTION, ...SOURCES.split(/\r?\n/)]
    const indented = read(name)
      .split('\n')
      .filter((line) => line.startsWith('    '))
    expect(indented).toEqual(lines.map((line) => `    ${line}`))
  })

  it('do not mention sources if the data has none', async () => {
    const without = await publishBundle(folders.make(), '')
    const texts = ['README.md', 'LICENSE', 'datapackage.json', 'croissant.json']
    const mentions = (at: string) =>
      texts.map((name) => /\bsources|isBasedOn/i.test(readFileSync(join(at, name), 'utf8')))
    expect([mentions(folder), mentions(without)]).toEqual([texts.map(() => true), texts.map(() => false)])
  })
})

const dataPackageSchema = z.looseObject({
  resources: z.array(
    z.looseObject({
      name: z.string().regex(/^[a-z0-9-]+$/),
      path: z.string(),
      title: z.string().optional(),
      description: z.string().optional(),
      type: z.string().optional(),
      profile: z.string().optional(),
      bytes: z.int().positive(),
      hash: z.string(),
      rows: z.int().optional(),
      schema: z
        .strictObject({
          fields: z.array(
            z.strictObject({
              name: z.string(),
              type: z.string(),
              description: z.string(),
              constraints: z.strictObject({ required: z.literal(true) }).optional(),
            }),
          ),
          missingValues: z.tuple([z.literal('')]),
          primaryKey: z.array(z.string()).optional(),
          foreignKeys: z.array(z.unknown()).optional(),
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

  it('declares CSV files as tables for both versions, and no other file for version 1', () => {
    const words = descriptor().resources.map(({ path, type, profile }) => [path, type, profile])
    expect(words).toEqual(
      DATA_FILES.map((path) => [
        path,
        path.endsWith('.duckdb') ? undefined : 'table',
        /\.csv(\.gz)?$/.test(path) ? 'tabular-data-resource' : undefined,
      ]),
    )
  })

  it('lists the columns of the files in their order', () => {
    for (const { path, schema } of descriptor().resources.filter((each) => each.path.endsWith('.csv'))) {
      const [header] = read(path).split('\n', 1)
      expect(schema?.fields.map(({ name }) => name).join(',')).toBe(header)
    }
  })

  it('states publisher, licence and days of the data', () => {
    const { resources: _, ...about } = descriptor()
    expect(about).toEqual({
      $schema: 'https://datapackage.org/profiles/2.0/datapackage.json',
      name: 'app-rankings',
      id: ADDRESS,
      title: 'App rankings',
      description: expect.stringMatching(DESCRIPTION),
      homepage: 'https://data.example/',
      version: '1.0.0+20260107T020000Z',
      created: AS_OF,
      keywords: expect.arrayContaining(['rankings']),
      licenses: [
        {
          name: 'CC-BY-4.0',
          path: 'https://creativecommons.org/licenses/by/4.0/',
          title: 'Creative Commons Attribution 4.0',
        },
      ],
      contributors: [{ title: PUBLISHER, roles: ['publisher'] }],
      sources: [{ title: SOURCES }],
      snapshot: {
        id: '20260107T020000Z',
        as_of: AS_OF,
        first_day: FIRST_DAY,
        data_through: LAST_DAY,
        schema: 'v1',
        days_restated: 1,
        publisher: PUBLISHER,
        attribution: ATTRIBUTION,
        total_requests: expect.stringMatching(/^\d+$/),
        total_tokens: expect.stringMatching(/^\d+$/),
      },
    })
  })

  it('states how to read each file', () => {
    const resources = new Map(descriptor().resources.map((resource) => [resource.path, resource]))
    expect(resources.get('app-rankings.duckdb')).toEqual({
      name: 'app-rankings-duckdb',
      path: 'app-rankings.duckdb',
      format: 'duckdb',
      mediatype: 'application/octet-stream',
      bytes: expect.any(Number),
      hash: expect.any(String),
    })
    expect(resources.get('apps.csv')).toMatchObject({
      name: 'apps-csv',
      title: 'Apps',
      format: 'csv',
      mediatype: 'text/csv',
      encoding: 'utf-8',
      dialect: { lineTerminator: '\n' },
      rows: NAMES.length,
    })
    expect(resources.get('app_daily/month=2026-01.parquet')).toMatchObject({
      name: 'app-daily-2026-01-parquet',
      title: 'Usage per day and app, 2026-01',
      format: 'parquet',
      mediatype: 'application/vnd.apache.parquet',
      rows: NAMES.length + 1,
      fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(resources.get('app_daily/month=2026-01.parquet')).not.toHaveProperty('dialect')
    expect(resources.get('app_daily/month=2026-01.csv.gz')).toMatchObject({
      name: 'app-daily-2026-01-csv',
      format: 'csv',
      compression: 'gz',
      mediatype: 'application/gzip',
      encoding: 'utf-8',
    })
  })

  it('states the type of each column, and whether it may be empty', () => {
    const columns = Object.fromEntries(
      descriptor().resources.map(({ path, schema }) => [
        path,
        schema?.fields.map(({ name, type, constraints }) => `${name} ${type}${constraints ? '' : '?'}`),
      ]),
    )
    expect(columns['rankings.csv']).toEqual([
      'window_days integer',
      'start_date date',
      'end_date date',
      'sort string',
      'category string?',
      'subcategory string?',
      'rank integer',
      'app_id integer',
      'app_name string',
      'total_requests integer',
      'total_tokens integer',
    ])
    expect(columns['apps.csv']).toEqual(['app_id integer', 'app_name string', 'subcategories string?'])
    expect(columns['apps.parquet']).toEqual(['app_id integer', 'app_name string', 'subcategories array'])
    expect(columns['restatements.csv']?.slice(0, 3)).toEqual([
      'as_of datetime',
      'previous_as_of datetime',
      'day date',
    ])
  })

  it('states the keys of each table, and the file of apps that they refer to', () => {
    const toApps = (resource: string) => [{ fields: ['app_id'], reference: { resource, fields: ['app_id'] } }]
    const keys = descriptor().resources.map(({ path, schema }) => [
      path,
      schema?.primaryKey,
      schema?.foreignKeys,
    ])
    expect(keys).toEqual([
      ['app-rankings.duckdb', undefined, undefined],
      ['rankings.parquet', undefined, toApps('apps-parquet')],
      ['rankings.csv', undefined, toApps('apps-csv')],
      ['app_daily/month=2025-12.parquet', ['day', 'app_id'], toApps('apps-parquet')],
      ['app_daily/month=2026-01.parquet', ['day', 'app_id'], toApps('apps-parquet')],
      ['app_daily/month=2025-12.csv.gz', ['day', 'app_id'], toApps('apps-csv')],
      ['app_daily/month=2026-01.csv.gz', ['day', 'app_id'], toApps('apps-csv')],
      ['model_daily/month=2025-12.parquet', ['day', 'model_permaslug'], undefined],
      ['model_daily/month=2026-01.parquet', ['day', 'model_permaslug'], undefined],
      ['model_daily/month=2025-12.csv.gz', ['day', 'model_permaslug'], undefined],
      ['model_daily/month=2026-01.csv.gz', ['day', 'model_permaslug'], undefined],
      ['apps.parquet', ['app_id'], undefined],
      ['apps.csv', ['app_id'], undefined],
      ['coverage.csv', ['day'], undefined],
      ['restatements.csv', ['as_of', 'day', 'cause'], undefined],
    ])
  })

  it('explains tables and columns in the words of the DuckDB file', async () => {
    for (const { path, description, schema } of descriptor().resources.slice(1)) {
      const { comment, comments } = await explained(folder, path.split(/[/.]/)[0] ?? '')
      expect(description).toBe(comment)
      const own = schema?.fields.map((field) => field.description.replace(' Separated by "|".', ''))
      expect(own).toEqual(comments)
    }
    expect(read('datapackage.json').split('Separated by')).toHaveLength(2)
  })
})

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

  it('has the required properties of Croissant 1.1, with publisher and days', () => {
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

  it('declares the origin of every term outside schema.org', () => {
    const ours = { '@vocab': 'https://schema.org/', sc: 'https://schema.org/' }
    expect(document()['@context']).toMatchObject({ ...ours, cr: 'http://mlcommons.org/croissant/' })
    const terms = `arrayShape citeAs column dataType extract field fileObject fileSet includes isArray key recordSet references source`
    for (const term of terms.split(' ')) {
      expect(read('croissant.json')).toContain(`"${term}": `)
      expect(JSON.stringify(document()['@context'][term])).toContain(`"cr:${term}"`)
    }
  })

  it('names every data file with address, type, size and checksum', () => {
    // The types that mlcroissant can read.
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

  it('groups the monthly files into one file set', () => {
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

  it('has each table as records with its keys, from Parquet if available', () => {
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

  it('explains tables and columns in the words of the DuckDB file', async () => {
    for (const { '@id': id, description, field } of document().recordSet) {
      const { comment, comments } = await explained(folder, id)
      expect(description).toBe(comment)
      expect(field.map((each) => each.description)).toEqual(comments)
    }
  })

  it('states the source and type of each column', () => {
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
