/** The files of a snapshot as whoever downloads them meets them: whole, exact, described and safe to open. */
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readConfig } from '../../pipeline/config.ts'
import { runNightly } from '../../pipeline/run.ts'
import { SILENT } from '../support/in-process.ts'
import { TemporaryFolders, currentSnapshot, query, queryCurrent, writeRaw } from '../support/nightly.ts'

const AS_OF = '2026-01-07T02:00:00Z'
const TABLES = ['rankings', 'app_daily', 'apps']
const DATA_FILES = [
  'app-rankings.duckdb',
  'rankings.parquet',
  'rankings.csv',
  'app_daily.parquet',
  'apps.parquet',
  'apps.csv',
  'coverage.csv',
  'restatements.csv',
]
const TEXT_FILES = ['datapackage.json', 'croissant.json', 'CITATION.cff', 'README.md', 'LICENSE']

/** More than 2^53 and, in the second app, more than 2^63. */
const LARGE = '9007199254740993'
const HUGE = '9223372036854775809'

/** What a spreadsheet would run, and what CSV and Markdown have to quote. */
const NAMES = [
  '=HYPERLINK("http://example.com")',
  '+1',
  '-2+3',
  '@SUM(A1)',
  '\tTab',
  'Comma, "quote"\nand line',
  'Ünïcode 🚀 |',
]

const folders = new TemporaryFolders()
afterAll(() => folders.removeAll())

let folder = ''
let dataDir = ''

async function publishOnce(target: string): Promise<string> {
  const apps = NAMES.map((name, index) =>
    JSON.stringify({
      app_id: index + 1,
      app_name: name,
      visibility: 'public',
      subcategories: index === 0 ? ['cli-agent', 'legal'] : [],
      updated_at: '2025-01-01',
    }),
  )
  writeRaw(target, 'apps/apps.ndjson', apps.join('\n'))
  const rows = NAMES.map((_, index) => `2026-01-06T12:00:00Z,${index + 1},${[LARGE, HUGE][index] ?? 7},1`)
  writeRaw(
    target,
    'usage/date=2026-01-06/rows.csv',
    `ts,app_id,prompt_tokens,completion_tokens\n${rows.join('\n')}\n`,
  )
  writeRaw(target, 'ATTRIBUTION', 'Source: somebody, "quoted" | piped')
  const config = readConfig({
    DATA_DIR: target,
    PUBLISHER: 'R&D {Lab}',
    PUBLIC_URL: 'https://data.example/ranks/',
  })
  await runNightly(config, { now: () => new Date(AS_OF), progress: SILENT })
  return currentSnapshot(target)
}

beforeAll(async () => {
  dataDir = folders.make()
  folder = await publishOnce(dataDir)
})

function read(name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}

function sha256(name: string): string {
  return createHash('sha256')
    .update(readFileSync(join(folder, name)))
    .digest('hex')
}

/** Compares two queries row by row, whatever their column types. */
async function expectSameRows(file: string, published: string): Promise<void> {
  const rows = await query(join(folder, 'app-rankings.duckdb'), file)
  expect(rows.length).toBeGreaterThan(0)
  expect(rows).toEqual(await queryCurrent(dataDir, published))
}

describe('SHA256SUMS', () => {
  it('names every file of the bundle with its checksum', () => {
    const sums = read('SHA256SUMS')
      .trimEnd()
      .split('\n')
      .map((line) => line.split('  '))
    expect(sums.map(([, name]) => name)).toEqual([...DATA_FILES, ...TEXT_FILES])
    for (const [sum, name = ''] of sums) expect(sum).toBe(sha256(name))
    const others = readdirSync(folder).filter((name) => !sums.some(([, summed]) => summed === name))
    expect(others.toSorted()).toEqual(['SHA256SUMS', 'report.json'])
  })
})

describe('Parquet', () => {
  it.each(TABLES)('%s holds the rows of the table in their order', async (table) => {
    await expectSameRows(`FROM read_parquet('${join(folder, table)}.parquet')`, `FROM ${table}`)
  })

  it('keeps every digit: no column is floating', async () => {
    for (const table of TABLES) {
      const types = await queryCurrent(
        dataDir,
        `SELECT name, type, converted_type FROM parquet_schema('${join(folder, table)}.parquet')`,
      )
      for (const { type } of types) expect(['DOUBLE', 'FLOAT']).not.toContain(type)
    }
    const [largest] = await queryCurrent(
      dataDir,
      `SELECT max(total_tokens) AS tokens FROM read_parquet('${join(folder, 'rankings')}.parquet')`,
    )
    expect(largest).toEqual({ tokens: String(BigInt(HUGE) + 1n) })
  })

  it('says of itself what it is, also when it travels alone', async () => {
    const rows = await queryCurrent(
      dataDir,
      `SELECT decode(key) AS key, decode(value) AS value
       FROM parquet_kv_metadata('${join(folder, 'app_daily')}.parquet')`,
    )
    const entries = Object.fromEntries(rows.map(({ key, value }) => [key, value]))
    expect(entries).toMatchObject({
      license: 'CC-BY-4.0',
      as_of: AS_OF,
      snapshot: '20260107T020000Z',
      attribution: `Source: R&D {Lab}, as of ${AS_OF} (CC-BY-4.0)`,
      sources: 'Source: somebody, "quoted" | piped',
    })
  })

  it('and CSV are the same bytes when made again from the same input', async () => {
    const again = await publishOnce(folders.make())
    for (const name of DATA_FILES.slice(1)) {
      expect(readFileSync(join(again, name)).equals(readFileSync(join(folder, name))), name).toBe(true)
    }
  })
})

