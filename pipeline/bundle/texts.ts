/** The bundle's files for people: README.md, LICENSE and CITATION.cff. */
import { addDays } from '../contract/calendar.ts'
import { bibtex } from './description.ts'
import type { DescribedTable, Description } from './description.ts'
import { fileName } from './tables.ts'

/** CITATION.cff 1.2.0. Converters prefer an address in `identifiers` to `url`, so the home page is the author's website. */
export function citationText(description: Description): string {
  const { meta } = description
  return `cff-version: 1.2.0
type: dataset
message: ${yamlText('Please cite the snapshot you used, with its time.')}
title: ${yamlText(`${description.title}, as of ${meta.as_of}`)}
abstract: ${yamlText(`${description.summary} ${meta.comparability}`)}
authors:
  - name: ${yamlText(meta.publisher)}
    website: ${yamlText(description.homepage)}
license: ${meta.licence}
version: ${yamlText(description.version)}
date-released: ${yamlText(meta.as_of.slice(0, 10))}
url: ${yamlText(description.address)}
keywords:
${description.keywords.map((keyword) => `  - ${yamlText(keyword)}`).join('\n')}
`
}

/** Every JSON string is a YAML string. */
function yamlText(value: string): string {
  return JSON.stringify(value)
}

/** The licence text and the attribution line. */
export function licenceText({ title, meta }: Description): string {
  const sources =
    meta.sources === null
      ? ''
      : `\nThe data was made from these sources; name them as well:\n\n${indented(meta.sources)}\n`
  return `${title}, as of ${meta.as_of}

This dataset is licensed under the Creative Commons Attribution 4.0 International
Public License (SPDX: ${meta.licence}). The text of the licence: ${meta.licence_url}

You may share and adapt it, for any purpose, when you give credit. This line does:

    ${meta.attribution}
${sources}
The data comes as it is, without any warranty. ${meta.comparability}
`
}

/** Length of the window in the queries shown. */
const WINDOW_DAYS = 7

/** The bundle's README, which must be clear to a reader who has nothing else. */
export function readmeText(description: Description): string {
  const { meta } = description
  const firstDay = addDays(meta.data_through, 1 - WINDOW_DAYS)
  return `# ${description.title}, as of ${meta.as_of}

${description.summary}

- Days: ${meta.first_day} to ${meta.data_through} (UTC). A later snapshot may restate them; this one never changes.
- Snapshot: ${description.address}
- Licence: [${meta.licence}](${meta.licence_url})
- To be kept in mind: ${meta.comparability}

## Files

| file | what |
| --- | --- |
| \`app-rankings.duckdb\` | everything below in one DuckDB file (1.1 or newer), with the tables \`meta\` and \`categories\` |
${description.tables.map(filesRow).join('\n')}
| \`datapackage.json\` | description for machines, Data Package 2 |
| \`croissant.json\` | description for machines, Croissant 1.1 |
| \`CITATION.cff\`, \`LICENSE\` | how to cite, and the licence |
| \`SHA256SUMS\` | checksums: \`sha256sum -c SHA256SUMS\` |

The tables by day have a file per month; \`FROM 'app_daily/*.parquet'\` reads them all in DuckDB. While the rows of a month
stay the same, its file has the same bytes in every snapshot: fetch it once, and compare checksums.

In CSV an empty cell is null, except in a column of lists: there it is an empty list (written \`""\`, which DuckDB reads as
null too). Items of a list are separated by \`|\`. A text that a spreadsheet would read as a formula has an apostrophe
before it. Parquet has the lists and texts unchanged.

## Querying the DuckDB file

Three macros rank the apps of any window, both days inclusive; \`category\` and \`subcategory\` are optional. The API
clamps and rejects dates in the same way:

\`\`\`sql
FROM popular('${firstDay}', '${meta.data_through}');
FROM trending('${firstDay}', '${meta.data_through}', category := 'coding') LIMIT 20;
FROM popular_by_requests('${firstDay}', '${meta.data_through}');
\`\`\`

A fourth one ranks the models of each day, the 50 largest and \`other\`:

\`\`\`sql
FROM daily_models('${firstDay}', '${meta.data_through}');
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

function filesRow(table: DescribedTable): string {
  const names = table.formats.map((format) => `\`${fileName(table, format)}\``).join(', ')
  return `| ${names} | ${table.title} |`
}

function tableSection({ name, description, fields }: DescribedTable): string {
  const rows = fields.map((field) => `| \`${field.name}\` | ${field.type} | ${field.description} |`)
  return [
    `### ${name}`,
    '',
    description,
    '',
    '| column | type | meaning |',
    '| --- | --- | --- |',
    ...rows,
  ].join('\n')
}

/** A Markdown code block, in which no character is special. */
function indented(text: string): string {
  return text
    .split(/\r\n?|\n/)
    .map((line) => `    ${line}`)
    .join('\n')
}
