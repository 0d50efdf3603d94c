/**
 * CONTRACT 1 and 8: the files of a snapshot for whoever downloads them: data that is complete, exact and safe to open, and
 * its descriptions README.md, LICENSE and croissant.json.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { addDays } from '../../../pipeline/contract/calendar.ts'
import { filesBelow, makeFolder } from '../../support/folders.ts'
import { runAt } from '../../support/pipeline/in-process.ts'
import {
  currentSnapshot,
  deliver,
  query,
  queryCurrent,
  withApps,
  writeRaw,
} from '../../support/pipeline/nightly.ts'

// The values are hard to write into files: large numbers, and names that need quoting.

const FIRST_DAY = '2025-12-30'
const LAST_DAY = '2026-01-06'
const AS_OF = '2026-01-07T02:00:00Z'
/** Times of the snapshots, with the first day's prompt tokens in each. */
const NIGHTS = { '2025-12-31T02:00:00Z': 7, '2026-01-01T02:00:00Z': 8, [AS_OF]: 9 }
/** Special characters of TeX, YAML and Markdown. */
const PUBLISHER = `R&D {Lab} #1_%$ "x"`
const SMALL = ['apps', 'categories', 'coverage', 'restatements', 'meta']
const DATA_FILES = [
  'app-rankings.duckdb',
  'rankings.parquet',
  'rankings.csv',
  ...['app_daily', 'model_daily'].flatMap((table) =>
    ['2025-12', '2026-01'].map((month) => `${table}/month=${month}.parquet`),
  ),
  ...SMALL.flatMap((table) => [`${table}.parquet`, `${table}.csv`]),
]
const TEXT_FILES = ['README.md', 'LICENSE']

/** Above 2^53 and, in the second app, nearly 2^63. */
const LARGE = '9007199254740993'
const HUGE = '9023372036854775809'

/** A spreadsheet formula, and characters that CSV and Markdown must quote. */
const NAMES = [
  '=HYPERLINK("http://example.com")',
  '+1',
  '-2+3',
  '@SUM(A1)',
  '\tTab',
  '\n=1',
  '＝1',
  '＋1',
  '－1',
  '＠1',
  'Comma, "quote"\nand line',
  'Ünïcode 🚀 |',
]

/** Credit lines with the Markdown of a heading, a list and emphasis. */
const SOURCES = '# Source: somebody, "quoted" | piped\r\n- and *another*\n\n`third`'

const ADDRESS = 'https://data.example/api/v1/datasets/app-rankings/snapshots/20260107T020000Z'
const ATTRIBUTION = `Source: ${PUBLISHER}, as of ${AS_OF} (CC-BY-4.0)`

/** Publishes the snapshot, with a first day that was restated twice; returns its folder. */
async function publishBundle(dataDir: string): Promise<string> {
  const apps = NAMES.map((name, index) =>
    JSON.stringify({
      app_id: index + 1,
      app_name: name,
      visibility: 'public',
      subcategories: index === 0 ? ['cli-agent', 'legal'] : [],
      updated_at: '2025-01-01',
    }),
  )
  writeRaw(dataDir, 'apps/apps.ndjson', apps.join('\n'))
  const rows = NAMES.map((_, index) => `${index + 1},${[LARGE, HUGE][index] ?? 7},1`)
  deliver(dataDir, LAST_DAY, rows)
  deliver(dataDir, addDays(LAST_DAY, -1), ['3,1,0'])
  writeRaw(dataDir, 'ATTRIBUTION', SOURCES)
  for (const [asOf, tokens] of Object.entries(NIGHTS)) {
    deliver(dataDir, FIRST_DAY, [`${NAMES.length},${tokens},1`])
    await runAt(dataDir, asOf, { settings: { PUBLISHER, PUBLIC_URL: 'https://data.example/' } })
  }
  return currentSnapshot(dataDir)
}

const sha256 = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')

/** The Parquet files of each table. */
const FILES = {
  rankings: 'rankings.parquet',
  app_daily: 'app_daily/*.parquet',
  model_daily: 'model_daily/*.parquet',
  apps: 'apps.parquet',
} as const

let folder = ''
let dataDir = ''

beforeAll(async () => {
  dataDir = makeFolder()
  folder = await publishBundle(dataDir)
})

const read = (name: string) => readFileSync(join(folder, name), 'utf8')

/** Compares two queries row by row, ignoring column types. */
async function expectSameRows(file: string, published: string): Promise<void> {
  const rows = await query(join(folder, 'app-rankings.duckdb'), file)
  expect(rows.length).toBeGreaterThan(0)
  expect(rows).toEqual(await queryCurrent(dataDir, published))
}

