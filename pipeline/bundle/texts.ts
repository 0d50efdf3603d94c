/** The texts of a snapshot: README.md and LICENSE for people, SHA256SUMS, croissant.json and the record for programs. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { addDays } from '../contract/calendar.ts'
import { SUMMARY } from '../contract/dataset.ts'
import { CROISSANT_FILE, SNAPSHOT_FILE } from '../contract/files.ts'
import {
  RECORD_FILE,
  SUMS_FILE,
  snapshotRecordSchema,
  type PublishedFile,
} from '../contract/snapshot-record.ts'
import { measureFile } from '../snapshot/verify.ts'
import { croissant } from './croissant.ts'
import { TITLE, bibtex, fileNames, type DescribedTable, type Description } from './description.ts'
import type { TableFile } from './tables.ts'

/**
 * Writes the descriptions of the tables and of the closed DuckDB file, the checksums, and the snapshot's record last; returns
 * all files that the checksums list.
 */
export function writeTexts(
  description: Description,
  tables: readonly TableFile[],
  folder: string,
): readonly PublishedFile[] {
  const write = (name: string, text: string): PublishedFile => {
    writeFileSync(join(folder, name), text)
    return measureFile(folder, name)
  }
  const database = measureFile(folder, SNAPSHOT_FILE)
  const readme = write('README.md', readmeText(description))
  const files = [database, ...tables, readme, write('LICENSE', licenceText(description))]
  // In the form of `sha256sum -c`.
  const sums = write(SUMS_FILE, files.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(''))
  write(CROISSANT_FILE, jsonText(croissant(description, database, tables)))
  // The schema leaves out what the record does not keep.
  const facts = { id: description.snapshot, ...description.meta, files: [...files, sums] }
  write(RECORD_FILE, jsonText(snapshotRecordSchema.parse(facts)))
  return files
}

function jsonText(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

/** The licence text and the attribution line. */
function licenceText({ meta }: Description): string {
  const sources =
    meta.sources === null
      ? ''
      : `\nThe data was made from these sources; name them as well:\n\n${indented(meta.sources)}\n`
  return `${TITLE}, as of ${meta.as_of}

This dataset is licensed under the Creative Commons Attribution 4.0 International
Public License (SPDX: ${meta.licence}). The text of the licence: ${meta.licence_url}

You may share and adapt it, for any purpose, when you give credit. This line does:

    ${meta.attribution}
${sources}
The data comes as it is, without any warranty. ${meta.comparability}
`
}

/** The bundle's README, which must be clear to a reader who has nothing else. */
function readmeText(description: Description): string {
  const { meta } = description
  // The queries shown rank the last seven days.
  const window = `'${addDays(meta.data_through, -6)}', '${meta.data_through}'`
  return `${hubHead(description)}
# ${TITLE}, as of ${meta.as_of}

${SUMMARY}

- Days: ${meta.first_day} to ${meta.data_through} (UTC). A later snapshot may restate them; this one never changes.
- Snapshot: ${description.address}
- Licence: [${meta.licence}](${meta.licence_url})
- To be kept in mind: ${meta.comparability}

## Files

| file | what |
| --- | --- |
| \`app-rankings.duckdb\` | everything below in one DuckDB file (1.1 or newer) |
${description.tables.map(filesRow).join('\n')}
| \`croissant.json\` | description for machines, Croissant 1.1; the months are a record set each |
| \`LICENSE\` | the licence |
| \`SHA256SUMS\` | checksums: \`sha256sum -c SHA256SUMS\` |

The tables by day have a file per month; \`FROM 'app_daily/*.parquet'\` in DuckDB, \`pandas.read_parquet('app_daily')\` and
\`pyarrow.parquet.read_table('app_daily')\` read them all. While the rows of a month stay the same, its file has the same
bytes in every snapshot: fetch it once, and compare checksums.

In CSV an empty cell is null, except in a column of lists: there it is an empty list (written \`""\`, which DuckDB reads as
null too). Items of a list are separated by \`|\`. A text that a spreadsheet would read as a formula has an apostrophe
before it. Parquet has the lists and texts unchanged.

## Querying the DuckDB file

Three macros rank the apps of any window, both days inclusive; \`category\` and \`subcategory\` are optional. The API
clamps and rejects dates in the same way:

\`\`\`sql
FROM popular(${window});
FROM trending(${window}, category := 'coding') LIMIT 20;
FROM popular_by_requests(${window});
\`\`\`

A fourth one ranks the models of each day, the 50 largest and \`other\`:

\`\`\`sql
FROM daily_models(${window});
\`\`\`

If the file is attached to another database, make it the current one first (\`USE\`). Its tables, columns and macros
carry comments: \`FROM duckdb_columns()\`.

## Tables

${description.tables.map(tableSection).join('\n\n')}

## How to cite

${indented(meta.attribution)}

\`\`\`bibtex
${bibtex(description)}
\`\`\`
${meta.sources === null ? '' : `\n## Sources\n\n${indented(meta.sources)}\n`}`
}

/** The YAML by which the hub of Hugging Face, and load_dataset on this folder, find the tables. */
function hubHead({ meta, tables }: Description): string {
  // The hub refuses a table without rows.
  const configs = tables
    .filter(({ rows }) => rows > 0)
    .map((table) => `- config_name: ${table.name}\n  data_files: ${fileNames(table)[0]}`)
  return `---
pretty_name: ${TITLE}
license: ${meta.licence.toLowerCase()}
tags: [tabular, timeseries]
configs:
${configs.join('\n')}
---
`
}

function filesRow(table: DescribedTable): string {
  const names = fileNames(table)
    .map((name) => `\`${name}\``)
    .join(', ')
  return `| ${names} | ${table.title} |`
}

function tableSection({ name, description, fields }: DescribedTable): string {
  const rows = fields.map((field) => `| \`${field.name}\` | ${field.type} | ${field.description} |`)
  const head = ['| column | type | meaning |', '| --- | --- | --- |']
  return [`### ${name}`, '', description, '', ...head, ...rows].join('\n')
}

/** A Markdown code block, in which no character is special. */
function indented(text: string): string {
  return text
    .split(/\r\n?|\n/)
    .map((line) => `    ${line}`)
    .join('\n')
}
