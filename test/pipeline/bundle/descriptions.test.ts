/** CONTRACT 1 and 8: the files that describe a snapshot: README.md, LICENSE and croissant.json. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../../support/folders.ts'
import {
  ADDRESS,
  AS_OF,
  ATTRIBUTION,
  DATA_FILES,
  FIRST_DAY,
  LAST_DAY,
  PUBLISHER,
  SOURCES,
  TEXT_FILES,
  publishBundle,
  sha256,
} from '../../support/pipeline/bundle.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import { currentSnapshot, deliver, query, withApps } from '../../support/pipeline/nightly.ts'

let folder = ''

beforeAll(async () => {
  folder = await publishBundle(makeFolder())
})

function read(name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}

/** The comments on a table and its columns in a snapshot's DuckDB file, in column order. */
async function explained(table: string) {
  const file = join(folder, 'app-rankings.duckdb')
  const where = `schema_name = 'main' AND table_name = '${table}'`
  const [about] = await query(file, `SELECT comment FROM duckdb_tables() WHERE ${where}`)
  const columns = await query(
    file,
    `SELECT column_name AS name, data_type AS type, comment FROM duckdb_columns() WHERE ${where} ORDER BY column_index`,
  )
  return { comment: about?.['comment'], columns }
}

const SMALL = ['apps', 'categories', 'coverage', 'restatements', 'meta']

describe('the texts', () => {
  it('README.md begins with the tables for the hub of Hugging Face, and the days and licence of the data', () => {
    const [head, about] = read('README.md').split('\n## ', 1).join('').split('\n# ')
    const config = (name: string, files: string) => `- config_name: ${name}\n  data_files: ${files}\n`
    expect(head).toBe(
      '---\npretty_name: App rankings\nlicense: cc-by-4.0\ntags: [tabular, timeseries]\nconfigs:\n' +
        config('rankings', 'rankings.parquet') +
        config('app_daily', 'app_daily/*.parquet') +
        config('model_daily', 'model_daily/*.parquet') +
        SMALL.map((name) => config(name, `${name}.parquet`)).join('') +
        '---\n',
    )
    expect(about).toContain(`App rankings, as of ${AS_OF}\n`)
    expect(about).toContain(`- Days: ${FIRST_DAY} to ${LAST_DAY} (UTC).`)
    expect(about).toContain(`- Snapshot: ${ADDRESS}\n`)
    expect(about).toContain('- Licence: [CC-BY-4.0](https://creativecommons.org/licenses/by/4.0/)\n')
  })

  it('README.md explains every file, and every column in the words of the DuckDB file', async () => {
    const text = read('README.md')
    for (const name of [
      ...DATA_FILES.filter((file) => !file.includes('/')),
      ...TEXT_FILES.filter((file) => file !== 'README.md'),
    ]) {
      expect(text).toContain(`\`${name}\``)
    }
    expect(text).toContain('| `app_daily/*.parquet` | Usage per day and app |\n')
    for (const table of ['rankings', 'app_daily', 'model_daily', ...SMALL]) {
      const { comment, columns } = await explained(table)
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
  author       = {{R\&D \{Lab\} \#1\_\%\$ "x"}},
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
    const without = withApps('One')
    deliver(without, LAST_DAY, ['1,1,1'])
    await runAt(without, AS_OF)
    const mentions = (at: string, name: string) =>
      /## Sources|these sources|isBasedOn/.test(readFileSync(join(at, name), 'utf8'))
    for (const name of ['README.md', 'LICENSE', 'croissant.json'])
      expect([mentions(folder, name), mentions(currentSnapshot(without), name)]).toEqual([true, false])
  })
})

/** Types of columns in Croissant; all others are integers. */
const TYPES: Readonly<Record<string, string>> = {
  DATE: 'sc:Date',
  'TIMESTAMP WITH TIME ZONE': 'sc:DateTime',
  VARCHAR: 'sc:Text',
  'VARCHAR[]': 'sc:Text',
}

// That mlcroissant loads every table is proved by test/system/.
describe('croissant.json', () => {
  const document = (): unknown => JSON.parse(read('croissant.json'))

  it('has the required properties of Croissant 1.1, with publisher and days', () => {
    const publisher = { '@type': 'Organization', name: PUBLISHER, url: 'https://data.example/' }
    expect(document()).toMatchObject({
      '@type': 'sc:Dataset',
      'dct:conformsTo': 'http://mlcommons.org/croissant/1.1',
      name: 'App rankings',
      identifier: ADDRESS,
      license: 'https://creativecommons.org/licenses/by/4.0/',
      creator: publisher,
      creditText: ATTRIBUTION,
      citeAs: /```bibtex\n([^`]*)\n```/.exec(read('README.md'))?.[1],
      datePublished: AS_OF,
      temporalCoverage: `${FIRST_DAY}/${LAST_DAY}`,
      isBasedOn: SOURCES,
    })
  })

  it('names the DuckDB file and every Parquet file by its path in the folder, with size and checksum', () => {
    const files = DATA_FILES.filter((name) => !name.endsWith('.csv'))
    expect(document()).toHaveProperty(
      'distribution',
      files.map((name) => ({
        '@type': 'cr:FileObject',
        '@id': name,
        name,
        contentUrl: name,
        contentSize: `${readFileSync(join(folder, name)).length} B`,
        encodingFormat: name.endsWith('.parquet') ? 'application/x-parquet' : 'application/octet-stream',
        sha256: sha256(join(folder, name)),
      })),
    )
  })

  it('has each table, and each month of a table by day, as records, in the words of the DuckDB file', async () => {
    const months = (table: string) => ['2025-12', '2026-01'].map((month) => `${table}/${month}`)
    const records = ['rankings', ...months('app_daily'), ...months('model_daily'), ...SMALL].map(
      async (id) => {
        const [table = '', month] = id.split('/')
        const file = month === undefined ? `${table}.parquet` : `${table}/month=${month}.parquet`
        const { comment, columns } = await explained(table)
        const field = columns.map((column) => ({
          '@id': `${id}/${column['name']}`,
          description: column['comment'],
          dataType: TYPES[String(column['type'])] ?? 'sc:Integer',
          source: { fileObject: { '@id': file }, extract: { column: column['name'] } },
        }))
        return { '@id': id, description: comment, field }
      },
    )
    expect(document()).toMatchObject({ recordSet: await Promise.all(records) })
  })
})