describe('CSV', () => {
  it('gives no cell to a spreadsheet as a formula', async () => {
    const cells = await queryCurrent(
      dataDir,
      `SELECT app_name FROM read_csv('${join(folder, 'apps')}.csv', all_varchar = true) ORDER BY app_id::INT`,
    )
    const expected = NAMES.map((name) => (/^[=+\-@\t]/.test(name) ? `'${name}` : name))
    expect(cells.map(({ app_name }) => app_name)).toEqual(expected)
  })

  it('holds the same figures as the tables', async () => {
    const columns = 'window_days, sort, category, subcategory, rank, app_id, total_requests, total_tokens'
    await expectSameRows(
      `SELECT ${columns} FROM read_csv('${join(folder, 'rankings')}.csv', all_varchar = true)`,
      `SELECT ${columns} FROM rankings`,
    )
    await expectSameRows(
      `FROM read_csv('${join(folder, 'coverage')}.csv', all_varchar = true)`,
      'FROM coverage',
    )
  })

  it('separates the tags of an app', () => {
    expect(read('apps.csv')).toContain('cli-agent|legal')
  })
})

const dataPackageSchema = z.object({
  $schema: z.literal('https://datapackage.org/profiles/2.0/datapackage.json'),
  name: z.literal('app-rankings'),
  id: z.url(),
  version: z.string(),
  created: z.literal(AS_OF),
  licenses: z.tuple([z.object({ name: z.literal('CC-BY-4.0'), path: z.url() })]),
  sources: z.tuple([z.object({ title: z.string() })]),
  resources: z.array(
    z.object({
      name: z.string().regex(/^[a-z0-9-]+$/),
      path: z.string(),
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
      expect(hash).toBe(`sha256:${sha256(path)}`)
      expect(bytes).toBe(readFileSync(join(folder, path)).length)
    }
  })

  it('names the columns as the files do, in their order', () => {
    for (const { path, schema } of descriptor().resources.filter((each) => each.path.endsWith('.csv'))) {
      const [header] = read(path).split('\n', 1)
      expect(schema?.fields.map(({ name }) => name).join(',')).toBe(header)
    }
  })

  it('gives the address of the snapshot under PUBLIC_URL', () => {
    expect(descriptor().id).toBe(
      'https://data.example/ranks/api/v1/datasets/app-rankings/snapshots/20260107T020000Z',
    )
  })
})

const reference = z.object({ '@id': z.string() })
const croissantSchema = z.object({
  '@context': z.record(z.string(), z.unknown()),
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
      encodingFormat: z.string(),
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
          references: reference.optional(),
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
    for (const file of distribution) expect(file.sha256).toBe(sha256(file['@id']))
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
      ...fields.flatMap((field) => field.references ?? []),
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
    expect(bibtex).toContain(String.raw`author       = {{R\&D Lab}}`)
    expect(bibtex.split('{').length).toBe(bibtex.split('}').length)
  })

  it('LICENSE names the licence, the line to print and the sources', () => {
    const text = read('LICENSE')
    expect(text).toContain('https://creativecommons.org/licenses/by/4.0/')
    expect(text).toContain(`Source: R&D {Lab}, as of ${AS_OF} (CC-BY-4.0)`)
    expect(text).toContain('Source: somebody, "quoted" | piped')
  })
})

it('PUBLIC_URL must be an address of the web', () => {
  expect(() => readConfig({ PUBLIC_URL: 'ftp://example.com' })).toThrow('PUBLIC_URL')
})

describe('the views of the DuckDB file', () => {
  it('latest_popular and latest_trending are the lists of the 30 days', async () => {
    const popular = await queryCurrent(dataDir, 'FROM latest_popular')
    expect(popular).toEqual(await queryCurrent(dataDir, "FROM popular('2025-12-08', '2026-01-06')"))
    expect(popular).toHaveLength(NAMES.length)
    const trending = await queryCurrent(dataDir, 'FROM latest_trending')
    expect(trending).toEqual(
      await queryCurrent(
        dataDir,
        "SELECT * EXCLUDE (excess_tokens) FROM trending('2025-12-08', '2026-01-06')",
      ),
    )
  })

  it('app_history adds names and sums to app_daily', async () => {
    const [row] = await queryCurrent(dataDir, 'FROM app_history WHERE app_id = 2')
    expect(row).toMatchObject({ day: '2026-01-06', app_name: '+1', total_tokens: String(BigInt(HUGE) + 1n) })
  })

  it('and tables, columns and macros are all explained by a comment', async () => {
    const silent = await queryCurrent(
      dataDir,
      `SELECT view_name AS name FROM duckdb_views() WHERE NOT internal AND comment IS NULL
       UNION ALL SELECT table_name FROM duckdb_tables() WHERE comment IS NULL
       UNION ALL SELECT c.table_name || '.' || c.column_name FROM duckdb_columns() AS c
         JOIN duckdb_tables() AS t ON t.table_oid = c.table_oid WHERE c.comment IS NULL
       UNION ALL SELECT function_name FROM duckdb_functions()
         WHERE function_type = 'table_macro' AND database_name = current_database() AND comment IS NULL`,
    )
    expect(silent).toEqual([])
  })
})
