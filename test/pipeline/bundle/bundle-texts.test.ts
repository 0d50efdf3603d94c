/** The files of a snapshot that people read: README.md, LICENSE and CITATION.cff. */
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
  TEXT_FILES,
  explained,
  publishBundle,
} from '../../support/bundle.ts'
import { query, TemporaryFolders } from '../../support/nightly.ts'

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
  it('CITATION.cff names the snapshot, every text as a JSON string, which is YAML too', () => {
    const [, abstract = ''] = /^abstract: (".*")$/m.exec(read('CITATION.cff')) ?? []
    expect(JSON.parse(abstract)).toMatch(DESCRIPTION)
    expect(read('CITATION.cff').replace(abstract, '…')).toBe(`cff-version: 1.2.0
type: dataset
message: "Please cite the snapshot you used, with its time."
title: "App rankings, as of ${AS_OF}"
abstract: …
authors:
  - name: ${JSON.stringify(PUBLISHER)}
license: CC-BY-4.0
version: "1.0.0+20260107T020000Z"
date-released: "2026-01-07"
url: "${ADDRESS}"
identifiers:
  - type: url
    value: "https://data.example/"
    description: "The home page of the dataset, with the newest snapshot"
keywords:
  - "large language models"
  - "AI apps"
  - "token usage"
  - "rankings"
`)
  })

  it('README.md begins with what the data is, which days it has, and under which licence', () => {
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

  it('README.md explains every file, and every column as the DuckDB file does', async () => {
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

  it('README.md cites the snapshot in BibTeX, with nothing that TeX takes for its own', () => {
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

  it('README.md shows queries of the last seven days that the file answers', async () => {
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

  it('LICENSE names the licence and the address of its text, and what to keep in mind', () => {
    const text = read('LICENSE')
    expect(text).toContain(
      'Creative Commons Attribution 4.0 International\nPublic License (SPDX: CC-BY-4.0).',
    )
    expect(text).toContain(' https://creativecommons.org/licenses/by/4.0/\n')
    expect(text).toContain('without any warranty. Token counts come from')
  })

  it.each(['README.md', 'LICENSE'])('%s has the lines to print word for word, in a block of code', (name) => {
    const lines = [ATTRIBUTION, ...SOURCES.split(/\r?\n/)]
    const indented = read(name)
      .split('\n')
      .filter((line) => line.startsWith('    '))
    expect(indented).toEqual(lines.map((line) => `    ${line}`))
  })

  it('of data without sources speak of none', async () => {
    const without = await publishBundle(folders.make(), '')
    const texts = ['README.md', 'LICENSE', 'datapackage.json', 'croissant.json']
    const told = (at: string) =>
      texts.map((name) => /\bsources|isBasedOn/i.test(readFileSync(join(at, name), 'utf8')))
    expect([told(folder), told(without)]).toEqual([texts.map(() => true), texts.map(() => false)])
  })
})