it('SHA256SUMS names every file of the bundle with its checksum', () => {
  const sums = read('SHA256SUMS')
    .trimEnd()
    .split('\n')
    .map((line) => line.split('  '))
  expect(sums.map(([, name]) => name)).toEqual([...DATA_FILES, ...TEXT_FILES])
  for (const [sum, name = ''] of sums) expect(sum).toBe(sha256(join(folder, name)))
  const others = new Set(filesBelow(folder)).difference(new Set(sums.map(([, name]) => name)))
  expect([...others]).toEqual(['SHA256SUMS', 'croissant.json', 'record.json', 'report.json'])
})

describe('Parquet', () => {
  it.each(Object.entries(FILES))('%s holds the rows of the table in their order', async (table, files) => {
    await expectSameRows(`FROM read_parquet('${join(folder, files)}')`, `FROM ${table}`)
  })

  it('carries the licence and the attribution; monthly files, which several snapshots share, the licence alone', async () => {
    const texts = "SELECT DISTINCT decode(key) || ': ' || decode(value) AS text"
    const about = (file: string) =>
      queryCurrent(dataDir, `${texts} FROM parquet_kv_metadata('${join(folder, file)}')`)
    const licence = { text: 'license: CC-BY-4.0' }
    expect(await about(FILES.app_daily)).toEqual([licence])
    const rows = await about(FILES.rankings)
    expect(rows).toHaveLength(2)
    expect(rows).toEqual(expect.arrayContaining([licence, { text: `attribution: ${ATTRIBUTION}` }]))
  })

  it('has the same bytes when made again from the same input, and so does CSV', async () => {
    const again = await publishBundle(makeFolder())
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
    // A name is one line without control characters.
    const lines = NAMES.map((name) => name.replaceAll(/[\t\n]/g, ' ').trim())
    const expected = lines.map((name) => (/^[=+\-@＝＋－＠]/.test(name) ? `'${name}` : name))
    expect(cells.map(({ app_name }) => app_name)).toEqual(expected)
  })

  it('holds the same figures as the tables', async () => {
    const columns = 'window_days, sort, category, subcategory, rank, app_id, total_requests, total_tokens'
    await expectSameRows(
      `SELECT ${columns} FROM read_csv('${join(folder, 'rankings')}.csv', all_varchar = true)`,
      `SELECT ${columns} FROM rankings`,
    )
    for (const table of ['coverage', 'categories'])
      await expectSameRows(`FROM read_csv('${join(folder, table)}.csv', all_varchar = true)`, `FROM ${table}`)
  })

  it('has times in ISO 8601, and both figures of restated days', () => {
    const [first, second, third] = Object.keys(NIGHTS)
    expect(read('restatements.csv').split('\n').slice(1)).toEqual([
      `${second},${first},${FIRST_DAY},figures,1,1,1,8,9`,
      `${third},${second},${FIRST_DAY},figures,1,1,1,9,10`,
      '',
    ])
  })

  it('separates the tags of an app by |, and has an empty text for none, which DuckDB reads as null', async () => {
    expect(read('apps.csv')).toContain('cli-agent|legal')
    expect(read('apps.csv')).toContain('\n2,\'+1,""\n')
    const untagged = 'SELECT app_id, subcategories FROM'
    const csv = `${untagged} read_csv('${join(folder, 'apps.csv')}') WHERE app_id = 2`
    expect(await queryCurrent(dataDir, csv)).toEqual([{ app_id: '2', subcategories: null }])
    const parquet = `${untagged} '${join(folder, 'apps.parquet')}' WHERE app_id = 2`
    expect(await queryCurrent(dataDir, parquet)).toEqual([{ app_id: '2', subcategories: '[]' }])
  })
})

describe('the views of the DuckDB file', () => {
  it('latest_popular and latest_trending equal the 30-day lists', async () => {
    const popular = await queryCurrent(dataDir, 'FROM latest_popular')
    expect(popular).toEqual(await queryCurrent(dataDir, "FROM popular('2025-12-08', '2026-01-06')"))
    expect(popular).toHaveLength(NAMES.length)
    const trending = await queryCurrent(dataDir, 'FROM latest_trending')
    const list = "SELECT * EXCLUDE (excess_tokens) FROM trending('2025-12-08', '2026-01-06')"
    expect(trending).toEqual(await queryCurrent(dataDir, list))
  })

  it('app_history adds names and sums to app_daily', async () => {
    const [row] = await queryCurrent(dataDir, 'FROM app_history WHERE app_id = 2')
    expect(row).toMatchObject({ day: '2026-01-06', app_name: '+1', total_tokens: String(BigInt(HUGE) + 1n) })
  })
})

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
