/** datapackage.json describes the files of a snapshot in the words of Data Package 2. */
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

  it('calls CSV files tables in the words of both versions, and nothing else by those of the first', () => {
    const words = descriptor().resources.map(({ path, type, profile }) => [path, type, profile])
    expect(words).toEqual(
      DATA_FILES.map((path) => [
        path,
        path.endsWith('.duckdb') ? undefined : 'table',
        /\.csv(\.gz)?$/.test(path) ? 'tabular-data-resource' : undefined,
      ]),
    )
  })

  it('names the columns as the files do, in their order', () => {
    for (const { path, schema } of descriptor().resources.filter((each) => each.path.endsWith('.csv'))) {
      const [header] = read(path).split('\n', 1)
      expect(schema?.fields.map(({ name }) => name).join(',')).toBe(header)
    }
  })

  it('says whose the data is, what may be done with it, and which days it has', () => {
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

  it('says how each file is to be read', () => {
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

  it('tells the type of each column, and where there may be nothing', () => {
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

  it('tells the keys of each table, and which file of the apps they lead to', () => {
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

  it('explains tables and columns as the DuckDB file does', async () => {
    for (const { path, description, schema } of descriptor().resources.slice(1)) {
      const { comment, comments } = await explained(folder, path.split(/[/.]/)[0] ?? '')
      expect(description).toBe(comment)
      const own = schema?.fields.map((field) => field.description.replace(' Separated by "|".', ''))
      expect(own).toEqual(comments)
    }
    expect(read('datapackage.json').split('Separated by')).toHaveLength(2)
  })
})
